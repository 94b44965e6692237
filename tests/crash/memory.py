"""Allocation k of the command fails: exit 71 with a sentence and figures, no crash, no leak (TEGULA_LEAKS), no
broken file.

    memory.py TEGULA SOURCE_DIR [STEP]

k runs from 1 in steps of STEP until the command no longer notices (TEGULA_FAIL_ALLOC=k,
engine/base/mem.h); a run also with what the system is asked for (TEGULA_FAIL_RAW=k). With STEP 1 and a build with AddressSanitizer it also proves that every way
out frees what it holds."""
import concurrent.futures
import os

from crashlib import check, main, picture, upscaler, uses_scratch


def one(lab, name, args, k, want, which="TEGULA_FAIL_ALLOC"):
    out = lab.path("%s-%d.tif" % (name, k))
    more = ["-o", out] if name in ("run", "copy", "scratch", "raw") else []
    r = lab.run(args + more, {which: k})
    whole = os.path.exists(out)
    result = r.out if name == "info" else open(out, "rb").read() if whole else None
    for end in ("", ".partial", ".journal", ".tegula.json", ".tegula.json.tmp"):
        if os.path.exists(out + end):
            os.unlink(out + end)
    what = "%s, allocation %d" % (name, k)
    check(r.code in (0, 71), "%s: %s" % (what, r))
    check("Sanitizer" not in r.err, "%s: %s" % (what, r.err[-4000:]))
    if r.code == 71:
        check("memory" in r.err or "allocation" in r.err, "%s: not a sentence about memory: %s" % (what, r.err))
        # Who holds what, what is free: but where the context itself, or a list of mem, could not be had.
        check("held now: " in r.err or k == 1 or name == "mem", "%s: no figures: %s" % (what, r.err))
        check(not whole, "%s: failed, yet the output has its name" % what)
    elif k:
        check(result == want, "%s: exit 0 with another result" % what)
    return result if k == 0 else r.code


def sweep(lab, pool, name, args, step, which="TEGULA_FAIL_ALLOC"):
    """Fails at every k up to the last allocation; ten successes in a row are the end."""
    k, fine, failed = 1, 0, 0
    want = one(lab, name, args, 0, None)
    while fine < 10:
        ks = range(k, k + 8 * step, step)
        for code in pool.map(lambda i: one(lab, name, args, i, want, which), ks):
            fine = fine + 1 if code == 0 else 0
            failed += code == 71
        k += 8 * step
        check(k < 100000, "%s: no end of allocations" % name)
    check(failed > 0, "%s: no allocation failed" % name)
    return failed


def test(lab, rest):
    step = int(rest[0]) if rest else 23
    image = picture(lab.path("image.tif"), 96, 80, 2)
    net = upscaler(lab.path("up.onnx"), 8)
    job = ["-m", net, image, "--normalize", "percentile:1,99", "--ram", "64MiB"]
    packed = picture(lab.path("packed.tif"), 640, 512, packed=True)
    kept = ["run", "-m", lab.denoiser, packed, "--ram", "64MiB", "--tile", "256x256", "--scratch",
            lab.dir]
    verbs = {"scratch": uses_scratch(lab, kept), "run": ["run"] + job + ["--compress", "zstd"], "plan": ["plan"] + job,
             "info": ["info", image, net], "verify": ["verify"] + job, "mem": ["mem", "--json"],
             "estimate": ["estimate", "batch", "-m", net, "--vram", "16GiB"],
             "copy": ["copy", image, "--compress", "zstd"]}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failed = {name: sweep(lab, pool, name, args, step) for name, args in verbs.items()}
        failed["raw"] = sweep(lab, pool, "raw", verbs["run"], step, "TEGULA_FAIL_RAW")
        print("allocations that failed: %s" % failed)


if __name__ == "__main__":
    import sys
    main(test, sys.argv, in_memory=True)
