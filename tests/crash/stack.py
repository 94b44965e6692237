"""A stack of 64 KiB (`ulimit -s 64`) is enough for every verb, refusals too. Tried with 56: the strings of the environment
lie there too, the rest begins somewhere in 8 KiB, and other processors and kernels take a few more.

    stack.py TEGULA SOURCE_DIR"""
import resource
import subprocess
import sys

from crashlib import check, main, picture, upscaler


def small():
    resource.setrlimit(resource.RLIMIT_STACK, (56 << 10, 56 << 10))


def test(lab, rest):
    net = upscaler(lab.path("net.onnx"), 32)
    image, out, log = picture(lab.path("im.tif"), 900, 700), lab.path("out.tif"), lab.path("log.csv")
    photo, array = lab.path("photo.png"), lab.path("x.npy")
    run = ["run", "-m", net, image, "-y", "-o"]
    verbs = [(0, ["info", image]), (0, ["info", net]), (0, ["plan", "-m", net, image]), (71, ["plan", "-m", net, image, "--ram", "1MiB"]),
             (0, run + [out, "--log", log, "--plot"]),
             (0, run + [out, "--normalize", "percentile:1,99", "--stats", lab.path("s.json"), "--pyramid", "mean"]),
             (0, run + [photo, "--dtype", "uint8", "--normalize", "minmax", "--on-bad-tile", "fill"]),
             (0, run + [array]), (0, ["copy", image, "-o", out, "-y"]), (71, ["copy", image, "-o", out, "-y", "--ram", "1MiB"]),
             (0, ["copy", photo, "-o", out, "-y"]), (0, ["verify", "-m", net, image]),
             (0, ["preview", "-m", net, image, "-o", lab.path("p.png")]), (0, ["doctor"]), (0, ["mem"]),
             (0, ["plot", log, "-o", lab.path("memory.png")])]
    for want, args in verbs:
        r = subprocess.run([lab.tegula] + args, preexec_fn=small, env=lab.env(None), stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=60)
        check(r.returncode == want, "%s: exit %s: %s" % (args, r.returncode, r.stderr[-300:]))
    print("%d commands on a stack of 56 KiB" % len(verbs))


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
