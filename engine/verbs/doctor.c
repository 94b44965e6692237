/* doctor.c - the troubleshooting list: what of this machine, its limits and this build stands
 * in a job's way, and what to do about it. Reads, plans, changes nothing.
 *
 * A finding is about one thing, in one sentence, and its remedy is a command where there is
 * one. Only what keeps jobs from running at all blocks; what makes them slower or smaller is a
 * notice. */
#include "engine/verbs/doctor.h"

#include "engine/base/mem.h"
#include "engine/base/size.h"
#include "engine/device/measured.h"
#include "engine/device/plugin.h"
#include "engine/job/job.h"
#include "engine/job/job_open.h"
#include "engine/job/job_plan.h"
#include "engine/job/plan_scratch.h"
#include "engine/memory/gpu.h"
#include "engine/memory/monitor.h"
#include "engine/memory/monitor_machine.h"
#include "engine/memory/monitor_nvml.h"
#include "engine/plan/lessons.h"
#include "engine/verbs/refusal.h"
#include "io/av/av_open.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_RAM ((uint64_t)1 << 30)
#define SMALL_DISK ((uint64_t)1 << 30)

typedef struct report {
    const char *root;
    tg_finding *list;
    size_t n, cap;
} report;

/* One more finding; its remedy may follow. */
static tg_finding *find(report *r, const char *about, tg_finding_state state, const char *fmt,
                        ...) TGI_PRINTF(4, 5);

static tg_finding *find(report *r, const char *about, tg_finding_state state, const char *fmt,
                        ...)
{
    tg_finding *f = &r->list[r->n < r->cap ? r->n++ : r->cap - 1];
    va_list ap;
    *f = (tg_finding){.about = about, .state = state};
    va_start(ap, fmt);
    vsnprintf(f->says, sizeof f->says, fmt, ap);
    va_end(ap);
    return f;
}

static void remedy(tg_finding *f, const char *fmt, ...) TGI_PRINTF(2, 3);

static void remedy(tg_finding *f, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->remedy, sizeof f->remedy, fmt, ap);
    va_end(ap);
}

/* ---- Host -------------------------------------------------------------------------------- */

static void look_at_ram(report *r)
{
    tgi_system_memory s;
    tgi_free_memory f;
    char a[32], b[32];
    (void)tgi_system_memory_read(r->root, &s);
    tgi_free_memory_read(r->root, &f);
    const int low = f.bytes < SMALL_RAM;
    tg_finding *one = find(r, "ram", low ? TG_FINDING_NOTICE : TG_FINDING_OK,
                           "%s free (%s) of %s", tgi_size_text(f.bytes, a, sizeof a),
                           f.limited_by, tgi_size_text(s.total, b, sizeof b));
    if (low)
        remedy(one, "close what holds most: ps -eo pid,rss,comm --sort=-rss | head");
    if (tgi_budget_of(f.bytes, 0) == 0) {
        one = find(r, "ram", TG_FINDING_BLOCKS,
                   "less is free than the margin of 512 MiB: without --ram nothing runs");
        remedy(one, "give part of it: --ram %lluMiB",
               (unsigned long long)((f.bytes - f.bytes / 10) >> 20));
    }
    if (s.swap_total && s.swap_total - s.swap_free > s.swap_total / 2) {
        one = find(r, "swap", TG_FINDING_NOTICE,
                   "%s of %s in use: the machine is short of memory",
                   tgi_size_text(s.swap_total - s.swap_free, a, sizeof a),
                   tgi_size_text(s.swap_total, b, sizeof b));
        remedy(one, "ps -eo pid,rss,comm --sort=-rss | head");
    }
}

/* How a group's limit is raised depends on who made the group; its path tells. */
static void raise_limit(tg_finding *f, const char *path)
{
    const char *id = strstr(path, "/docker/");
    const char *unit = strrchr(path, '/');
    const size_t n = unit ? strlen(unit + 1) : 0;
    if (strstr(path, "/slurm"))
        remedy(f, "ask for more: sbatch --mem=16G, or srun --mem=16G");
    else if (strstr(path, "kubepods"))
        remedy(f, "raise resources.limits.memory of the pod");
    else if (id)
        remedy(f, "docker update --memory 8g --memory-swap 8g %.64s", id + 8);
    else if (n > 6 && (strcmp(unit + n - 5, ".scope") == 0 || strstr(unit, ".service")))
        remedy(f, "systemctl set-property %.100s MemoryMax=8G MemoryHigh=infinity", unit + 1);
    else
        remedy(f, "give a --ram below it, or raise memory.max (v2), memory.limit_in_bytes (v1) "
                  "of that group");
}

