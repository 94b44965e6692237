/* film_kept.c - see film_kept.h. */
#include "io/film_kept.h"

#include "engine/base/mem.h"

void tgi_film_kept_open(tgi_film_kept *k)
{
    *k = (tgi_film_kept){0};
    pthread_mutex_init(&k->lock, NULL);
    pthread_cond_init(&k->freed, NULL);
}

static void drop(tgi_film_kept *k)
{
    for (int i = 0; i < k->n; i++)
        tgi_free(k->frame[i].bytes);
    tgi_free(k->frame);
    k->frame = NULL;
    k->n = 0;
}

void tgi_film_kept_close(tgi_film_kept *k)
{
    drop(k);
    pthread_mutex_destroy(&k->lock);
    pthread_cond_destroy(&k->freed);
}

tg_status tgi_film_kept_make(tgi_film_kept *k, int n, size_t bytes, tgi_err *err)
{
    drop(k);
    k->frame = tgi_calloc(TGI_TAG_IO, (size_t)n, sizeof *k->frame);
    if (!k->frame)
        return tgi_fail(err, TG_E_NOMEM, "no memory for frames of a film");
    k->n = n;
    for (int i = 0; i < n; i++) {
        k->frame[i] = (tgi_kept_frame){.number = -1, .bytes = tgi_malloc(TGI_TAG_IO, bytes)};
        if (!k->frame[i].bytes)
            return tgi_fail(err, TG_E_NOMEM, "no memory for %d frames of a film", n);
    }
    return TG_OK;
}

void tgi_film_kept_forget(tgi_film_kept *k)
{
    pthread_mutex_lock(&k->lock);
    for (int i = 0; i < k->n; i++)
        k->frame[i].number = -1;
    pthread_mutex_unlock(&k->lock);
}

static tgi_kept_frame *find(tgi_film_kept *k, int64_t number)
{
    for (int i = 0; i < k->n; i++)
        if (k->frame[i].number == number)
            return &k->frame[i];
    return NULL;
}

int tgi_film_kept_has(tgi_film_kept *k, int64_t number)
{
    pthread_mutex_lock(&k->lock);
    const int there = find(k, number) != NULL;
    pthread_mutex_unlock(&k->lock);
    return there;
}

static int is_of_less_use(const tgi_film_kept *k, const tgi_kept_frame *a,
                          const tgi_kept_frame *b)
{
    return k->in_order ? a->number < b->number : a->used < b->used;
}

static tgi_kept_frame *least_used(tgi_film_kept *k)
{
    tgi_kept_frame *least = NULL;
    for (int i = 0; i < k->n; i++)
        if (!k->frame[i].held && (!least || is_of_less_use(k, &k->frame[i], least)))
            least = &k->frame[i];
    return least;
}

tgi_kept_frame *tgi_film_kept_room(tgi_film_kept *k)
{
    tgi_kept_frame *least;
    pthread_mutex_lock(&k->lock);
    while (!(least = least_used(k)))
        pthread_cond_wait(&k->freed, &k->lock);
    least->number = -1;
    pthread_mutex_unlock(&k->lock);
    return least;
}

void tgi_film_kept_name(tgi_film_kept *k, tgi_kept_frame *f, int64_t number)
{
    pthread_mutex_lock(&k->lock);
    f->number = number;
    f->used = ++k->turn;
    pthread_mutex_unlock(&k->lock);
}

tgi_kept_frame *tgi_film_kept_hold(tgi_film_kept *k, int64_t number)
{
    pthread_mutex_lock(&k->lock);
    tgi_kept_frame *f = find(k, number);
    if (f) {
        f->held++;
        f->used = ++k->turn;
    }
    pthread_mutex_unlock(&k->lock);
    return f;
}

static void give_back(tgi_film_kept *k, tgi_kept_frame *f, int useless)
{
    pthread_mutex_lock(&k->lock);
    if (useless)
        f->used = 0;
    if (--f->held == 0)
        pthread_cond_signal(&k->freed);
    pthread_mutex_unlock(&k->lock);
}

void tgi_film_kept_let_go(tgi_film_kept *k, tgi_kept_frame *f)
{
    give_back(k, f, 0);
}

void tgi_film_kept_release(tgi_film_kept *k, tgi_kept_frame *f)
{
    give_back(k, f, 1);
}
