"""What is read may be a pipe: process substitution works, what is silent can be stopped, what has no end
has one.

    pipes.py TEGULA SOURCE_DIR [--slow]     --slow: also waits for the limits of time (a minute)"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "crash"))
from crashlib import check, main, picture, upscaler  # noqa: E402

SOON = 5  # seconds in which a signal is answered; more than a loaded machine needs


class Desk:
    def __init__(self, lab):
        self.lab = lab
        self.image = picture(lab.path("cells.tif"), 64, 64)
        self.model = upscaler(lab.path("net.onnx"), 4)
        self.out = lab.path("out.tif")

    def write(self, name, text):
        with open(self.lab.path(name), "w") as f:
            f.write(text if isinstance(text, str) else json.dumps(text))
        return self.lab.path(name)

    def clean(self):
        for end in ("", ".partial", ".journal", ".tegula.json"):
            if os.path.exists(self.out + end):
                os.remove(self.out + end)

    def shell(self, words, limit=60):
        """A bash command in which T is the command under test."""
        self.clean()
        r = subprocess.run(["bash", "-c", 'T() { "%s" "$@"; }; %s' % (self.lab.tegula, words)], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.lab.env(None), timeout=limit)
        return r

    def bytes(self):
        with open(self.out, "rb") as f:
            return f.read()


def test_substitution(lab):
    """Each small file as a pipe gives what the file gives."""
    d = Desk(lab)
    job = d.write("job.json", {"normalize": "minmax", "dtype": "uint8"})
    descriptor = d.write("d.json", {"normalize": "zscore", "output": "denormalize"})
    stats = lab.path("s.json")
    check(d.shell("T run -m '%s' '%s' -o '%s' --normalize minmax --stats '%s'" % (d.model, d.image, d.out, stats)).returncode == 0,
          "statistics to read")
    for option, path, more in (("--config", job, ""), ("--descriptor", descriptor, ""), ("--stats", stats, "--normalize minmax")):
        base = "T run -m '%s' '%s' -o '%s' %s %s " % (d.model, d.image, d.out, more, option)
        r = d.shell(base + "'%s'" % path)
        check(r.returncode == 0, "%s FILE: %s" % (option, r.stderr))
        want = d.bytes()
        for what in ("<(cat '%s')" % path, "<(head -c 20 '%s'; sleep 0.5; tail -c +21 '%s')" % (path, path),
                     "/dev/stdin < <(cat '%s')" % path):
            r = d.shell(base + what)
            check(r.returncode == 0, "%s %s: exit %d: %s" % (option, what, r.returncode, r.stderr[-300:]))
            check(d.bytes() == want, "%s %s: other bytes than with the file" % (option, what))
    # A refusal tries other settings and asks for the descriptor again and again.
    r = d.shell("T run -m '%s' '%s' -o '%s' --ram 1MiB --descriptor <(cat '%s')" % (d.model, d.image, d.out, descriptor))
    by_file = d.shell("T run -m '%s' '%s' -o '%s' --ram 1MiB --descriptor '%s'" % (d.model, d.image, d.out, descriptor))
    check(r.returncode == by_file.returncode == 71, "a refusal by a pipe: %d, by a file: %d" % (r.returncode, by_file.returncode))
    check(len(r.stderr.splitlines()) == len(by_file.stderr.splitlines()),
          "a refusal says less of a pipe:\n%s\nthan of a file:\n%s" % (r.stderr, by_file.stderr))
    r = d.shell("T run -m '%s' '%s' -o '%s' --log '%s' && T plot <(cat '%s') -o '%s'" % (
        d.model, d.image, d.out, lab.path("m.csv"), lab.path("m.csv"), lab.path("m.svg")))
    check(r.returncode == 0 and os.path.exists(lab.path("m.svg")), "plot <(...): %s" % r.stderr[-300:])
    r = d.shell("T run -m '%s' '%s' -o '%s' --config <(echo '{\"dtype\": ')" % (d.model, d.image, d.out))
    check(r.returncode == 65 and not os.path.exists(d.out), "half a job file by a pipe: %d %s" % (r.returncode, r.stderr))
    r = d.shell("T run -m '%s' '%s' -o '%s' --config <(true)" % (d.model, d.image, d.out))
    check(r.returncode == 65, "an empty job file by a pipe: %d %s" % (r.returncode, r.stderr))


def test_no_end(lab):
    """More than a small file may have, from what never ends."""
    d = Desk(lab)
    for option in ("--config", "--descriptor", "--stats"):
        for source in ("<(yes)", "<(head -c 40000000 /dev/zero | tr '\\0' ' ')", "/dev/zero"):
            r = d.shell("T run -m '%s' '%s' -o '%s' --normalize zscore %s %s" % (d.model, d.image, d.out, option, source))
            check(r.returncode in (64, 65), "%s %s: exit %d: %s" % (option, source, r.returncode, r.stderr[-200:]))
            check(not os.path.exists(d.out), "%s %s made an output" % (option, source))
    r = d.shell("T plot <(yes) -o '%s'" % lab.path("yes.svg"))
    check(r.returncode == 65, "plot <(yes): %d" % r.returncode)


def silent(d):
    """Commands that wait for a FIFO that nobody opens at its other end, one each."""
    def pipe(k):
        path = d.lab.path("silent%d.json" % k)
        if not os.path.exists(path):
            os.mkfifo(path)
        return path

    def run(k, option):
        return ["run", "-m", d.model, d.image, "-o", d.lab.path("out%d.tif" % k), "--normalize", "zscore", option, pipe(k)]
    return [run(k, option) for k, option in enumerate(("--config", "--descriptor", "--stats", "--log", "--trace"))] + [
        ["plot", "-o", d.lab.path("never.svg"), pipe(5)], ["plan", "-m", d.model, d.image, "--machine", pipe(6)],
        ["estimate", "data", pipe(7)]]


def test_silence_is_stopped(lab):
    """A signal ends the waiting, and leaves nothing."""
    d = Desk(lab)
    running = [(" ".join(args[:1] + args[-2:]), lab.start(args)) for args in silent(d)]
    time.sleep(1)
    for what, p in running:
        check(p.poll() is None or p.returncode == 65, "%s did not wait: %s" % (what, p.returncode))
        at = time.monotonic()
        p.send_signal(signal.SIGINT)
        r = lab.wait(p, 30)
        check(r.code in (65, 130), "%s, stopped: %s" % (what, r))
        check(time.monotonic() - at < SOON, "%s is deaf for %.1f s" % (what, time.monotonic() - at))
    left = [n for n in os.listdir(lab.dir) if n.startswith("out")]
    check(not left, "stopped, left %s" % left)


def test_silence_ends(lab):
    """And without one it ends by itself."""
    d = Desk(lab)
    running = [(args, lab.start(args)) for args in silent(d)]
    for args, p in running:
        r = lab.wait(p, 90)
        check(r.code == 74, "%s: %s" % (" ".join(args[-2:]), r))
    left = [n for n in os.listdir(lab.dir) if n.startswith("out")]
    check(not left, "left %s" % left)


def test_nobody_named_it(lab):
    """A pipe where a file of ours, or the model's descriptor, would be is not waited for."""
    d = Desk(lab)
    cache, folder = lab.path("cache"), lab.path("beside")
    for name in (cache, folder):
        os.mkdir(name)
    for name in ("lessons.json", "calibration.json", "devices.json"):
        os.mkfifo(os.path.join(cache, name))
    for words in ("plan -m '%s' '%s'" % (d.model, d.image), "run -m '%s' '%s' -o '%s'" % (d.model, d.image, d.out), "doctor"):
        r = d.shell("TEGULA_LEARN=yes TEGULA_CACHE='%s' T %s" % (cache, words), SOON)
        check(r.returncode == 0, "%s: %s" % (words, r.stderr))
    shutil.copy(d.model, os.path.join(folder, "net.onnx"))
    os.mkfifo(os.path.join(folder, "net.json"))
    r = d.shell("T plan -m '%s/net.onnx' '%s'" % (folder, d.image), SOON)
    check(r.returncode == 65 and "is a pipe" in r.stderr, "descriptor: %d, %s" % (r.returncode, r.stderr))


def test(lab, rest):
    if not shutil.which("bash"):
        print("skipped: there is no bash")
        return 77
    tests = [test_substitution, test_no_end, test_silence_is_stopped, test_nobody_named_it]
    if "--slow" in rest:
        tests = [test_silence_ends]
    for one in [globals()[n] for n in rest if n.startswith("test")] or tests:
        one(lab)
        print("ok  %s" % one.__name__, flush=True)


if __name__ == "__main__":
    main(test, sys.argv)
