/* lessons.c - see lessons.h. */
#include "engine/plan/lessons.h"

#include "engine/base/mem.h"
#include "engine/memory/monitor_machine.h"
#include "io/text_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "lessons.json"
#define MOST 1e4 /* a factor beyond is damage */

/* ---- Factors ----------------------------------------------------------------------------- */

void tgi_lessons_add(tgi_lessons *l, const char *key, double took, double said)
{
    int i = 0;
    while (i < l->n && strcmp(l->row[i].key, key) != 0)
        i++;
    if (i == TGI_MAX_LESSONS || !(took > 0) || !(said > 0) || !isfinite(took / said))
        return;
    if (i == l->n) {
        l->row[l->n++] = (tgi_lesson){.took = 0};
        snprintf(l->row[i].key, sizeof l->row[i].key, "%s", key);
    }
    l->row[i].took = l->row[i].took / 2 + took;
    l->row[i].said = l->row[i].said / 2 + said;
}

/* Operators without a tuned kernel are slow for reasons of their own. */
static int kind_of(const char *key)
{
    return strcmp(key, TGI_LESSON_FILMS) == 0    ? 4
           : strcmp(key, TGI_LESSON_STAGES) == 0 ? 3
           : strcmp(key, TGI_LESSON_BESIDE) == 0 ? 2
           : tgi_speed_key_untuned(key)          ? 1
                                                 : 0;
}

double tgi_lessons_factor(const tgi_lessons *l, const char *key)
{
    double took = 0, said = 0;
    for (int i = 0; i < l->n; i++) {
        if (strcmp(l->row[i].key, key) == 0)
            return l->row[i].took / l->row[i].said;
        if (kind_of(l->row[i].key) == kind_of(key)) {
            took += l->row[i].took;
            said += l->row[i].said;
        }
    }
    return said > 0 ? took / said : 1;
}

double tgi_lessons_overall(const tgi_lessons *l)
{
    double took = 0, said = 0;
    for (int i = 0; i < l->n; i++) {
        took += l->row[i].took;
        said += l->row[i].said;
    }
    return said > 0 ? took / said : 1;
}

double tgi_lessons_kernels(const tgi_lessons *l, const tgi_speeds *s, const tgi_tiling *t,
                           int threads)
{
    double sum = 0;
    char key[48];
    for (int k = 0; k < t->stage->n_nodes; k++) {
        const double seconds = tgi_speed_node(s, t, k, threads);
        if (seconds < 0)
            return -1;
        tgi_speed_key(tgi_stage_node(t->stage, k), key, sizeof key);
        sum += l && l->n ? seconds * tgi_lessons_factor(l, key) : seconds;
    }
    return sum;
}

/* ---- The file ---------------------------------------------------------------------------- */

int tgi_lessons_wanted(void)
{
    const char *word = getenv("TEGULA_LEARN");
    return !word || strcmp(word, "no") != 0;
}

/* What the lessons are of: another processor, or other speeds, had others. */
static void subject(const tgi_speeds *s, int calibrated, char *buf, size_t cap)
{
    tgi_processors here;
    tgi_processors_read("", &here);
    if (calibrated)
        snprintf(buf, cap, "%.90s, calibrated %.9g %.9g", here.model, s->fixed, s->clear);
    else
        snprintf(buf, cap, "%.90s, usual 1", here.model);
}

static int read_rows(const tgi_json *all, tgi_lessons *out)
{
    for (const tgi_json *row = all ? tgi_json_first(all) : NULL; row;
         row = tgi_json_next(row)) {
        double took = 0, said = 0;
        const tgi_json *at = tgi_json_is_array(row) ? tgi_json_first(row) : NULL;
        if (!tgi_json_num(at, &took) || !tgi_json_num(tgi_json_next(at), &said) ||
            !(took > 0) || !(said > 0) || !(took / said < MOST && said / took < MOST))
            return 0;
        tgi_lessons_add(out, tgi_json_key(row), took, said);
    }
    return 1;
}

void tgi_lessons_load(const tgi_speeds *s, int calibrated, tgi_lessons *out)
{
    char path[1024], want[192];
    const char *of = NULL;
    tgi_json *doc = NULL;
    memset(out, 0, sizeof *out);
    if (!tgi_lessons_wanted() || tgi_cache_path(FILE_NAME, path, sizeof path, NULL) != TG_OK ||
        tgi_json_load(path, &doc, NULL) != TG_OK)
        return;
    subject(s, calibrated, want, sizeof want);
    const int good = tgi_json_is_object(doc) && tgi_json_str(tgi_json_get(doc, "of"), &of) &&
                     strcmp(of, want) == 0 &&
                     tgi_json_int(tgi_json_get(doc, "runs"), &out->runs) && out->runs > 0 &&
                     tgi_json_is_object(tgi_json_get(doc, "seconds")) &&
                     read_rows(tgi_json_get(doc, "seconds"), out);
    if (!good) /* damaged, or of something else: learned again */
        memset(out, 0, sizeof *out);
    tgi_json_free(&doc);
}

tg_status tgi_lessons_save(const tgi_speeds *s, int calibrated, const tgi_lessons *l,
                           tgi_err *err)
{
    char path[1024], of[192], *text = NULL;
    tgi_jw w = {0};
    TGI_TRY(tgi_cache_path(FILE_NAME, path, sizeof path, err));
    subject(s, calibrated, of, sizeof of);
    tgi_jw_begin(&w, NULL, '{');
    tgi_jw_str(&w, "of", of);
    tgi_jw_int(&w, "runs", l->runs);
    tgi_jw_begin(&w, "seconds", '{'); /* taken, said */
    for (int i = 0; i < l->n; i++) {
        tgi_jw_begin(&w, l->row[i].key, '[');
        tgi_jw_num(&w, NULL, l->row[i].took);
        tgi_jw_num(&w, NULL, l->row[i].said);
        tgi_jw_end(&w, ']');
    }
    tgi_jw_end(&w, '}');
    tgi_jw_end(&w, '}');
    TGI_TRY(tgi_jw_take(&w, &text, err));
    tg_status st = tgi_make_folders(path, err);
    if (st == TG_OK)
        st = tgi_write_text(path, text, 1, err);
    tgi_free(text);
    return st;
}
