/* film_kept.c - see film_kept.h. */
#include "io/film_kept.h"

#include "engine/base/mem.h"

void tgi_film_kept_open(tgi_film_kept *k)
{
    *k = (tgi_film_kept){0};
    pthread_mutex_init(&k->lock, NULL);
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

static tgi_kept_frame *find(tgi_film_kept *k, int64_t number)
{
    for (int i = 0; i < k->n; i++)
        if (k->frame[i].number == number)
            return &k->frame[i];
    return NULL;
}

char *tgi_film_kept_find(tgi_film_kept *k, int64_t number)
{
    pthread_mutex_lock(&k->lock);
    tgi_kept_frame *f = find(k, number);
    if (f)
        f->used = ++k->turn;
    pthread_mutex_unlock(&k->lock);
    return f ? f->bytes : NULL;
}

tgi_kept_frame *tgi_film_kept_room(tgi_film_kept *k)
{
    tgi_kept_frame *least = NULL;
    pthread_mutex_lock(&k->lock);
    for (int i = 0; i < k->n; i++)
        if (!k->frame[i].held && (!least || k->frame[i].used < least->used))
            least = &k->frame[i];
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

const char *tgi_film_kept_hold(tgi_film_kept *k, int64_t number)
{
    pthread_mutex_lock(&k->lock);
    tgi_kept_frame *f = find(k, number);
    if (f)
        f->held = 1;
    pthread_mutex_unlock(&k->lock);
    return f ? f->bytes : NULL;
}

void tgi_film_kept_release(tgi_film_kept *k, int64_t number)
{
    pthread_mutex_lock(&k->lock);
    tgi_kept_frame *f = find(k, number);
    if (f) {
        f->held = 0;
        f->used = 0;
    }
    pthread_mutex_unlock(&k->lock);
}
