/* batch_table.c - the table of --batch: CSV as RFC 4180 has it, with the names of the columns in its first line.
 *
 * Cells in quotes hold commas, line ends and doubled quotes. A byte order mark, CRLF, blank lines, and blanks around
 * cells without quotes are taken as what they are: marks of the program that wrote the file. The text is cut into cells
 * in place, which only become shorter. */
#include "batch.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TABLE_BYTES = 16 << 20 };

typedef struct table {
    batch *b;
    const char *path;
    char *p, *end; /* what is not read yet; a 0 stands at the end */
    int line;      /* of p, from 1 */
    int row_line;  /* where the row at hand begins */
} table;

static tg_status broken(const table *t, int line, const char *what)
{
    return cli_fail(t->b->c, TG_E_FORMAT, "%s: line %d: %s", t->path, line, what);
}

/* ---- The file ---------------------------------------------------------------------------- */

/* `room` bytes at most, which is said to be too much where there are more. */
static tg_status read_all(table *t, int fd, size_t room)
{
    size_t n = 0;
    char *text = cli_batch_take(t->b, room + 1);
    if (!text)
        return cli_batch_no_memory(t->b);
    for (ssize_t got = 1; got > 0 && n < room;) {
        got = read(fd, text + n, room - n);
        if (got < 0 && errno == EINTR && !tg_cancel_signal())
            got = 1;
        else if (got < 0)
            return cli_fail(t->b->c, errno == EINTR ? TG_E_CANCELLED : TG_E_IO, "%s: %s",
                            t->path, strerror(errno));
        else
            n += (size_t)got;
    }
    if (n == room)
        return cli_fail(t->b->c, TG_E_FORMAT, "%s: no table of jobs is that large", t->path);
    text[n] = 0;
    t->p = text;
    t->end = text + n;
    return TG_OK;
}

static tg_status load(table *t)
{
    struct stat st;
    tg_status status;
    const int fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return cli_fail(t->b->c, TG_E_NOT_FOUND, "%s: %s", t->path, strerror(errno));
    if (fstat(fd, &st) != 0 || S_ISFIFO(st.st_mode) ||
        S_ISCHR(st.st_mode)) /* they may have no end */
        status = cli_fail(t->b->c, TG_E_FORMAT, "%s: is no file: a table is one", t->path);
    else if (S_ISDIR(st.st_mode))
        status = cli_fail(
            t->b->c, TG_E_NOT_FOUND,
            "%s: is a folder: --batch takes a table, --video-dir a folder of films", t->path);
    else if (S_ISREG(st.st_mode) && st.st_size < TABLE_BYTES)
        status = read_all(t, fd, (size_t)st.st_size + 1);
    else
        status = read_all(t, fd, TABLE_BYTES);
    close(fd);
    return status;
}

/* Marks of encodings in front; of what is no text at all the first sign. */
static tg_status look_at_encoding(table *t)
{
    const size_t n = (size_t)(t->end - t->p);
    if (n >= 2 && (memcmp(t->p, "\xff\xfe", 2) == 0 || memcmp(t->p, "\xfe\xff", 2) == 0))
        return broken(t, 1, "is UTF-16: save the table as CSV in UTF-8");
    if (memchr(t->p, 0, n))
        return broken(t, 1, "holds bytes of 0, so it is no CSV");
    if (n >= 3 && memcmp(t->p, "\xef\xbb\xbf", 3) == 0)
        t->p += 3;
    return TG_OK;
}

/* ---- Cells ------------------------------------------------------------------------------- */

static bool at_line_end(const char *p)
{
    return !*p || *p == '\n' || (p[0] == '\r' && (p[1] == '\n' || !p[1]));
}

/* Behind a cell: a comma, or the end of the row. */
static void step(table *t, bool *last)
{
    *last = *t->p != ',';
    if (*t->p == '\r')
        t->p++;
    t->line += *t->p == '\n';
    if (*t->p)
        t->p++;
}

