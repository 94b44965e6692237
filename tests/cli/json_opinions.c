/* json_opinions.c - is JSON of ours what cJSON reads? Each argument is a file; in *.lines each
 * line is a text. cJSON and our strict reader must see the same: members in order, strings byte
 * by byte, numbers to the last bit, no name twice. cJSON alone would not tell: it takes more
 * than JSON.
 *
 * Prints how many values were compared; 1: not the same. */
#include "engine/base/json.h"
#include "tests/tg_test.h"

#include <cjson/cJSON.h>

static long values, strings, numbers;

static int differ(const char *why, const char *key)
{
    fprintf(stderr, "json_opinions: %s at \"%s\"\n", why, key ? key : "");
    return 1;
}

static int names_twice(const cJSON *object)
{
    for (const cJSON *a = object->child; a; a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (strcmp(a->string, b->string) == 0)
                return 1;
    return 0;
}

static int compare(const tgi_json *ours, const cJSON *theirs, const char *key)
{
    const char *text;
    double number;
    bool truth;
    values++;
    if (tgi_json_is_object(ours) || tgi_json_is_array(ours)) {
        const bool object = tgi_json_is_object(ours);
        const cJSON *b = theirs->child;
        if (object ? !cJSON_IsObject(theirs) : !cJSON_IsArray(theirs))
            return differ("another kind", key);
        if (object && names_twice(theirs))
            return differ("a name twice", key);
        for (const tgi_json *a = tgi_json_first(ours); a; a = tgi_json_next(a), b = b->next) {
            if (!b || (object && strcmp(tgi_json_key(a), b->string) != 0))
                return differ("another member", object ? tgi_json_key(a) : key);
            if (compare(a, b, object ? b->string : key))
                return 1;
        }
        return b ? differ("more members", key) : 0;
    }
    if (tgi_json_str(ours, &text)) {
        strings++;
        return cJSON_IsString(theirs) && strcmp(text, theirs->valuestring) == 0
                   ? 0
                   : differ("another string", key);
    }
    if (tgi_json_num(ours, &number)) {
        numbers++;
        return cJSON_IsNumber(theirs) &&
                       memcmp(&number, &theirs->valuedouble, sizeof number) == 0
                   ? 0
                   : differ("another number", key);
    }
    if (tgi_json_bool(ours, &truth))
        return cJSON_IsBool(theirs) && cJSON_IsTrue(theirs) == truth ? 0
                                                                     : differ("not so", key);
    return tgi_json_is_null(ours) && cJSON_IsNull(theirs) ? 0 : differ("another kind", key);
}

static int check(const char *text, size_t n, const char *name)
{
    tgi_json *ours = NULL;
    tgi_err err = {0};
    cJSON *theirs = cJSON_ParseWithLengthOpts(text, n + 1, NULL, 1); /* to the 0 behind it */
    if (tgi_json_parse(text, n, name, &ours, &err) != TG_OK || !theirs) {
        fprintf(stderr, "json_opinions: %s: ours %s, cJSON %s: %.200s\n", name,
                ours ? "reads it" : err.text, theirs ? "reads it" : "does not", text);
        cJSON_Delete(theirs);
        tgi_json_free(&ours);
        return 1;
    }
    const int bad = compare(ours, theirs, name);
    cJSON_Delete(theirs);
    tgi_json_free(&ours);
    return bad;
}

static int check_file(const char *path)
{
    static char text[4 << 20];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    int bad = 0;
    if (f)
        fclose(f);
    if (!n)
        return differ("no text", path);
    text[n] = 0;
    const char *end = strrchr(path, '.');
    if (!end || strcmp(end, ".lines") != 0) {
        for (; n && text[n - 1] == '\n'; n--)
            text[n - 1] = 0;
        return check(text, n, path);
    }
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        bad |= check(line, strlen(line), path);
    return bad;
}

int main(int n, char **paths)
{
    int bad = 0;
    for (int i = 1; i < n; i++)
        bad |= check_file(paths[i]);
    printf("%ld values, %ld strings, %ld numbers\n", values, strings, numbers);
    CHECK(!bad && numbers && strings);
    return TEST_END();
}
