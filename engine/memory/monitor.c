/* monitor.c - reads /proc and the control groups: what changes while a program runs. */
#include "engine/memory/monitor.h"

#include "engine/base/arith.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Small files ------------------------------------------------------------------------- */

/* Read a small file into buf, NUL-terminated; 0 when it is not there. */
static size_t slurp(const char *root, const char *path, char *buf, size_t cap)
{
    char full[1024];
    if (snprintf(full, sizeof full, "%s%s", root, path) >= (int)sizeof full)
        return 0;
    const int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    size_t n = 0;
    for (ssize_t k; n + 1 < cap && (k = read(fd, buf + n, cap - 1 - n)) > 0;)
        n += (size_t)k;
    close(fd);
    buf[n] = 0;
    return n;
}

/* Number after "key" at the beginning of a line, in kB as bytes when `kb`; 0 when absent. */
static uint64_t field(const char *text, const char *key, int kb)
{
    const size_t k = strlen(key);
    for (const char *p = text; p; p = strchr(p, '\n')) {
        p += *p == '\n';
        if (strncmp(p, key, k) == 0)
            return strtoull(p + k, NULL, 10) * (kb ? 1024 : 1);
    }
    return 0;
}

/* A file that holds one number, or "max". */
static uint64_t limit_in(const char *root, const char *folder, const char *name)
{
    char path[1024], text[64];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path ||
        !slurp(root, path, text, sizeof text))
        return TGI_UNLIMITED;
    if (text[0] < '0' || text[0] > '9')
        return TGI_UNLIMITED;
    errno = 0;
    const uint64_t v = strtoull(text, NULL, 10);
    return errno || v >= (uint64_t)1 << 60 ? TGI_UNLIMITED : v; /* v1 writes "no limit" so */
}

/* ---- This process ------------------------------------------------------------------------ */

int tgi_process_memory_read(const char *root, tgi_process_memory *out)
{
    char text[4096];
    memset(out, 0, sizeof *out);
    if (!slurp(root, "/proc/self/status", text, sizeof text))
        return 0;
    out->anon = field(text, "RssAnon:", 1);
    out->file = field(text, "RssFile:", 1);
    out->shmem = field(text, "RssShmem:", 1);
    out->swap = field(text, "VmSwap:", 1);
    out->pte = field(text, "VmPTE:", 1);
    out->high_water = field(text, "VmHWM:", 1);
    out->resident = field(text, "VmRSS:", 1);
    out->virt = field(text, "VmSize:", 1);
    return 1;
}

const char *tgi_process_name(const char *root, int64_t pid, char *buf, size_t cap)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lld/comm", (long long)pid);
    if (!slurp(root, path, buf, cap))
        snprintf(buf, cap, "?");
    for (char *p = buf; *p; p++) {
        if (*p == '\n') {
            *p = 0;
            break;
        }
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
    }
    return buf;
}

int tgi_system_memory_read(const char *root, tgi_system_memory *out)
{
    char text[8192];
    memset(out, 0, sizeof *out);
    if (!slurp(root, "/proc/meminfo", text, sizeof text))
        return 0;
    out->total = field(text, "MemTotal:", 1);
    out->available = field(text, "MemAvailable:", 1);
    out->swap_total = field(text, "SwapTotal:", 1);
    out->swap_free = field(text, "SwapFree:", 1);
    out->committed = field(text, "Committed_AS:", 1);
    out->commit_limit = field(text, "CommitLimit:", 1);
    return 1;
}

uint64_t tgi_measured_of(const tgi_process_memory *p)
{
    return p->anon + p->shmem + p->swap + p->pte;
}

uint64_t tgi_mem_measured(void)
{
    tgi_process_memory p;
    return tgi_process_memory_read("", &p) ? tgi_measured_of(&p) : 0;
}

/* ---- cgroups ----------------------------------------------------------------------------- */

typedef struct cgroup_kind {
    const char *filesystem, *controller, *usual_mount, *usage, *inactive;
    const char *limit[3];
} cgroup_kind;

static const cgroup_kind v2 = {"cgroup2",        NULL,
                               "/sys/fs/cgroup", "memory.current",
                               "inactive_file ", {"memory.max", "memory.high", NULL}};
static const cgroup_kind v1 = {"cgroup",
                               "memory",
                               "/sys/fs/cgroup/memory",
                               "memory.usage_in_bytes",
                               "total_inactive_file ",
                               {"memory.limit_in_bytes", NULL, NULL}};