static void look_at_limits(report *r)
{
    tgi_cgroup g[TGI_MAX_CGROUPS];
    tgi_system_memory s;
    tgi_free_memory f;
    char a[32], b[32];
    int tight = 0;
    const int n = tgi_cgroups_read(r->root, g, TGI_MAX_CGROUPS);
    (void)tgi_system_memory_read(r->root, &s);
    tgi_free_memory_read(r->root, &f);
    for (int i = 0; i < n; i++) {
        if (g[i].limit >= s.total)
            continue;
        tight = 1;
        raise_limit(find(r, "cgroup", TG_FINDING_NOTICE, "%s allows %s, %s of it free",
                         g[i].path, tgi_size_text(g[i].limit, a, sizeof a),
                         tgi_size_text(g[i].room, b, sizeof b)),
                    g[i].path);
    }
    if (!tight)
        find(r, "cgroup", TG_FINDING_OK, "no group allows less than the machine has");
    if (f.rlimit != TGI_UNLIMITED)
        remedy(find(r, "rlimit", TG_FINDING_NOTICE, "this shell allows %s more",
                    tgi_size_text(f.rlimit, a, sizeof a)),
               "ulimit -v unlimited; ulimit -d unlimited");
    char word[32];
    tgi_system_word(r->root, "/proc/sys/vm/overcommit_memory", word, sizeof word);
    if (strcmp(word, "2") == 0)
        remedy(find(r, "overcommit", TG_FINDING_NOTICE,
                    "the system promises no more than it has: %s of %s are promised",
                    tgi_size_text(s.committed, a, sizeof a),
                    tgi_size_text(s.commit_limit, b, sizeof b)),
               "sysctl vm.overcommit_memory=0, or a smaller --ram");
}

static void look_at_disk(report *r, const char *about, const char *path)
{
    tg_disk d = {.size = sizeof d};
    char a[32];
    if (!tgi_disk_look(path, &d)) {
        remedy(find(r, about, TG_FINDING_NOTICE, "%.300s is not there", path),
               "mkdir -p '%.300s'", path);
        return;
    }
    const int low = d.free_bytes < SMALL_DISK;
    tg_finding *f = find(r, about, low || d.in_memory ? TG_FINDING_NOTICE : TG_FINDING_OK,
                         "%s free in %.300s%s", tgi_size_text(d.free_bytes, a, sizeof a), path,
                         d.in_memory ? ", which is memory: scratch there counts as RAM" : "");
    if (low)
        remedy(f, "write elsewhere: -o /other/disk/OUT.tif, --scratch /other/disk");
    else if (d.in_memory)
        remedy(f, "TMPDIR=/var/tmp, or --scratch on a disk");
}

/* ---- Processor, build -------------------------------------------------------------------- */

static void look_at_processor(report *r)
{
    const char *cap = getenv("TEGULA_ISA");
    const tgi_isa isa = tgi_isa_detect(TGI_ISA_COUNT);
    const int emulated = tgi_isa_emulated(isa);
    tg_finding *f = find(
        r, "processor", isa == TGI_ISA_PORTABLE || emulated ? TG_FINDING_NOTICE : TG_FINDING_OK,
        "%d usable, kernels for %s%s%s", tgi_usable_processors(), tgi_isa_name(isa),
        tgi_isa_has_bf16(isa) ? " with bf16" : "", emulated ? ", emulated" : "");
    if (emulated)
        remedy(f, "a build for tests, and slow: make one without TG_EMULATE_AVX512");
    if (isa == TGI_ISA_PORTABLE)
        remedy(f, "some 10 times slower than with AVX2: use a newer machine");
    if (cap && *cap)
        remedy(
            find(r, "processor", TG_FINDING_NOTICE, "TEGULA_ISA=%.40s caps the kernels", cap),
            "unset TEGULA_ISA");
}

