/* cmd_version.c - tegula version. */
#include "cli.h"

tg_status cli_cmd_version(cli *c)
{
    if (c->json)
        puts("{\"event\":\"version\",\"version\":\"" TG_VERSION_STRING "\"}");
    else
        puts("tegula " TG_VERSION_STRING);
    return TG_OK;
}
