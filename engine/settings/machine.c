/* machine.c - what is asked of the machine planned for (machine.h); its file is read in
 * machine_read.c. */
#include "engine/settings/machine.h"

#include "engine/base/arith.h"
#include "engine/base/mem.h"
#include "engine/base/reserve.h"
#include "engine/memory/gpu.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_machine.h"
#include "engine/memory/monitor_nvml.h"

#include <stdio.h>
#include <string.h>

#define TABLE_PART 512 /* a page table of 8 bytes for each page of 4096 */
#define PROGRAM_STEP ((uint64_t)512 << 10)
#define PROGRAM_SPREAD ((uint64_t)96 << 10) /* twenty pages were seen */
#define PROGRAM_AHEAD ((uint64_t)64 << 10)  /* that another start may count more */

/* ---- This machine ------------------------------------------------------------------------ */

void tgi_machine_look_again(tgi_machine *m)
{
    tgi_free_memory f;
    if (!m->here)
        return;
    m->free_bytes = tgi_mem_available(&f);
    m->own_bytes = tgi_mem_measured();
    m->margin_bytes = tgi_margin_of(m->free_bytes, m->own_bytes);
    m->budget_bytes = tgi_budget_of(m->free_bytes, m->own_bytes);
    snprintf(m->limited_by, sizeof m->limited_by, "%.223s", f.limited_by);
}

void tgi_machine_here(tgi_machine *out)
{
    memset(out, 0, sizeof *out); /* a literal would be a second one on the stack */
    out->here = 1;
    snprintf(out->name, sizeof out->name, "this machine");
    out->processors = tgi_usable_processors();
    out->isa = tgi_isa_detect(TGI_ISA_COUNT);
    out->bf16 = tgi_isa_has_bf16(out->isa);
    for (int i = 0; i <= (int)out->isa; i++)
        if (tgi_backend_for((tgi_isa)i))
            out->sets |= 1u << i;
    out->calibrated = tgi_speeds_load(&out->speeds, NULL) == TG_OK;
    if (out->calibrated)
        snprintf(out->processor, sizeof out->processor, "%s", out->speeds.processor);
    tgi_machine_look_again(out);
}

tg_status tgi_machine_of(const tg_opts *o, tgi_machine *out, tgi_err *err)
{
    const char *path = tgi_opts_str(o, TGI_OPT_MACHINE);
    if (!path) {
        tgi_machine_here(out);
        return TG_OK;
    }
    tgi_json *doc = NULL;
    TGI_TRY(tgi_opts_json(o, TGI_OPT_MACHINE, &doc, err));
    const tg_status st = tgi_machine_read(doc, path, out, err);
    tgi_json_free(&doc);
    return st;
}

void tgi_machine_find_gpus(tgi_machine *m)
{
    if (!m->here)
        return;
    m->n_gpus = 0;
    for (int i = 0; i < tgi_nvml_count() && m->n_gpus < TGI_MACHINE_GPUS; i++) {
        tg_gpu g = {.size = sizeof g};
        tgi_machine_gpu *to = &m->gpu[m->n_gpus];
        tgi_gpu_memory(i, "", &g);
        if (!g.total_bytes)
            continue; /* lost, or not permitted */
        *to = (tgi_machine_gpu){.total_bytes = g.total_bytes, .free_bytes = g.free_bytes};
        snprintf(to->name, sizeof to->name, "%s", g.name);
        m->n_gpus++;
    }
}

/* ---- Memory ------------------------------------------------------------------------------ */

size_t tgi_machine_budget(const tgi_machine *m, const tg_opts *o, size_t *margin)
{
    tgi_ram_spec ram;
    const int given = tgi_opts_ram(o, &ram);
    if (margin)
        *margin = given ? 0 : (size_t)m->margin_bytes;
    if (!given)
        return (size_t)m->budget_bytes;
    if (ram.bytes)
        return (size_t)ram.bytes;
    return (size_t)((double)tgi_sat_add(m->free_bytes, m->own_bytes) * ram.percent / 100.0);
}

