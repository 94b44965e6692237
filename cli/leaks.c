/* leaks.c - TEGULA_LEAKS=1: what the library still holds when the command ends is listed with
 * file and line, and the exit code is that of an internal error. The tests run the command so.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

#include <tegula_pool.h>

int cli_leaks_at_end(int code)
{
    const char *wanted = getenv("TEGULA_LEAKS");
    char *text = NULL;
    if (!wanted || !*wanted || tg_pool_leaks(tg_pool_engine(), &text) != TG_OK)
        return code;
    if (strcmp(text, "no leak\n") != 0) {
        fprintf(stderr, "%s", text);
        code = cli_exit_code(TG_E_INTERNAL);
    }
    tg_text_free(text);
    return code;
}
