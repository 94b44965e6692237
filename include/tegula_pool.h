/*
 * tegula_pool.h - one allocator for host, pinned and device memory, with statistics.
 *
 * EXPERIMENTAL: the declarations of this header may still change from one version to the next.
 *
 * A *pool* stands above a backend's raw calls (`tg_raw`), which are few and slow. It takes
 * *segments* from them and hands out *blocks* of segments. A request gets the smallest free
 * block that fits; what is left over is split off. A freed block merges with its free
 * neighbours and stays in the pool for the next request.
 *
 *     reserved  = bytes held from the backend (all segments)
 *     active    = bytes of blocks in use, rounded as the pool rounds them
 *     allocated = bytes that were asked for in them
 *     inactive  = reserved - active: what is cached
 *     fragmentation = (reserved - allocated) / reserved, 0 when nothing is reserved
 *
 * The library's own memory comes from such a pool (tg_pool_engine). Every allocation has a tag
 * (who) and a site ("file:line").
 *
 *     tg_raw raw;
 *     tg_pool *pool = NULL;
 *     void *p;
 *     tg_raw_host(&raw);
 *     if (tg_pool_open(NULL, &raw, NULL, &pool) == TG_OK &&
 *         tg_pool_alloc(pool, 1 << 20, "frames", &p) == TG_OK)
 *         tg_pool_free(pool, p);
 *     tg_pool_close(&pool, NULL);
 *
 * Every function may be called from any thread, with distinct pools or with the same one. Only
 * opening and closing a pool must not race with its use. A pool calls its backend under its
 * lock, so the backend must not call back into the same pool. Words of ownership and errors are
 * those of tegula.h.
 *
 * @source PyTorch's caching allocator (two rooms for small and large requests), TLSF (classes
 *         found by a bit map), RMM (best fit and merging).
 */
#ifndef TEGULA_POOL_H
#define TEGULA_POOL_H

#include <tegula.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What lies below --------------------------------------------------------------------- */

/** The kind of memory that a backend gives. */
typedef enum tg_memory_kind {
    TG_MEMORY_HOST,
    TG_MEMORY_PINNED,
    TG_MEMORY_DEVICE
} tg_memory_kind;

/** A backend's raw calls. Zero-initialise, set `size`; NULL where a slot is marked optional. */
typedef struct tg_raw {
    size_t size;
    tg_memory_kind kind;
    int device; /* number of the device; 0 for host memory */
    /* segments are multiples of it; 0: 2 MiB on a device, else 4 KiB */
    uint64_t granularity_bytes;
    int is_zeroed;                              /* what `alloc` gives reads as zeros */
    void *user;                                 /* handed to each call; borrowed */
    void *(*alloc)(void *user, uint64_t bytes); /* 256-byte aligned; NULL: refused */
    void (*free)(void *user, void *at, uint64_t bytes);
    /* optional: move a segment to another size, contents kept; NULL: refused, old one stays */
    void *(*resize)(void *user, void *at, uint64_t old_bytes, uint64_t new_bytes);
    uint64_t (*total_bytes)(void *user); /* optional: all there is; absent: no fraction */
    uint64_t (*free_bytes)(void *user);  /* optional: free now; absent: no margin */
    int (*is_pinned)(void *user, const void *at); /* optional: for memory of any origin */
} tg_raw;

/** Fill in the backend of host memory: pages of the system. Its total and free bytes heed
 * cgroups. */
TG_API void tg_raw_host(tg_raw *out);
/** Fill in the backend of host memory that is locked (mlock), as transfers to devices want it.
 * Refused beyond RLIMIT_MEMLOCK. A device backend brings its own. */
TG_API void tg_raw_pinned(tg_raw *out);

/* ---- A pool ------------------------------------------------------------------------------ */

typedef struct tg_pool tg_pool;