static tg_status quoted(table *t, char **cell)
{
    const int begun = t->line;
    char *to = ++t->p;
    *cell = to;
    for (;; t->p++) {
        if (!*t->p)
            return broken(t, begun, "a quote is opened and never closed");
        if (*t->p == '"' && t->p[1] != '"')
            break;
        t->p += *t->p == '"';
        t->line += *t->p == '\n';
        *to++ = *t->p;
    }
    t->p++;
    while (*t->p == ' ')
        t->p++;
    if (*t->p != ',' && !at_line_end(t->p))
        return broken(t, t->line, "something stands behind a closing quote");
    *to = 0; /* at the closing quote, or before it */
    return TG_OK;
}

/* The 0 behind it takes the place of what ends it, so that is looked at first. */
static tg_status plain(table *t, char **cell, char **stop)
{
    *cell = t->p;
    while (*t->p != ',' && !at_line_end(t->p)) {
        if (*t->p == '"')
            return broken(t, t->line,
                          "a quote in the midst of a cell: put the cell in quotes, "
                          "and double those in it");
        if (*t->p == '\r')
            return broken(t, t->line, "a carriage return in the midst of a line");
        t->p++;
    }
    for (*stop = t->p; *stop > *cell && ((*stop)[-1] == ' ' || (*stop)[-1] == '\t');)
        --*stop;
    return TG_OK;
}

static tg_status next_cell(table *t, char **cell, bool *last)
{
    char *stop = NULL;
    tg_status st;
    while (*t->p == ' ' || *t->p == '\t')
        t->p++;
    st = *t->p == '"' ? quoted(t, cell) : plain(t, cell, &stop);
    if (st != TG_OK)
        return st;
    step(t, last);
    if (stop)
        *stop = 0;
    return TG_OK;
}

static bool is_blank_line(const char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return *p && at_line_end(p);
}

/* true: a row begins at t->p. */
static bool next_row(table *t)
{
    bool last;
    while (is_blank_line(t->p)) {
        while (!at_line_end(t->p))
            t->p++;
        step(t, &last);
    }
    t->row_line = t->line;
    return t->p < t->end && t->p[strspn(t->p, " \t")];
}

/* ---- Columns ----------------------------------------------------------------------------- */

static const tg_option *option_called(const char *name)
{
    size_t n;
    const tg_option *o = tg_option_table(&n);
    for (size_t i = 0; i < n; i++)
        if (strcmp(o[i].name, name) == 0)
            return &o[i];
    return NULL;
}

/* What no option is called: the library names the nearest. */
static tg_status unknown(const table *t, const char *name)
{
    tg_opts *none = NULL;
    tg_status st = tg_opts_new(t->b->c->ctx, &none);
    if (strpbrk(name, ";\t"))
        st = cli_fail(t->b->c, TG_E_ARG,
                      "%s: line %d: the columns are separated by commas, not by semicolons or "
                      "tabs",
                      t->path, t->row_line);
    else if (st == TG_OK) {
        st = tg_opts_set(none, name, "");
        st = cli_fail(t->b->c, TG_E_ARG, "%s: line %d: column: %s", t->path, t->row_line,
                      tg_ctx_detail(t->b->c->ctx));
    }
    tg_opts_free(&none);
    return st;
}

static tg_status add_column(table *t, char *name)
{
    batch *b = t->b;
    for (char *p = name; *p; p++)
        *p = *p == '_' ? '-' : *p;
    const tg_option *o = option_called(name);
    if (!*name)
        return cli_fail(b->c, TG_E_ARG, "%s: line %d: column %d has no name", t->path,
                        t->row_line, b->n_columns + 1);
    if (!o)
        return unknown(t, name);
    if (!cli_word_in(o->verbs, "inpaint"))
        return cli_fail(b->c, TG_E_ARG, "%s: line %d: column %s means nothing to inpaint",
                        t->path, t->row_line, name);
    if (cli_batch_own(name))
        return cli_fail(b->c, TG_E_ARG,
                        "%s: line %d: column %s: that is of the whole batch, and goes on the "
                        "command line",
                        t->path, t->row_line, name);
    for (int i = 0; i < b->n_columns; i++)
        if (b->column[i] == o)
            return cli_fail(b->c, TG_E_ARG, "%s: line %d: column %s is there twice", t->path,
                            t->row_line, name);
    if (b->n_columns == BATCH_COLUMNS)
        return cli_fail(b->c, TG_E_ARG, "%s: %d columns at most", t->path, BATCH_COLUMNS);
    b->column[b->n_columns++] = o;
    return TG_OK;
}