/* What the time that a plan states is made of. */
static void look_at_speeds(report *r)
{
    struct {
        tgi_speeds measured, base;
        tgi_lessons lessons;
    } *k = tgi_calloc(TGI_TAG_MISC, 1, sizeof *k); /* too large for the stack */
    if (!k)
        return;
    const int calibrated = tgi_speeds_load(&k->measured, NULL) == TG_OK;
    const tgi_lessons *l = &k->lessons;
    tgi_speeds_usual(tgi_usable_processors(), calibrated ? &k->measured : NULL, &k->base);
    tgi_lessons_load(&k->base, calibrated, &k->lessons);
    const char *of =
        calibrated ? "those that tegula calibrate measured" : "those of a usual machine";
    if (l->runs)
        find(r, "speeds", TG_FINDING_OK,
             "estimates are of %s, corrected by %lld finished runs, which took %.2f times what "
             "was said",
             of, (long long)l->runs, tgi_lessons_overall(l));
    else
        find(r, "speeds", TG_FINDING_OK, "estimates are of %s%s", of,
             tgi_lessons_wanted() ? "; no finished run has corrected them yet"
                                  : "; TEGULA_LEARN=no: finished runs do not correct them");
    tgi_free(k);
}

/* What was not there when this was built; the codecs say it themselves (codec_absent.c). */
static void look_at_build(report *r)
{
    static const struct {
        const char *name, *package;
        int there;
    } part[] = {
#ifdef TG_HAVE_ZLIB
        {"deflate", "zlib1g-dev", 1},
#else
        {"deflate", "zlib1g-dev", 0},
#endif
#if defined TG_HAVE_LIBDEFLATE || !defined TG_HAVE_ZLIB
        {"deflate at its fastest", "libdeflate-dev", 1},
#else
        {"deflate at its fastest", "libdeflate-dev", 0},
#endif
#ifdef TG_HAVE_ZSTD
        {"zstd", "libzstd-dev", 1},
#else
        {"zstd", "libzstd-dev", 0},
#endif
#ifdef TG_HAVE_LZMA
        {"LZMA", "liblzma-dev", 1},
#else
        {"LZMA", "liblzma-dev", 0},
#endif
#ifdef TG_HAVE_JPEG
        {"JPEG", "libjpeg-dev", 1},
#else
        {"JPEG", "libjpeg-dev", 0},
#endif
#ifdef TG_HAVE_PNG
        {"PNG", "libpng-dev", 1},
#else
        {"PNG", "libpng-dev", 0},
#endif
#ifdef TG_HAVE_WEBP
        {"WebP", "libwebp-dev", 1},
#else
        {"WebP", "libwebp-dev", 0},
#endif
#ifdef TG_HAVE_TIFF
        {"LERC, PixarLog, LogLuv, NeXT, JBIG and old JPEG", "libtiff-dev", 1},
#else
        {"LERC, PixarLog, LogLuv, NeXT, JBIG and old JPEG", "libtiff-dev", 0},
#endif
#ifdef TG_HAVE_XML
        {"OME-XML", "libxml2-dev", 1},
#else
        {"OME-XML", "libxml2-dev", 0},
#endif
#ifdef TG_HAVE_ZIP
        {"weights in .pth archives", "libzip-dev", 1},
#else
        {"weights in .pth archives", "libzip-dev", 0},
#endif
#ifdef TG_HAVE_YAML
        {"descriptions of bioimage.io packages", "libyaml-dev", 1},
#else
        {"descriptions of bioimage.io packages", "libyaml-dev", 0},
#endif
    };
    size_t missing = 0;
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++)
        if (!part[i].there) {
            missing++;
            remedy(find(r, "build", TG_FINDING_NOTICE, "made without %s", part[i].name),
                   "apt install %s, then configure and build again", part[i].package);
        }
    if (!missing)
        find(r, "build", TG_FINDING_OK, "every codec is there");
    if (getenv("TEGULA_BLOCK_UNTRUSTED"))
        remedy(find(r, "build", TG_FINDING_NOTICE,
                    "TEGULA_BLOCK_UNTRUSTED refuses videos, and TIFFs that libtiff decodes"),
               "unset TEGULA_BLOCK_UNTRUSTED");
}

/* ---- GPUs -------------------------------------------------------------------------------- */