#define TG_POOL_CLASSES 6       /* of preallocated blocks: 1, 4, 16, 64, 256 KiB, 1 MiB */
#define TG_POOL_NONE UINT64_MAX /* "no such thing", where 0 means default */

/** Options of a pool. Zero means default in every field; `size` is sizeof(tg_pool_opts). */
typedef struct tg_pool_opts {
    size_t size;
    const char *name;        /* in reports; copied. Default "host", "pinned", "device 0" */
    double memory_fraction;  /* of total, that may be reserved; default 0.8 */
    uint64_t margin_bytes;   /* stays free; default max(512 MiB, 10 % of total); TG_POOL_NONE */
    const char *cache_limit; /* "512MiB", "10%" of total: inactive bytes kept; default: all */
    double compact_above;    /* fragmentation from which growing compacts first; default 0.3;
                                1 or more: never */
    uint64_t align_bytes;    /* of blocks, a power of two of 256 at least; default 256 */
    uint64_t segment_bytes;  /* that small requests are carved from; default 2 MiB;
                                TG_POOL_NONE: each request its own segment */
    size_t preallocate[TG_POOL_CLASSES]; /* blocks of each class, all in one segment */
} tg_pool_opts;

/**
 * Open a pool. @param ctx where the detail of a failure goes; NULL allowed. @param raw copied.
 * @param opts NULL for defaults. @param out returned; close with tg_pool_close.
 * @return TG_E_ARG     a slot is missing, an option is out of range; the detail says which
 *         TG_E_NOMEM, TG_E_BUDGET  the preallocated segment was refused
 */
TG_API tg_status tg_pool_open(tg_ctx *ctx, const tg_raw *raw, const tg_pool_opts *opts,
                              tg_pool **out);
/**
 * Give everything back to the backend, blocks in use too, and set to NULL; NULL allowed.
 * @param leaks what tg_pool_leaks says at that moment, NULL when there is no leak or leak
 * checking is off; returned, tg_text_free. NULL allowed.
 */
TG_API void tg_pool_close(tg_pool **pool, char **leaks);
/** Get the pool of the library itself: host memory of every context of this process. View; it
 * is never closed, and nobody else may allocate from it. */
TG_API tg_pool *tg_pool_engine(void);
/** Read the name of a pool, as reports have it. View. */
TG_API const char *tg_pool_name(const tg_pool *pool);

#define TG_POOL_TEXT_(x) #x
#define TG_POOL_TEXT(x) TG_POOL_TEXT_(x)
/* "file.c:12" of where it is written. */
#define TG_POOL_SITE __FILE__ ":" TG_POOL_TEXT(__LINE__)

/** Take a block: tg_pool_alloc_at with the place of the call as its site. */
#define tg_pool_alloc(pool, bytes, tag, out)                                                   \
    tg_pool_alloc_at((pool), (bytes), (tag), TG_POOL_SITE, (out))

/**
 * Take a block of at least `bytes` (0 counts as 1), aligned as the pool aligns; not zeroed.
 *
 * @param tag   who wants it ("weights"). @param site where. Both are borrowed until the pool
 *              closes, as literals are. The 64th different tag and those after it count as
 *              "other".
 * @return TG_E_BUDGET  fraction or margin forbid it   } tg_pool_detail says what asked, what
 *         TG_E_NOMEM   the backend refused it         } is held by whom, and what is free
 *         TG_E_ARG     a NULL argument
 */
TG_API tg_status tg_pool_alloc_at(tg_pool *pool, uint64_t bytes, const char *tag,
                                  const char *site, void **out);
/** Give a block back; NULL allowed. @return TG_E_ARG, and nothing happens, for what is no block
 * in use of this pool (freed twice, another pool's, not its beginning). */
TG_API tg_status tg_pool_free(tg_pool *pool, void *block);
/** Read the last refusal as one line, "" if none. @return its length; at most cap - 1 are
 * written.
 */
TG_API size_t tg_pool_detail(const tg_pool *pool, char *text, size_t cap);

