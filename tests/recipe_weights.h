/* recipe_weights.h - tensors of the synthetic weights that ProPainter's goldens were made with, by
 * weights.csv and RECIPE.md of the conformance data. */
#ifndef TG_RECIPE_WEIGHTS_H
#define TG_RECIPE_WEIGHTS_H

#include "tests/tg_test.h"

static inline uint64_t recipe_seed(const char *name)
{
    uint64_t h = 0xCBF29CE484222325u;
    for (; *name; name++)
        h = (h ^ (unsigned char)*name) * 0x100000001B3u;
    return h;
}

/* Element i of the stream, in [-1, 1). */
static inline float recipe_unit(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    return (float)(z >> 40) * 0x1p-23f - 1.0f;
}

/* The row's columns behind `model,tensor`: 0, it is another tensor. */
static inline char *recipe_row(char *line, const char *model, const char *tensor)
{
    const size_t m = strlen(model), t = strlen(tensor);
    return strncmp(line, model, m) == 0 && line[m] == ',' &&
                   strncmp(line + m + 1, tensor, t) == 0 && line[m + 1 + t] == ','
               ? line + m + t + 2
               : NULL;
}

/* A tensor of kind `lin` by the weights.csv of a folder, free(). NULL, and a failure is counted: there is none of that name with so
 * many elements. */
static inline float *recipe_tensor(const char *folder, const char *model, const char *tensor,
                                   size_t count)
{
    char line[4096], *row = NULL;
    snprintf(line, sizeof line, "%s/weights.csv", folder);
    FILE *f = fopen(line, "r");
    while (f && !row && fgets(line, sizeof line, f))
        row = recipe_row(line, model, tensor);
    if (f)
        fclose(f);
    char *shape = row ? strchr(row, ',') : NULL, *kind = shape ? strchr(++shape, ',') : NULL;
    size_t n = 1;
    for (char *at = shape; kind && at < kind; at++)
        n *= strtoull(at, &at, 10);
    CHECK(kind && strncmp(kind, ",lin,", 5) == 0 && n == count);
    if (!kind || n != count)
        return NULL;
    char *end;
    const float offset = strtof(kind + 5, &end), a = strtof(end + 1, NULL);
    float *p = malloc(n * sizeof *p);
    for (size_t i = 0; p && i < n; i++)
        p[i] = offset + a * recipe_unit(recipe_seed(tensor), i);
    return p;
}

#endif