/* Of `bytes` that the program was seen to hold. What it holds differs by some pages from start
 * to start: the spread keeps a program that lies just below a step on it. */
static uint64_t whole_steps(uint64_t bytes)
{
    return tgi_sat_add(bytes, PROGRAM_STEP + PROGRAM_SPREAD - 1) / PROGRAM_STEP * PROGRAM_STEP;
}

size_t tgi_machine_process(const tgi_machine *m, size_t held, uint64_t *program, uint64_t *more)
{
    uint64_t own = m->own_bytes;
    if (m->here) {
        tgi_mem_trim(); /* what was freed is no part of it */
        const uint64_t touched = tgi_mem_touched(), now = tgi_mem_measured();
        const uint64_t kept = tgi_pages_kept(); /* the next reservation takes it */
        const uint64_t ours = touched + touched / TABLE_PART + kept + kept / TABLE_PART;
        own = now > ours ? now - ours : 0;
    }
    *more = whole_steps(tgi_sat_add(own, PROGRAM_AHEAD)) - whole_steps(own);
    own = whole_steps(own);
    *program = own > *program ? own : *program;
    return tgi_machine_process_of(*program, held);
}

size_t tgi_machine_process_of(uint64_t program, size_t held)
{
    return tgi_sat_add((size_t)program, tgi_sat_add(held, held / TABLE_PART));
}

/* ---- Disks ------------------------------------------------------------------------------- */

/* `path` lies in `folder`, or is it. */
static int lies_in(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return n && strncmp(path, folder, n) == 0 &&
           (!path[n] || path[n] == '/' || folder[n - 1] == '/');
}

static const tgi_machine_disk *of_role(const tgi_machine *m, const char *role)
{
    for (int i = 0; i < m->n_disks; i++)
        if (strcmp(m->disk[i].role, role) == 0)
            return &m->disk[i];
    return NULL;
}

const tgi_machine_disk *tgi_machine_disk_of(const tgi_machine *m, const char *path)
{
    const tgi_machine_disk *best = NULL;
    for (int i = 0; path && path[0] == '/' && i < m->n_disks; i++)
        if (lies_in(path, m->disk[i].path) &&
            (!best || strlen(m->disk[i].path) > strlen(best->path)))
            best = &m->disk[i];
    return best ? best : of_role(m, "current");
}

uint64_t tgi_machine_disk_free(const tgi_machine *m, const char *path)
{
    char folder[4096];
    const char *slash = path ? strrchr(path, '/') : NULL;
    tg_disk room = {.size = sizeof room};
    if (!m->here) {
        const tgi_machine_disk *d = tgi_machine_disk_of(m, path);
        return d ? d->free_bytes : TG_NO_LIMIT;
    }
    if (slash && slash != path && (size_t)(slash - path) < sizeof folder)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    else
        snprintf(folder, sizeof folder, "%s", slash ? "/" : ".");
    return tgi_disk_look(folder, &room) ? room.free_bytes : 0;
}

const char *tgi_machine_temp(const tgi_machine *m, int *in_memory, uint64_t *free_bytes)
{
    tg_disk room = {.size = sizeof room};
    const tgi_machine_disk *d = m->here ? NULL : of_role(m, "temporary");
    if (m->here && tgi_disk_look(tgi_temp_folder(), &room)) {
        *in_memory = room.in_memory;
        *free_bytes = room.free_bytes;
        return tgi_temp_folder();
    }
    if (!d)
        return NULL;
    *in_memory = d->in_memory;
    *free_bytes = d->free_bytes;
    return d->path;
}

const char *tgi_machine_text(const tgi_machine *m, char *buf, size_t cap)
{
    snprintf(buf, cap, "%.150s: %d processor%s, %s%s%s%.90s", m->name, m->processors,
             m->processors == 1 ? "" : "s", tgi_isa_name(m->isa), m->bf16 ? " with bf16" : "",
             m->processor[0] ? ", " : "", m->processor);
    return buf;
}