static void look_at_driver(report *r)
{
    tg_gpu_driver d = {.size = sizeof d};
    char module[128];
    const tgi_nvml_state state = tgi_nvml_driver(&d);
    tgi_system_word(r->root, "/proc/driver/nvidia/version", module, sizeof module);
    if (state == TGI_NVML_WORKS) {
        find(r, "driver", TG_FINDING_OK, "%.90s, %d GPU%s", d.version, tgi_nvml_count(),
             tgi_nvml_count() == 1 ? "" : "s");
        return;
    }
    if (!module[0] && state == TGI_NVML_MISSING) {
        find(r, "driver", TG_FINDING_OK, "no NVIDIA driver: no GPU to use");
        return;
    }
    tg_finding *f = find(r, "driver", TG_FINDING_NOTICE, "%.250s", d.problem);
    if (state == TGI_NVML_MISMATCH)
        remedy(f, "the driver was updated under way: reboot, or rmmod nvidia_uvm nvidia_drm "
                  "nvidia_modeset nvidia && modprobe nvidia");
    else if (state == TGI_NVML_NOT_LOADED)
        remedy(f, "modprobe nvidia");
    else if (state == TGI_NVML_MISSING)
        remedy(f, "the kernel has the driver, its library is missing; in a container: "
                  "docker run --gpus all");
    else if (state == TGI_NVML_OFF)
        remedy(f, "unset TEGULA_NVML");
    else
        remedy(f, "nvidia-smi");
}

static void look_at_gpus(report *r)
{
    char a[32], b[32];
    for (int i = 0; i < tgi_nvml_count(); i++) {
        tg_gpu g = {.size = sizeof g};
        tgi_gpu_memory(i, r->root, &g);
        if (g.problem[0])
            remedy(find(r, "gpu", TG_FINDING_NOTICE, "GPU %d: %.150s", i, g.problem),
                   "nvidia-smi -i %d", i);
        if (g.total_bytes)
            find(r, "gpu", TG_FINDING_OK, "GPU %d %.90s: %s free of %s", i, g.name,
                 tgi_size_text(g.free_bytes, a, sizeof a),
                 tgi_size_text(g.total_bytes, b, sizeof b));
        for (size_t k = 0; k < g.n_processes && k < sizeof g.process / sizeof g.process[0];
             k++) {
            const tg_gpu_process *p = &g.process[k];
            remedy(find(r, "gpu", TG_FINDING_NOTICE, "GPU %d: %s (pid %lld) holds %s", i,
                        p->name, (long long)p->pid,
                        p->used_bytes == TG_NO_LIMIT
                            ? "an unknown part"
                            : tgi_size_text(p->used_bytes, a, sizeof a)),
                   "wait for it, or end it: kill %lld", (long long)p->pid);
        }
    }
}

/* What was measured when the device was first used for what it is about. */
static void look_at_measured(report *r, const tgi_device_info *info)
{
    tgi_measured m;
    char a[32], text[128];
    tgi_measured_read(info, &m);
    if (m.context_bytes)
        find(r, "device", TG_FINDING_OK, "cuda:%d: a context takes %s, as measured", info->id,
             tgi_size_text(m.context_bytes, a, sizeof a));
    for (int i = 0; i < TGI_GAIN_COUNT; i++) {
        if (m.gain[i] < 0)
            continue;
        find(r, "device", TG_FINDING_OK, "cuda:%d: %s, as measured%s", info->id,
             tgi_gain_text((tgi_gain)i, m.gain[i], text, sizeof text),
             m.gain[i] == 0 ? ": they are not there, or compute something else" : "");
    }
    if (m.library_bytes)
        find(r, "device", TG_FINDING_OK, "cuda:%d: its library takes %s when it is open",
             info->id, tgi_size_text(m.library_bytes, a, sizeof a));
}

/* What jobs can run on beside the processor. */
static void look_at_devices(report *r)
{
    tgi_devices d;
    char a[32];
    tgi_devices_look("cuda", &d);
    for (int i = 0; i < d.n; i++) {
        find(r, "device", TG_FINDING_OK, "cuda:%d %.95s: %s, compute capability %d.%d, %.63s",
             d.info[i].id, d.info[i].name, tgi_size_text(d.info[i].total_bytes, a, sizeof a),
             d.info[i].major, d.info[i].minor, d.info[i].driver);
        look_at_measured(r, &d.info[i]);
    }
    if (d.n)
        return;
    /* Who has no GPU misses nothing. */
    const int gpus = tgi_nvml_count();
    tg_finding *f = find(r, "device", gpus ? TG_FINDING_NOTICE : TG_FINDING_OK,
                         "jobs run on the processor: %.250s", d.why);
    if (gpus && d.ops)
        remedy(f, "nvidia-smi: what it says of driver and devices");
    else if (gpus)
        remedy(f, "build where nvcc is (cmake -DTG_CUDA=on), or name the plugin: "
                  "TEGULA_CUDA_PLUGIN=/path/libtegula_cuda.so");
}