/* Where a hierarchy is mounted, and which of its groups is the mount's root: not "/" in a
 * container that sees its own part of the host's tree. */
typedef struct cgroup_mount {
    char at[512], group[512];
} cgroup_mount;

static int has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (strncmp(p, word, n) == 0 && (p[n] == ',' || p[n] == 0))
            return 1;
    }
    return 0;
}

/* One line of mountinfo, proc(5): "id parent dev GROUP AT options ... - TYPE source SUPER". */
static int mount_line(const char *line, const cgroup_kind *k, cgroup_mount *out)
{
    char type[32], super[256];
    const char *dash = strstr(line, " - ");
    cgroup_mount m;
    if (!dash || sscanf(dash + 3, "%31s %*s %255s", type, super) != 2 ||
        strcmp(type, k->filesystem) != 0 ||
        (k->controller && !has_word(super, k->controller)) ||
        sscanf(line, "%*s %*s %*s %511s %511s", m.group, m.at) != 2)
        return 0;
    *out = m;
    return 1;
}

/* The mount of a hierarchy. The list of mounts may be long: it is read a piece at a time, and
 * lines that do not fit a piece cannot be a cgroup's. */
static void find_mount(const char *root, const cgroup_kind *k, cgroup_mount *out)
{
    char path[1024], text[4096];
    size_t have = 0;
    ssize_t got = 1;
    snprintf(out->at, sizeof out->at, "%s", k->usual_mount);
    snprintf(out->group, sizeof out->group, "/");
    if (snprintf(path, sizeof path, "%s/proc/self/mountinfo", root) >= (int)sizeof path)
        return;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    for (int found = 0; fd >= 0 && !found && got > 0;) {
        got = read(fd, text + have, sizeof text - 1 - have);
        have += got > 0 ? (size_t)got : 0;
        text[have] = 0;
        char *line = text;
        for (char *end; !found && (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = 0;
            found = mount_line(line, k, out);
        }
        have = line == text && have == sizeof text - 1 ? 0 : (size_t)(text + have - line);
        memmove(text, line, have);
    }
    if (fd >= 0)
        close(fd);
}

/* What one group allows and uses; 0 when it says neither. */
static int look_in(const char *root, const cgroup_kind *k, const char *folder, tgi_cgroup *out)
{
    char path[1024], stat[4096]; /* of 50 lines; this lies deep on small stacks */
    *out = (tgi_cgroup){.version = k == &v2 ? 2 : 1, .limit = TGI_UNLIMITED};
    for (int i = 0; i < 3 && k->limit[i]; i++) {
        const uint64_t l = limit_in(root, folder, k->limit[i]);
        out->limit = l < out->limit ? l : out->limit;
    }
    out->used = limit_in(root, folder, k->usage);
    const int says = out->limit != TGI_UNLIMITED || out->used != TGI_UNLIMITED;
    if (out->used == TGI_UNLIMITED)
        out->used = 0;
    if (says && snprintf(path, sizeof path, "%s/memory.stat", folder) < (int)sizeof path &&
        slurp(root, path, stat, sizeof stat))
        out->inactive_file = field(stat, k->inactive, 0);
    const uint64_t held = out->used > out->inactive_file ? out->used - out->inactive_file : 0;
    out->room = out->limit == TGI_UNLIMITED ? TGI_UNLIMITED
                : out->limit > held         ? out->limit - held
                                            : 0;
    return says;
}

/* Levels found on the way up, in the caller's array. */
typedef struct cgroup_list {
    tgi_cgroup *out;
    int n, cap;
} cgroup_list;

/* From `group` up to the mount's root. A group that is not below the mount (seen from another
 * namespace) leaves the root itself, which is then the container's. */
static void walk_up(const char *root, const cgroup_kind *k, const char *group,
                    cgroup_list *list)
{
    cgroup_mount m;
    char folder[1024];
    find_mount(root, k, &m);
    const size_t skip = strlen(m.group);
    if (skip > 1 && strncmp(group, m.group, skip) == 0 && (group[skip] == '/' || !group[skip]))
        group += skip;
    if (snprintf(folder, sizeof folder, "%s%s", m.at, group) >= (int)sizeof folder)
        return;
    const size_t stop = strlen(m.at);
    for (size_t n = strlen(folder); list->n < list->cap; folder[n] = 0) {
        while (n > stop && folder[n - 1] == '/')
            folder[--n] = 0;
        tgi_cgroup *g = &list->out[list->n];
        if (look_in(root, k, folder, g)) {
            snprintf(g->path, sizeof g->path, "%.199s", n > stop ? folder + stop : "/");
            list->n++;
        }
        if (n <= stop)
            return;
        while (n > stop && folder[n - 1] != '/')
            n--;
    }
}

/* Lines of /proc/self/cgroup: "0::/path" (v2), "4:memory:/path" (v1). */
int tgi_cgroups_read(const char *root, tgi_cgroup *out, int cap)
{
    char text[4096];
    cgroup_list list = {out, 0, cap};
    if (!slurp(root, "/proc/self/cgroup", text, sizeof text))
        return 0;
    for (char *line = text, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        char *a = strchr(line, ':'), *b = a ? strchr(a + 1, ':') : NULL;
        if (!b)
            continue;
        *b = 0;
        if (a[1] == 0)
            walk_up(root, &v2, b + 1, &list);
        else if (has_word(a + 1, "memory"))
            walk_up(root, &v1, b + 1, &list);
    }
    return list.n;
}

static void read_cgroups(const char *root, tgi_free_memory *out)
{
    tgi_cgroup level[TGI_MAX_CGROUPS];
    const int n = tgi_cgroups_read(root, level, TGI_MAX_CGROUPS);
    out->cgroup = TGI_UNLIMITED;
    for (int i = 0; i < n; i++)
        if (level[i].room < out->cgroup) {
            out->cgroup = level[i].room;
            snprintf(out->limited_by, sizeof out->limited_by, "cgroup %s", level[i].path);
        }
}

/* ---- What is free ------------------------------------------------------------------------ */

static const struct {
    const char *name, *used, *option;
    int resource;
} limits[] = {{"RLIMIT_AS", "VmSize:", "ulimit -v", RLIMIT_AS},
              {"RLIMIT_DATA", "VmData:", "ulimit -d", RLIMIT_DATA}};

const char *tgi_free_memory_option(const tgi_free_memory *f)
{
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (strcmp(f->limited_by, limits[i].name) == 0)
            return limits[i].option;
    return NULL;
}

/* What the process may still map, and whose limit that is. */
static uint64_t rlimit_room(const char **whose)
{
    char text[4096];
    uint64_t room = TGI_UNLIMITED;
    if (!slurp("", "/proc/self/status", text, sizeof text))
        return room;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const uint64_t used = field(text, limits[i].used, 1);
        struct rlimit l;
        if (getrlimit(limits[i].resource, &l) != 0 || l.rlim_cur == RLIM_INFINITY)
            continue;
        const uint64_t left = l.rlim_cur > used ? l.rlim_cur - used : 0;
        if (left < room) {
            room = left;
            *whose = limits[i].name;
        }
    }
    return room;
}