int cli_batch_column(const batch *b, const char *name)
{
    for (int i = 0; i < b->n_columns; i++)
        if (strcmp(b->column[i]->name, name) == 0)
            return i;
    return -1;
}

bool cli_batch_removes(const tg_opts *o)
{
    const char *mode = tg_opts_get(o, "mode");
    return tg_opts_get(o, "mask") || tg_opts_get(o, "mask-box") ||
           (mode && strstr(mode, "outpainting"));
}

static tg_status read_header(table *t)
{
    static const char *const must[] = {"input", "output"};
    batch *b = t->b;
    if (!next_row(t))
        return broken(t, 1, "the table is empty");
    for (bool last = false; !last;) {
        char *name;
        tg_status st = next_cell(t, &name, &last);
        if (st == TG_OK)
            st = add_column(t, name);
        if (st != TG_OK)
            return st;
    }
    for (size_t i = 0; i < sizeof must / sizeof must[0]; i++)
        if (cli_batch_column(b, must[i]) < 0)
            return cli_fail(b->c, TG_E_ARG, "%s: line %d: column %s is missing", t->path,
                            t->row_line, must[i]);
    if (cli_batch_column(b, "mask") < 0 && cli_batch_column(b, "mask-box") < 0 &&
        cli_batch_column(b, "mode") < 0 && !cli_batch_removes(b->c->opts))
        return cli_fail(b->c, TG_E_ARG, "%s: line %d: column mask is missing, or mask-box",
                        t->path, t->row_line);
    return TG_OK;
}

/* ---- Rows -------------------------------------------------------------------------------- */

static tg_status needs(const table *t, const batch_job *j, const char *value, const char *name)
{
    if (value && strcmp(value, "-") != 0)
        return TG_OK;
    return cli_fail(t->b->c, TG_E_ARG,
                    value ? "%s: line %d: %s -: a batch has no use for standard streams"
                          : "%s: line %d: the %s is missing",
                    t->path, j->line, name);
}

static tg_status read_row(table *t)
{
    batch *b = t->b;
    batch_job *j = cli_batch_add(b);
    int n = 0, given = 0;
    if (!j)
        return b->n == BATCH_JOBS ? broken(t, t->row_line, "a table has 100,000 rows at most")
                                  : cli_batch_no_memory(b);
    j->line = t->row_line;
    for (bool last = false; !last; n++) {
        char *value;
        const tg_status st = next_cell(t, &value, &last);
        if (st != TG_OK)
            return st;
        if (n < b->n_columns)
            j->cell[n] = *value ? value : NULL;
        given += *value != 0;
    }
    if (n != b->n_columns)
        return cli_fail(b->c, TG_E_ARG, "%s: line %d: has %d cells, and there are %d columns",
                        t->path, j->line, n, b->n_columns);
    if (!given) { /* as programs for tables leave them behind the last row */
        b->n--;
        return TG_OK;
    }
    const int mask = cli_batch_column(b, "mask");
    j->input = j->cell[cli_batch_column(b, "input")];
    j->output = j->cell[cli_batch_column(b, "output")];
    j->mask = mask < 0 ? NULL : j->cell[mask];
    const tg_status st = needs(t, j, j->input, "input");
    return st != TG_OK ? st : needs(t, j, j->output, "output");
}

tg_status cli_batch_read_table(batch *b, const char *path)
{
    table t = {.b = b, .path = path, .line = 1};
    tg_status st = load(&t);
    b->list = path;
    if (st == TG_OK)
        st = look_at_encoding(&t);
    if (st == TG_OK)
        st = read_header(&t);
    while (st == TG_OK && next_row(&t))
        st = read_row(&t);
    if (st == TG_OK && !b->n)
        st = cli_fail(b->c, TG_E_ARG, "%s: names columns and no job", path);
    return st;
}