/**
 * Carve free blocks of the six classes out of ONE new segment: a single raw call. A request is
 * served by the smallest class that holds it. The segment stays until empty_cache or the end.
 * @param count blocks of 1, 4, 16, 64, 256 KiB and 1 MiB. @return as tg_pool_alloc_at.
 */
TG_API tg_status tg_pool_preallocate(tg_pool *pool, const size_t count[TG_POOL_CLASSES]);

/* ---- Giving back ------------------------------------------------------------------------- */

/** Give every wholly free segment back. @return bytes. */
TG_API uint64_t tg_pool_empty_cache(tg_pool *pool);
/** Give wholly free segments back whose sizes are rarely asked for (less than twice within the
 * last 8,192 requests, older ones counting half), and keep the often used. @return bytes. */
TG_API uint64_t tg_pool_collect(tg_pool *pool);
/** Give all wholly free segments back but the preallocated; what happens by itself when the
 * pool is about to grow while more than `compact_above` of it lies idle. @return bytes. */
TG_API uint64_t tg_pool_compact(tg_pool *pool);
/** Set how many inactive bytes are kept from now on: "512MiB", "10%" of total, NULL for all.
 * What is above goes back at once, rarely used sizes first. @return TG_E_ARG no size; the limit
 * stays. */
TG_API tg_status tg_pool_set_cache_limit(tg_pool *pool, const char *limit);
/** Set the share of total that may be reserved, 0 < fraction <= 1. @return TG_E_ARG. */
TG_API tg_status tg_pool_set_memory_fraction(tg_pool *pool, double fraction);

/* ---- Looking ----------------------------------------------------------------------------- */

/** Figures of a pool. Set `size` first. */
typedef struct tg_pool_stats {
    size_t size;
    uint64_t allocated_bytes, reserved_bytes, active_bytes, inactive_bytes;
    uint64_t allocated_peak_bytes, reserved_peak_bytes, active_peak_bytes, inactive_peak_bytes;
    uint64_t cached_bytes;  /* of inactive: in wholly free segments, what empty_cache gives */
    uint64_t allocs, frees; /* since the pool was opened */
    uint64_t live;          /* blocks in use */
    uint64_t hits;          /* of allocs: served without a raw call */
    uint64_t direct;        /* of allocs: small ones of the library itself, left to malloc */
    double hit_rate;        /* hits / (allocs - direct), 0 when there were none */
    double fragmentation;   /* 0 when nothing is reserved */
    uint64_t raw_allocs, raw_frees;
    uint64_t segments, refused;
    uint64_t bad_frees; /* of what was no block in use */
    int pressure;       /* free memory of the backend is below the margin */
} tg_pool_stats;

/** Read the figures of a pool. Asks the backend what is free.
 * @return TG_E_ARG (NULL, or a `size` we do not know). */
TG_API tg_status tg_pool_get_stats(tg_pool *pool, tg_pool_stats *out);
/** Make peaks count from now on. */
TG_API void tg_pool_reset_peaks(tg_pool *pool);
/** Is the backend's memory at `at` page-locked? 1: yes. `at` lies in a block of this pool, or
 * wherever the backend can tell. */
TG_API int tg_pool_is_pinned(tg_pool *pool, const void *at);
/** Is less free than the margin? 1: yes; 0 also where the backend cannot say. */
TG_API int tg_pool_pressure(tg_pool *pool);

/** A block in use. */
typedef struct tg_pool_block {
    const void *at;
    uint64_t bytes;   /* asked for */
    uint64_t number;  /* of the allocation, counted from 1 */
    const char *tag;  /* view of the pool */
    const char *site; /* "file.c:12"; view */
} tg_pool_block;

#define TG_POOL_LARGE_BYTES (100ull << 20)
/**
 * List blocks in use of at least `min_bytes` (0: TG_POOL_LARGE_BYTES), oldest first.
 * @param rows caller's array of `cap`, may be NULL when cap is 0. @return how many there are.
 */