static void look_at_films(report *r)
{
    const tgi_av_ops *ops;
    tgi_err why = {0};
    if (tgi_av_ops_get(&ops, &why) == TG_OK)
        find(r, "films", TG_FINDING_OK, "read by %.250s with %s", tgi_av_path(),
             ops->version());
    else
        remedy(find(r, "films", TG_FINDING_NOTICE, "%.300s", why.text),
               "apt install libavcodec-dev libavformat-dev libavutil-dev, and build again; or "
               "name the "
               "plugin: TEGULA_AV_PLUGIN=/path/libtegula_av.so");
}

/* ---- A job ------------------------------------------------------------------------------- */

/* The mildest change that makes the job fit, as a command; whoever knows its file says it for
 * JOB.
 */
static void tell_what_fits(tg_finding *f, const tgi_err *e, const tg_opts *opts,
                           const tg_job *job)
{
    char peak[32];
    tg_refusal *r = tgi_calloc(TGI_TAG_MISC, 1, sizeof *r);
    if (r)
        tgi_refusal_explain(e, TGI_DO_RUN, opts, job, r);
    if (r && r->n_remedies) {
        const tg_remedy *m = &r->remedy[0];
        size_t n = (size_t)snprintf(f->remedy, sizeof f->remedy, "tegula run --config JOB");
        for (size_t i = 0; i < m->n_options && n < sizeof f->remedy; i++)
            n += (size_t)snprintf(f->remedy + n, sizeof f->remedy - n, " --%s '%s'",
                                  m->option[i].name, m->option[i].value);
        if (n < sizeof f->remedy)
            n += (size_t)snprintf(f->remedy + n, sizeof f->remedy - n, " (peak %s; loses %s)",
                                  tgi_size_text(m->peak_bytes, peak, sizeof peak), m->loses);
        if (n >= sizeof f->remedy) /* a command that was cut is another command */
            f->remedy[0] = 0;
    }
    if (!f->remedy[0])
        remedy(f, "nothing was found that fits: a smaller image, or more memory");
    tgi_free(r);
}

static tg_status look_at_job(report *r, const tg_opts *opts, tgi_err *err)
{
    tg_job *job = NULL;
    tgi_err e = {0};
    char a[32], b[32];
    tg_status st = tgi_job_open(NULL, opts, &job, &e);
    if (st == TG_OK)
        st = tgi_job_plan_output(job, &e);
    if (st == TG_OK)
        st = tgi_job_check_disk(job, &e);
    if (st == TG_OK) {
        find(r, "job", TG_FINDING_OK, "fits: peak %s of a budget of %s",
             tgi_size_text(job->plan.bytes.total, a, sizeof a),
             tgi_size_text(job->plan.budget, b, sizeof b));
    } else if (st != TG_E_CANCELLED) {
        tg_finding *f = find(r, "job", TG_FINDING_BLOCKS, "%.500s", e.text);
        if (st == TG_E_BUDGET || st == TG_E_NOMEM)
            tell_what_fits(f, &e, opts, job);
        else
            remedy(f, "docs/reference/errors.md has its cause and cure");
    }
    tgi_job_close(&job);
    return st == TG_E_CANCELLED ? tgi_fail(err, st, "stopped") : TG_OK;
}

tg_status tgi_doctor(const char *root, const tg_opts *job, tg_finding **list, size_t *n,
                     tgi_err *err)
{
    report r = {.root = root, .cap = 64 + 2 * TGI_MAX_DEVICES + (size_t)tgi_nvml_count() * 20};
    r.list = tgi_calloc(TGI_TAG_MISC, r.cap, sizeof *r.list);
    if (!r.list)
        return tgi_fail(err, TG_E_NOMEM, "no memory for the list of findings");
    look_at_ram(&r);
    look_at_limits(&r);
    look_at_disk(&r, "disk", ".");
    look_at_disk(&r, "temporary", tgi_temp_folder());
    look_at_processor(&r);
    look_at_speeds(&r);
    look_at_build(&r);
    look_at_driver(&r);
    look_at_gpus(&r);
    look_at_devices(&r);
    look_at_films(&r);
    const tg_status st = job ? look_at_job(&r, job, err) : TG_OK;
    if (st != TG_OK) {
        tgi_free(r.list);
        return st;
    }
    *list = r.list;
    *n = r.n;
    return TG_OK;
}
