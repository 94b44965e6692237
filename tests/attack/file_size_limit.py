"""A limit on the size of files (ulimit -f) is an error of writing: exit 74 and a sentence, no signal.

    file_size_limit.py TEGULA SOURCE_DIR

Then, without the limit, the same command ends with the bytes that it has when there was none."""
import os
import resource
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from truncated_input import array, read  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crash"))
from crashlib import check, main, picture  # noqa: E402


def limited(lab, args, limit):
    """Popen gives SIGXFSZ back its default, which kills."""
    p = subprocess.run([lab.tegula] + args, env=lab.env({"TEGULA_SYNC_TILES": 5}), text=True,
                       stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    return p.returncode, p.stderr


def attack(lab, name, args, out):
    path = lab.path(name + out)
    command = args + ["-o", path]
    r = lab.run(command, {"TEGULA_SYNC_TILES": 5})
    check(r.code == 0, "%s: without a limit: %s" % (name, r))
    want = read(path)
    for part in (0.02, 0.5, 0.95):
        for end in ("", ".tegula.json"):
            if os.path.exists(path + end):
                os.unlink(path + end)
        code, err = limited(lab, command, int(len(want) * part))
        what = "%s: a limit at %.2f of the output" % (name, part)
        check(code == 74, "%s: exit %d: %s" % (what, code, err))
        check("File too large" in err, "%s: does not say why: %s" % (what, err))
        check(not os.path.exists(path), "%s: a file that is not whole got the name" % what)
        r = lab.run(command, {"TEGULA_SYNC_TILES": 5})
        check(r.code == 0, "%s, then none: %s" % (what, r))
        check(read(path) == want, "%s, then none: other bytes" % what)


def test(lab, rest):
    image = picture(lab.path("noisy.tif"), 512, 512, kind="float32")
    x = array(lab.path("x.npy"), (1, 1, 384, 384))
    run = ["run", "-m", lab.denoiser, "--ram", "64MiB", "--tile", "64x64"]
    attack(lab, "image", run + [image], ".tif")
    attack(lab, "array", run + [x], ".npy")
    attack(lab, "copy", ["copy", image], ".tif")
    attack(lab, "copy-to-array", ["copy", image], ".npy")


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