TG_API size_t tg_pool_large(tg_pool *pool, uint64_t min_bytes, tg_pool_block *rows, size_t cap);
/** Write a summary for people: bytes and peaks, hit rate, holders by tag, large blocks, times
 * when profiling. Returned; tg_text_free. @return TG_E_NOMEM, TG_E_ARG. */
TG_API tg_status tg_pool_report(tg_pool *pool, char **text);

/* ---- Profiling: a timeline of allocations ------------------------------------------------ */

/** Switch the timeline (and the time spent in allocating) on or off; on begins a new one. Off
 * keeps what was recorded. Costs 40 bytes an allocation, up to 2^20 of them; later ones are
 * counted as dropped. @return TG_E_NOMEM. */
TG_API tg_status tg_pool_profile(tg_pool *pool, int on);
/** As tg_pool_profile(pool, 1), with the timeline in a file without a name instead of memory, for
 * who counts memory, and begun anew where one is on. The file goes when the next timeline begins or the pool is closed.
 * @param folder where it is made. @return TG_E_ARG; TG_E_UNSUPPORTED: files are memory there;
 * TG_E_NOT_FOUND, TG_E_EXISTS: none can be made there; TG_E_IO, TG_E_NO_SPACE. */
TG_API tg_status tg_pool_profile_in(tg_pool *pool, const char *folder);
/**
 * Hand the timeline as one JSON object to `write` piece by piece. One line per allocation:
 *
 *   {"tegula_timeline":1,"pool":"engine","recorded":2,"dropped":0,"events":[
 *   {"begin_ns":120,"end_ns":950,"bytes":64,"tag":"io","site":"io/onnx.c:88"},
 *   {"begin_ns":200,"end_ns":null,"bytes":4096,"tag":"plan","site":"engine/plan/net.c:7"}
 *   ]}
 *
 * Times count from when profiling was switched on; `end_ns` is null for what is in use still.
 * @param write returns 0 to go on, else its answer ends the writing: TG_E_IO is returned.
 */
TG_API tg_status tg_pool_timeline(tg_pool *pool,
                                  int (*write)(void *user, const char *text, size_t n),
                                  void *user);

/* ---- Leaks ------------------------------------------------------------------------------- */

/** Switch leak checking on or off. It is on from the start, for all blocks; switched on later
 * it counts the blocks allocated from then on. Off: reports and tg_pool_close say nothing. */
TG_API void tg_pool_leak_check(tg_pool *pool, int on);
/** List blocks in use as text, one line each with bytes, tag, "file:line" and the number of the
 * allocation, oldest first, and a last line with the sum; "no leak\n" when there is none.
 * Returned; tg_text_free. @return TG_E_NOMEM, TG_E_ARG. */
TG_API tg_status tg_pool_leaks(tg_pool *pool, char **text);

/** A moment in the life of a pool. Set `size` first. */
typedef struct tg_pool_checkpoint {
    size_t size;
    uint64_t allocated_bytes, live, number;
} tg_pool_checkpoint;

/** Note what is allocated now, for tg_pool_compare. @return TG_E_ARG. */
TG_API tg_status tg_pool_check(tg_pool *pool, tg_pool_checkpoint *out);
/** Compare two moments: "leak: 1.50 MiB" when more is allocated at `later` than at `earlier`,
 * else "no leak"; written to text (cap 32 is enough). @return the bytes more, 0 when there are
 * none. */
TG_API uint64_t tg_pool_compare(const tg_pool_checkpoint *earlier,
                                const tg_pool_checkpoint *later, char *text, size_t cap);
/** List as tg_pool_leaks does, of blocks that were allocated after the checkpoint. */
TG_API tg_status tg_pool_leaks_since(tg_pool *pool, const tg_pool_checkpoint *since,
                                     char **text);

#ifdef __cplusplus
}
#endif

#endif