void tgi_free_memory_read(const char *root, tgi_free_memory *out)
{
    const char *whose = "rlimit";
    tgi_system_memory system;
    memset(out, 0, sizeof *out);
    read_cgroups(root, out);
    (void)tgi_system_memory_read(root, &system);
    out->mem_available = system.available;
    if (!out->mem_available)
        out->mem_available = TGI_UNLIMITED;
    out->rlimit = root[0] ? TGI_UNLIMITED : rlimit_room(&whose);
    out->bytes = out->cgroup;
    if (out->mem_available <= out->bytes) {
        out->bytes = out->mem_available;
        snprintf(out->limited_by, sizeof out->limited_by, "MemAvailable");
    }
    if (out->rlimit < out->bytes) {
        out->bytes = out->rlimit;
        snprintf(out->limited_by, sizeof out->limited_by, "%s", whose);
    }
}

uint64_t tgi_mem_available(tgi_free_memory *detail)
{
    tgi_free_memory f;
    tgi_free_memory_read("", &f);
    if (detail)
        *detail = f;
    return f.bytes;
}

uint64_t tgi_margin_of(uint64_t free_bytes, uint64_t own_bytes)
{
    const uint64_t half = (uint64_t)512 << 20;
    const uint64_t all = tgi_sat_add(free_bytes, own_bytes);
    return all / 10 > half ? all / 10 : half;
}

uint64_t tgi_budget_of(uint64_t free_bytes, uint64_t own_bytes)
{
    const uint64_t all = tgi_sat_add(free_bytes, own_bytes);
    const uint64_t margin = tgi_margin_of(free_bytes, own_bytes);
    return all > margin ? all - margin : 0;
}

uint64_t tgi_mem_default_budget(void)
{
    return tgi_budget_of(tgi_mem_available(NULL), tgi_mem_measured());
}
