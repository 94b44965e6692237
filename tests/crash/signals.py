"""Ctrl-C, two runs at once, and what may not change between a run and the one that goes on.

    signals.py TEGULA SOURCE_DIR"""
import json
import os
import shutil
import signal
import subprocess
import time

from crashlib import Job, check, main, picture, upscaler


def interrupted(job, env=None, more=()):
    """Leave the output half done, killed while it computes."""
    for k in range(40, 2000, 7):
        job.clean()
        r = job.run(dict(env or {}, TEGULA_FAIL_IO="%d:kill" % k), more)
        check(r.code == -9, "%s: cannot be interrupted: %s" % (job.name, r))
        if job.phase() == "bands" and job.slot()["tiles"] > 0:
            return


def test_signal(job, sig):
    job.clean()
    p = job.start()
    until = time.monotonic() + 30
    while p.poll() is None and time.monotonic() < until:
        s = job.slot()
        if s and s["tiles"] > 0:
            break
        time.sleep(0.0005)
    sent = time.monotonic()
    p.send_signal(sig)
    r = job.lab.wait(p)
    took = time.monotonic() - sent
    check(r.code == 128 + sig, "signal %d: %s" % (sig, r))
    check(took < 5, "signal %d: stopped after %.1f s" % (sig, took))
    check("same command" in r.err, "signal %d: does not say how to go on: %s" % (sig, r.err))
    slot = job.slot()
    check(slot and not slot["final"] and not os.path.exists(job.out), "signal %d: no journal" % sig)
    done = job.finish("after signal %d" % sig)
    check(done["tiles_resumed"] >= slot["tiles"] > 0, "signal %d: tiles were lost" % sig)
    return took


def test_two_at_once(job):
    job.clean()
    first = job.start()
    until = time.monotonic() + 30
    while first.poll() is None and job.slot() is None and time.monotonic() < until:
        time.sleep(0.0005)
    first.send_signal(signal.SIGSTOP)  # holds the output for as long as we look
    second = job.run()
    first.send_signal(signal.SIGCONT)
    r = job.lab.wait(first)
    check(second.code == 75, "a second run on the same output: %s" % second)
    check(r.code == 0, "the first of two runs: %s" % r)
    job.confirm("two at once")


def expect_refusal(job, code, word, what, env=None, more=()):
    r = job.run(env, more)
    check(r.code == code, "%s: expected exit %d, got %s" % (what, code, r))
    check(word in r.err, "%s: the sentence does not name \"%s\": %s" % (what, word, r.err))


def test_changes(lab, job, image, model):
    """Each change is refused by its name; undone, the run goes on to the same bytes."""
    interrupted(job)
    with open(image, "r+b") as f:
        f.seek(5000)
        kept = f.read(1)
        f.seek(5000)
        f.write(bytes([kept[0] ^ 1]))
    expect_refusal(job, 65, "input", "input changed")
    with open(image, "r+b") as f:
        f.seek(5000)
        f.write(kept)
    os.utime(image, (1_000_000_000, 1_000_000_000))  # its bytes are as they were, that is enough
    shutil.copy(model, model + ".kept")
    old = os.stat(model)
    with open(model, "r+b") as f:
        data = bytearray(f.read())
        data[data.rfind(b"w0") + 40] ^= 1  # one bit of a weight
        f.seek(0)
        f.write(data)
    expect_refusal(job, 65, "model", "model changed")
    shutil.copy(model + ".kept", model)
    os.utime(model, ns=(old.st_atime_ns, old.st_mtime_ns))
    expect_refusal(job, 65, "normalize", "normalisation changed", more=["--normalize", "minmax"])
    expect_refusal(job, 65, "dtype", "type changed", more=["--dtype", "uint8"])
    expect_refusal(job, 65, "codec", "compression changed", more=["--compress", "deflate"])
    expect_refusal(job, 65, "region", "region changed", more=["--roi", "0:128,0:128"])
    if lab.run(["plan"] + job.args[1:] + ["--precision", "bf16"]).code == 0:
        expect_refusal(job, 65, "precision", "precision changed", more=["--precision", "bf16"])
    r = job.run(more=["--dtype", "uint8"])
    check("-y" in r.err, "the refusal does not say that -y starts over: %s" % r)
    job.finish("after refusals")


def test_yes_starts_over(lab, job):
    """-y goes on with this job's interrupted output, and discards another job's."""
    more = ["--dtype", "uint8", "--tile", "64x64", "-y"]
    job.clean()
    check(job.run(more=more).code == 0, "an undisturbed run of the other job")
    with open(job.out, "rb") as f:
        want = f.read()
    interrupted(job)
    check(job.run(more=["-y"]).done()["tiles_resumed"] > 0, "-y with the same job began anew")
    job.confirm("-y with the same job")
    interrupted(job)
    r = job.run(more=more)
    check(r.code == 0, "-y with another job: %s" % r)
    check(r.done()["tiles_resumed"] == 0, "-y with another job went on with the old tiles")
    check("discarded" in r.err, "-y discards in silence: %s" % r.err)
    with open(job.out, "rb") as f:
        check(f.read() == want, "-y with another job: other bytes than undisturbed")
    check(not os.path.exists(job.out + ".journal"), "-y with another job left a journal")


def without_reader(lab, args, stream, env=None):
    """Run with nobody reading stdout or stderr; the exit code and what the other one says."""
    ours, its = os.pipe()
    os.close(ours)  # before there is anybody to write
    p = subprocess.Popen([lab.tegula] + args, env=lab.env(env), stdin=subprocess.DEVNULL, text=True,
                         **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: its})
    os.close(its)
    other = p.stderr if stream == "stdout" else p.stdout
    said = other.read()
    other.close()
    return p.wait(60), said


