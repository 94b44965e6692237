/* kill_moments.c - a library to be loaded in front of a command (LD_PRELOAD): SIGKILL at a moment
 * that is no operation on files, which is all that TEGULA_FAIL_IO counts.
 *
 *     TG_KILL=decode:N    the plugin's N-th call of its decoder (avcodec_send_packet, avcodec_receive_frame)
 *     TG_KILL=encode:N    of its encoder (avcodec_send_frame, avcodec_receive_packet)
 *     TG_KILL=network:N   the command's N-th asinh: a network of Asinh computes one for each value, and
 *                         nothing else of the command or of libav does
 *     TG_KILL=between:N   of the moments behind a segment's last packet: the encoder has just said that
 *                         there is none, is about to be closed, and the next one about to be opened
 *     TG_KILL=join:N      a packet of the film or of another track into the output (av_write_frame), or its
 *                         end (av_write_trailer)
 *
 * In front of the call where N is odd, behind it where it is even; `between` is as it says. Calls of libav's
 * own libraries are not counted. TG_KILL_TOLD names a file for how many there were of each, in this order. */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default"))) /* instead of libav's and libm's */
#define END_OF_FILE (-(0x45 | 0x4f << 8 | 0x46 << 16 | 0x20 << 24)) /* AVERROR_EOF */
SEEN int avcodec_send_packet(void *c, const void *packet);
SEEN int avcodec_receive_frame(void *c, void *frame);
SEEN int avcodec_send_frame(void *c, const void *frame);
SEEN int avcodec_receive_packet(void *c, void *packet);
SEEN int avcodec_open2(void *c, const void *codec, void **options);
SEEN void avcodec_free_context(void **c);
SEEN int av_write_frame(void *out, void *packet);
SEEN int av_write_trailer(void *out);
SEEN double asinh(double x);

enum { DECODE, ENCODE, NETWORK, BETWEEN, JOIN, PHASES };
static const char *const words[PHASES] = {"decode", "encode", "network", "between", "join"};
static atomic_llong calls[PHASES];
static atomic_int ended; /* an encoder that ended is there, or was the last one */

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* The N of TG_KILL, where it names this phase. */
static long long moment(int phase)
{
    const char *s = getenv("TG_KILL");
    const size_t n = strlen(words[phase]);
    return s && strncmp(s, words[phase], n) == 0 && s[n] == ':' ? strtoll(s + n + 1, NULL, 10)
                                                                : 0;
}

/* One more moment of the phase, which may be the last one. */
static void pass(int phase)
{
    if (atomic_fetch_add(&calls[phase], 1) + 1 == moment(phase))
        die();
}

/* The same in front of a call. Returns its number, for `behind`. */
static long long before(int phase, int ours)
{
    const long long k = ours ? atomic_fetch_add(&calls[phase], 1) + 1 : 0;
    if (k & 1 && k == moment(phase))
        die();
    return k;
}

static void behind(int phase, long long k)
{
    if (k && k == moment(phase))
        die();
}

/* The file that the code at `from` is of. */
static const char *file_of(const void *from)
{
    Dl_info at;
    return dladdr(from, &at) && at.dli_fname ? at.dli_fname : "";
}

static int is_ours(const void *from)
{
    return strstr(file_of(from), "tegula_av") != NULL;
}

/* What the caller would have called. It may be loaded where RTLD_NEXT does not look, with the plugin, but is among what
 * the caller's library is linked with. */
static void *real(const char *name, const void *from)
{
    void *dl = dlopen(file_of(from), RTLD_LAZY | RTLD_NOLOAD), *f = dl ? dlsym(dl, name) : NULL;
    if (!f)
        f = dlsym(RTLD_NEXT, name);
    if (dl)
        dlclose(dl);
    if (!f)
        abort();
    return f;
}

#define FROM __builtin_return_address(0)

int avcodec_send_packet(void *c, const void *packet)
{
    int (*f)(void *, const void *);
    *(void **)&f = real("avcodec_send_packet", FROM);
    const long long k = before(DECODE, is_ours(FROM));
    const int r = f(c, packet);
    behind(DECODE, k);
    return r;
}

int avcodec_receive_frame(void *c, void *frame)
{
    int (*f)(void *, void *);
    *(void **)&f = real("avcodec_receive_frame", FROM);
    const long long k = before(DECODE, is_ours(FROM));
    const int r = f(c, frame);
    behind(DECODE, k);
    return r;
}

int avcodec_send_frame(void *c, const void *frame)
{
    int (*f)(void *, const void *);
    *(void **)&f = real("avcodec_send_frame", FROM);
    const long long k = before(ENCODE, is_ours(FROM));
    const int r = f(c, frame);
    behind(ENCODE, k);
    return r;
}

int avcodec_receive_packet(void *c, void *packet)
{
    int (*f)(void *, void *);
    const int ours = is_ours(FROM);
    *(void **)&f = real("avcodec_receive_packet", FROM);
    const long long k = before(ENCODE, ours);
    const int r = f(c, packet);
    behind(ENCODE, k);
    if (ours && r == END_OF_FILE) {
        atomic_store(&ended, 1);
        pass(BETWEEN);
    }
    return r;
}

void avcodec_free_context(void **c)
{
    void (*f)(void **);
    *(void **)&f = real("avcodec_free_context", FROM);
    if (is_ours(FROM) && atomic_load(&ended))
        pass(BETWEEN);
    f(c);
}

int avcodec_open2(void *c, const void *codec, void **options)
{
    int (*f)(void *, const void *, void **);
    *(void **)&f = real("avcodec_open2", FROM);
    if (is_ours(FROM) && atomic_exchange(&ended, 0))
        pass(BETWEEN);
    return f(c, codec, options);
}

int av_write_frame(void *out, void *packet)
{
    int (*f)(void *, void *);
    *(void **)&f = real("av_write_frame", FROM);
    const long long k = before(JOIN, is_ours(FROM));
    const int r = f(out, packet);
    behind(JOIN, k);
    return r;
}

int av_write_trailer(void *out)
{
    int (*f)(void *);
    *(void **)&f = real("av_write_trailer", FROM);
    const long long k = before(JOIN, is_ours(FROM));
    const int r = f(out);
    behind(JOIN, k);
    return r;
}

double asinh(double x)
{
    static _Atomic(void *) libm;
    double (*f)(double);
    void *there = atomic_load(&libm);
    if (!there)
        atomic_store(&libm, there = dlsym(RTLD_NEXT, "asinh"));
    *(void **)&f = there;
    const long long k = before(NETWORK, 1);
    const double y = f(x);
    behind(NETWORK, k);
    return y;
}

__attribute__((destructor)) static void tell(void)
{
    const char *told = getenv("TG_KILL_TOLD");
    FILE *f = told ? fopen(told, "we") : NULL;
    if (!f)
        return;
    for (int k = 0; k < PHASES; k++)
        fprintf(f, "%lld\n", atomic_load(&calls[k]));
    fclose(f);
}
