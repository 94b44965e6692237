"""Statistics of --normalize: whose they are, where they are kept, and what a receipt says of them.

    pixel_statistics.py TEGULA SOURCE"""
import json
import os
import signal
import subprocess
import time

from verbs_help import TEGULA, expect, main, tegula_run
from gallery_files import GREY, Tiff, floats, model, node  # found by verbs_help

W, H, PAGES = 96, 64, 3
WORDS = ["-m", "net.onnx", "in.tif", "--normalize", "minmax", "-y"]


def sets(name):
    with open(name) as f:
        return json.load(f)["channels"]


def methods(name):
    with open(name + ".tegula.json") as f:
        return json.load(f)["methods"]


def page(i):
    return bytes(min(255, i * 3 + x + (y > H // 2) * 100) for y in range(H) for x in range(W))


def write_image(name, channels):
    """PAGES planes, of one channel each or all of one."""
    t = Tiff()
    for i in range(PAGES):
        said = {270: (2, b'{"axes": "CYX", "shape": [%d, %d, %d]}\0' % (PAGES, H, W))} if channels and i == 0 else {}
        t.directory({256: (4, W), 257: (4, H), 258: (3, 8), 259: (3, 1), **said, 262: (3, 1), 273: (4, t.add(page(i))), 277: (3, 1),
                     278: (4, H), 279: (4, W * H)})
    with open(name, "wb") as f:
        f.write(bytes(t.out))


def verbs_write_what_a_run_writes():
    tegula_run("run", *WORDS, "-o", "a.tif", "--stats", "run.json")
    tegula_run("preview", *WORDS, "-o", "a.png", "--stats", "preview.json")
    tegula_run("verify", *[w for w in WORDS if w != "-y"], "--stats", "verify.json")
    for name in ("preview.json", "verify.json"):
        expect(os.path.exists(name) and sets(name) == sets("run.json"), f"{name} is that of a run")
    expect("statistics over the whole image" in methods("a.tif"), methods("a.tif"))


def a_region_says_that_it_is_one():
    r = tegula_run("run", *WORDS, "-o", "b.tif", "--roi", "0:32,0:40", "--stats", "region.json")
    expect("the statistics of --normalize are of the region" in r.stderr, r.stderr)
    expect(sets("region.json")[0]["count"] == 32 * 40 * PAGES, "statistics of the region")
    text = methods("b.tif")
    expect("statistics over a region" in text and "whole image" not in text, text)
    r = tegula_run("run", *WORDS, "-o", "c.tif", "--roi", "0:32,0:40", "--stats", "run.json")
    expect("are of the region" not in r.stderr and "statistics given in a file (run.json)" in methods("c.tif"), r.stderr)


def what_has_none_names_none():
    tegula_run("run", "-m", "net.onnx", "in.tif", "-o", "d.tif", "--normalize", "scale:1/255", "--dtype", "uint8")
    text = methods("d.tif")
    expect("statistics" not in text and "whose inverse maps the result back" in text, text)


def planes_that_were_left_out_have_none():
    words = ["-m", "net.onnx", "channels.tif", "--normalize", "minmax", "-y"]
    tegula_run("run", *words, "-o", "e.tif", "--planes", "1", "--stats", "one.json")
    tegula_run("run", *words, "-o", "f.tif", "--planes", "1", "--stats", "one.json")
    expect("statistics given in a file (one.json)" in methods("f.tif"), methods("f.tif"))
    expect("statistics over the planes that were processed" in methods("e.tif"), methods("e.tif"))
    tegula_run("run", *words, "-o", "i.tif", "--planes", "1", "--roi", "0:32,0:40")
    expect("statistics over a region of the planes that were processed" in methods("i.tif"), methods("i.tif"))
    r = tegula_run("run", *words, "-o", "g.tif", "--stats", "one.json", code=64)
    expect("one.json holds no statistics of channel 0" in r.stderr, r.stderr)


def filled_regions_are_said():
    tegula_run("run", "-m", "net.onnx", "lzw.tif", "-o", "h.tif", "--on-bad-tile", "fill", code=65)
    expect("1 region of the input could not be decoded" in methods("h.tif"), methods("h.tif"))


def meanwhile(text, seconds):
    """A run in whose --stats file `text` is put so long after its plan: (exit code, stderr); None: it had written it."""
    words = ["run", "-m", "net.onnx", "large.tif", "--normalize", "zscore", "-o", "k.tif", "-y", "--stats", "k.json", "--json", "--ram", "64MiB"]
    p = subprocess.Popen([TEGULA, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    p.stdout.readline()  # the plan: no file was there
    time.sleep(seconds)
    p.send_signal(signal.SIGSTOP)
    if os.waitid(os.P_PID, p.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code != os.CLD_STOPPED:
        p.communicate(timeout=100)
        os.unlink("k.json")
        return None
    sooner = os.path.exists("k.json")
    if not sooner:
        with open("k.json", "w") as f:
            f.write(text)
    p.send_signal(signal.SIGCONT)
    _, stderr = p.communicate(timeout=100)
    os.unlink("k.json")
    return None if sooner else (p.returncode, stderr)


def what_another_run_wrote_meanwhile_holds():
    large = Tiff()
    pixels = large.add(bytes(range(250)) * 100000)
    large.directory({256: (4, 5000), 257: (4, 5000), 258: (3, 8), 259: (3, 1), 262: (3, 1), 273: (4, pixels), 277: (3, 1), 278: (4, 5000),
                     279: (4, 25000000)})
    with open("large.tif", "wb") as f:
        f.write(bytes(large.out))
    t0 = time.time()
    tegula_run("run", "-m", "net.onnx", "large.tif", "--normalize", "zscore", "-o", "k.tif", "-y", "--stats", "own.json")
    took = time.time() - t0
    with open("own.json") as f:
        own = f.read()
    other = json.loads(own)
    other["channels"][0]["mean"] += 1
    for text, refused in ((own, False), (json.dumps(other), True)):
        tries, said, k = [], [], 0
        while k < 8 or (refused and not said and k < 100):  # until one was gathering
            tries += [t for t in [meanwhile(text, took * (k % 17) / 20)] if t]
            said = [code for code, stderr in tries if "was written meanwhile, with other statistics" in stderr]
            k += 1
        expect(bool(said) == refused and set(said) <= {65}, f"refused {said}")  # else it was there before they were gathered
        expect(len([code for code, _ in tries if code == 0]) == len(tries) - len(said), f"{tries}")


def other_files_are_named():
    os.symlink("nothing.json", "link.json")
    r = tegula_run("run", *WORDS, "-o", "l.tif", "--stats", "link.json", code=73)
    expect("link.json: exists already and is not replaced" in r.stderr and not os.path.lexists("link.json.tmp"), r.stderr)
    tegula_run("run", "-m", "net.onnx", "channels.tif", "--normalize", "minmax", "-o", "m.tif", "--stats", "three.json")
    r = tegula_run("run", *WORDS, "-o", "n.tif", "--stats", "three.json", code=64)
    expect("three.json holds statistics of 3 channels, the image has 1" in r.stderr, r.stderr)


def prepare():
    with open("net.onnx", "wb") as f:
        f.write(model([node("Conv", ["x", "w"], ["y"], kernel_shape=[3, 3], pads=[1] * 4)], [floats("w", [1, 1, 3, 3])], GREY))
    write_image("in.tif", 0)
    write_image("channels.tif", 1)
    t = Tiff()
    t.directory({256: (4, W), 257: (4, H), 258: (3, 8), 259: (3, 5), 262: (3, 1), 273: (4, t.add(bytes(16))), 277: (3, 1), 278: (4, H),
                 279: (4, 16)})
    with open("lzw.tif", "wb") as f:
        f.write(bytes(t.out))


main(prepare, [verbs_write_what_a_run_writes, a_region_says_that_it_is_one, what_has_none_names_none,
               planes_that_were_left_out_have_none, filled_regions_are_said, what_another_run_wrote_meanwhile_holds,
               other_files_are_named])