def test_nobody_reads(lab, job, image):
    """SIGPIPE kills nobody: a run comes to its end. Results that did not reach their reader are 74."""
    for stream, more, want in (("stdout", [], 74), ("stdout", ["-q"], 74), ("stderr", ["-v"], 0), ("stderr", ["-q"], 0)):
        job.clean()
        code, said = without_reader(lab, job.command(more), stream, job.env)
        check(code == want, "nobody reads %s of a run %s: exit %s: %s" % (stream, more, code, said[-300:]))
        check(os.path.exists(job.out), "nobody reads %s of a run: it has no output" % stream)
        job.confirm("nobody reads " + stream)
    for args in (["info", image, "--json"], ["info", image], ["plan"] + job.args[1:], ["plan"] + job.args[1:] + ["--json"],
                 ["mem", "--watch", "10ms"], ["mem", "--watch", "10ms", "--json"],
                 ["plan"] + job.args[1:] + ["--trace", "/dev/stdout", "-q"]):
        code, said = without_reader(lab, args, "stdout")
        check(code == 74, "nobody reads %s: exit %s: %s" % (args[:2], code, said[-300:]))


def test_finished(job):
    job.clean()
    check(job.run().code == 0, "an undisturbed run")
    check(job.run().code == 73, "a finished output without -y")
    job.confirm("untouched by the refused run")
    r = job.run(more=["-y"])
    check(r.code == 0, "a finished output with -y: %s" % r)
    job.confirm("written again by -y")


def test_less_memory(lab, job):
    """The old plan does not fit any more: another is found on the same file grid; equal pixels."""
    roomy = ["--ram", "256MiB", "--exact"]  # else the kernels follow the budget
    job.clean()
    check(job.run(more=roomy).code == 0, "the roomy run")
    raw = lab.path("whole.npy")
    check(lab.run(["copy", job.out, "-o", raw, "-y"]).code == 0, "copy of the whole")
    with open(raw, "rb") as f:
        want = f.read()
    interrupted(job, more=roomy)
    small = smallest_ram(lab, job)
    r = job.run(more=["--ram", small, "--exact"])
    check(r.code == 0, "resume with --ram %s: %s" % (small, r))
    check(r.done()["tiles_resumed"] > 0, "resume with less memory: began from nothing")
    check(lab.run(["copy", job.out, "-o", raw, "-y"]).code == 0, "copy of the resumed")
    with open(raw, "rb") as f:
        check(f.read() == want, "resume with --ram %s: other pixels" % small)
    return small


def smallest_ram(lab, job):
    """A budget in which the roomy plan does not fit, but some plan does."""
    args = ["plan"] + job.args[1:] + ["--json", "--exact"]
    r = lab.run(args + ["--ram", "256MiB"])
    roomy = json.loads(r.out.strip().splitlines()[-1])["peak_bytes"]
    for mib in range(8, 256):
        if lab.run(args + ["--ram", "%dMiB" % mib]).code == 0:
            check(mib + 4 << 20 < roomy, "no smaller plan than the roomy one")
            return "%dMiB" % (mib + 3)
    check(False, "no plan fits")


def test_other_processor(lab, job):
    """Begun with AVX-512: a machine held down to AVX2 is told so; one that has it goes on."""
    probe = lab.run(["plan"] + job.args[1:] + ["--isa", "avx512"])
    if probe.code != 0:
        return "skipped (no AVX-512 here)"
    job.clean()
    check(job.run({"TEGULA_ISA": "avx2"}).code == 0, "an AVX2 run")
    with open(job.out, "rb") as f:
        avx2 = f.read()
    interrupted(job, env={"TEGULA_ISA": "avx512"})
    expect_refusal(job, 65, "avx512", "avx512 output on avx2", env={"TEGULA_ISA": "avx2"})
    job.finish("avx512 output, on avx512 again")
    interrupted(job, env={"TEGULA_ISA": "avx2"})
    for word in ("avx2", "avx512", "-y"):
        expect_refusal(job, 65, word, "avx2 output, avx512 asked for", more=["--isa", "avx512"])
    r = job.run()  # this machine would choose AVX-512; the output is continued with AVX2
    check(r.code == 0, "avx2 output on avx512: %s" % r)
    with open(job.out, "rb") as f:
        check(f.read() == avx2, "avx2 output finished on avx512: other bytes")
    return "done"


def test(lab, rest):
    image = picture(lab.path("image.tif"), 512, 384)
    model = upscaler(lab.path("up.onnx"), width=32)
    slow = Job(lab, "slow", ["run", "-m", lab.denoiser, image, "--tile", "64x64", "--ram", "64MiB",
                             "--threads", "1"], {"TEGULA_SYNC_TILES": 1}).learn()
    quick = Job(lab, "quick", ["run", "-m", model, image, "--normalize", "percentile:1,99",
                               "--dtype", "float32", "--compress", "zstd"],
                {"TEGULA_SYNC_TILES": 1}).learn()
    took = max(test_signal(slow, signal.SIGINT), test_signal(slow, signal.SIGTERM))
    test_nobody_reads(lab, slow, image)
    test_two_at_once(slow)
    test_finished(quick)
    test_changes(lab, quick, image, model)
    test_yes_starts_over(lab, quick)
    isa = test_other_processor(lab, slow)
    wide = picture(lab.path("wide.tif"), 2048, 192)  # a full-width plan is far from the smallest
    free = Job(lab, "free", ["run", "-m", lab.denoiser, wide, "--threads", "1"],
               {"TEGULA_SYNC_TILES": 1})
    small = test_less_memory(lab, free)
    print("stopped within %.2f s; less memory: %s; other processor: %s" % (took, small, isa))


if __name__ == "__main__":
    import sys
    main(test, sys.argv)
