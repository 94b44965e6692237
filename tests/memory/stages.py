#!/usr/bin/env python3
"""Networks whose operators read the whole image, in less memory than the whole image takes: the
run in stages gives the pixels of the uncut one, bit for bit, and the plan tells the truth.

    stages.py TEGULA MODELS [--long]

MODELS is the folder of the sample models (absent ones are left out); a three-dimensional U-Net
with instance norms is made here. Of each network, with --exact: a run with memory for all of it;
then runs with the least memory that plan says would do, with nearly as much as the uncut one
takes, and with one amount between, on one to three threads, from TIFF to TIFF and from .npy to
.npy, with and without --scratch. What was taken is held against the plan as peak.py does: never
more than predicted, and at least 1/1.10 of it where it is memory worth the name (64 MiB).
Without --long: smaller images, and of each network one form and fewer amounts.
"""
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

import drawn
import tiffmade
import watch
from onnxmade import ints

MIB = 1 << 20
WORTH = 64 * MIB  # below it the allowance for stacks and libraries is more than a tenth
# name, channels, sizes of the short run, of the long run
MODELS = [
    ("fns_candy_nc16", 3, [(120, 200)], [(448, 640), (321, 1025)]),
    ("mosaic_nc8", 3, [(192, 260)], [(640, 896), (513, 705)]),
    ("waifu2x_cunet_n1_x2", 3, [(100, 132)], [(256, 384), (196, 260)]),
    ("iat_lol_v1", 3, [(97, 131)], [(256, 352), (193, 321)]),
    ("nanoflownet", 2, [(320, 416)], [(512, 768), (1024, 1184)]),
    ("unet3d", 1, [(14, 66, 130)], [(34, 130, 194), (66, 98, 140)]),
]


def unet3d(path):
    """Strided convolutions down, transposed ones up, a norm behind each of the others."""
    net = drawn.Net(random.Random(3), 1, (0, 0, 0))

    def conv(x, from_, to, stride=1):
        y = net.node("Conv", [x, net.const([to, from_, 3, 3, 3]), net.const([to])], ints("kernel_shape", [3, 3, 3]),
                     ints("pads", [1] * 6), ints("strides", [stride] * 3))
        y = net.node("InstanceNormalization", [y, net.const([to]), net.const([to])], drawn.real_attr("epsilon", 1e-5))
        return net.node("LeakyRelu", [y], drawn.real_attr("alpha", 0.01))

    x = conv(conv("x", 1, 8), 8, 8)
    low = conv(conv(x, 8, 16, 2), 16, 16)
    up = net.node("ConvTranspose", [low, net.const([16, 8, 2, 2, 2])], ints("kernel_shape", [2, 2, 2]),
                  ints("strides", [2, 2, 2]))
    y = conv(net.node("Concat", [up, x], drawn.number_attr("axis", 1)), 16, 8)
    y = net.node("Conv", [y, net.const([2, 8, 1, 1, 1])], ints("kernel_shape", [1, 1, 1]))
    net.end(path, y, 5, 2, (0, 0, 0))


def write_npy(path, shape):
    """Float32 numbers around 3, none of them like its neighbour."""
    draw, count = random.Random(7), 1
    for n in shape:
        count *= n
    some = struct.pack("<4099f", *(3 + draw.gauss(0, 1) for _ in range(4099)))
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)}, }}".encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head)
        f.write((some * (count // 4099 + 1))[:4 * count])


class Checker:
    def __init__(self, tegula, tmp):
        self.tegula, self.tmp, self.wrong, self.staged = tegula, tmp, 0, 0

    def path(self, name):
        return os.path.join(self.tmp, name)

    def call(self, *args):
        return subprocess.run([self.tegula, *args], stdin=subprocess.DEVNULL, capture_output=True, check=False)

    def complain(self, row, what):
        self.wrong += 1
        print(f"{row}   WRONG: {what}", flush=True)

    def inputs(self, channels, size):
        """The same shape as an array and as an image."""
        npy, tif = self.path("in.npy"), self.path("in.tif")
        write_npy(npy, (1, channels) + size)
        if len(size) == 3:
            write_npy(self.path("volume.npy"), size)
            p = self.call("copy", self.path("volume.npy"), "-o", tif, "--axes", "ZYX", "-y", "-q")
            if p.returncode:
                self.complain("unet3d", p.stderr.decode())
        else:
            tiffmade.fill(tiffmade.Made(tif, size[1], size[0], channels))
        return {"npy": npy, "tif": tif}

    def job(self, model, image, form, more):
        """Options, and where the output is: a folder, since some networks have two."""
        return ["-m", model, image, "-o", self.path("out.tif") if form == "tif" else self.path("out/"), "--exact",
                *more]

    def take(self, form):
        """The numbers of what was written, and it is gone."""
        found = []
        if form == "tif":
            out, as_npy = self.path("out.tif"), self.path("pixels.npy")
            if self.call("copy", out, "-o", as_npy, "-y", "-q").returncode:
                return None
            names = [as_npy]
            for path in (out, out + ".tegula.json"):
                if os.path.exists(path):
                    os.remove(path)
        else:
            folder = self.path("out")
            names = [os.path.join(folder, n) for n in sorted(os.listdir(folder)) if n.endswith(".npy")]
        for name in names:
            with open(name, "rb") as f:
                found.append(f.read())
            os.remove(name)
        return found or None

    def least(self, job):
        """MiB that a refusal tells to give."""
        p = self.call("plan", *job, "--ram", "1MiB")
        told = re.search(r"give --ram (\d+)MiB", p.stderr.decode("utf-8", "replace"))
        return int(told.group(1)) if p.returncode == 71 and told else None

    def run(self, row, job, form, ram, want):
        """One amount; `want` None: memory for all of it, and what came of it is returned."""
        r = watch.run([self.tegula, "run", *job, "-y", "--json", "--ram", f"{ram}MiB"])
        plan = [json.loads(x) for x in r.stdout.splitlines() if x.startswith(b'{"event":"plan"')]
        if r.code or not r.done or not plan:
            return self.complain(row, f"exit {r.code}: {r.stderr.strip()[-200:]}")
        plan = plan[0]
        staged = any(line["name"] == "reductions" for line in plan["lines"])
        told, seen = r.done["predicted_peak_bytes"], max(r.peak, r.done["measured_peak_bytes"])
        row += (f" {ram:6} MiB {told / MIB:9.2f} {seen / MIB:9.2f} {told / seen:7.3f} {r.seconds:6.1f} s"
                f"  {plan['stages'] if staged else 1} stages")
        got = self.take(form)
        if want is not None and got != want:
            self.complain(row, "not the pixels of the uncut network")
        elif want is None and staged:
            self.complain(row, "in stages, with memory for all of it")
        elif told != plan["peak_bytes"]:
            self.complain(row, f"the first line has another peak: {plan['peak_bytes'] / MIB:.2f} MiB")
        elif told > ram * MIB:
            self.complain(row, "more is predicted than the budget has")
        elif seen > told:
            self.complain(row, "more memory than was predicted")
        elif seen >= WORTH and told > 1.10 * seen:
            self.complain(row, "predicted/measured is above 1.10")
        else:
            print(row, flush=True)
        self.staged += staged
        return got, plan["peak_bytes"]

    def many_threads(self, name, model):
        """Stacks are a part of the plan, also where there are many."""
        image = self.inputs(3, (256, 256))["tif"]
        for threads in (64, 128):
            more = ["--threads", str(threads), "--compress", "zstd"]
            self.run(f"{name:20} {threads:>12} threads", self.job(model, image, "tif", more), "tif", 4096, None)

    def check(self, name, model, image, form, size, ways):
        """`ways`: (place between the least and the uncut, in quarters, threads, options)."""
        row = f"{name:20} {'x'.join(str(n) for n in size):>12} {form}"
        uncut = self.run(row, self.job(model, image, form, []), form, 4096, None)
        if not uncut or uncut[0] is None:
            return self.complain(row, "no output") if uncut else None
        before = self.staged
        for quarters, threads, more in ways:
            job = self.job(model, image, form, ["--threads", str(threads), *more])
            least, most = self.least(job), uncut[1] // MIB
            if least is None:
                self.complain(row, "no refusal")
            elif least <= most:
                self.run(row + f" {threads} {' '.join(m for m in more if m.startswith('--')):9}", job, form,
                         least + (most - least) * quarters // 4, uncut[0])
        if self.staged == before:
            self.complain(row, "never ran in stages")


def main():
    tegula, models = sys.argv[1:3]
    long_run = "--long" in sys.argv
    only = os.environ.get("TG_STAGES_ONLY")
    with tempfile.TemporaryDirectory() as tmp:
        c = Checker(tegula, tmp)
        scratch = ["--scratch", tmp]
        few = ([(0, 2, [])], [(2, 3, scratch)])
        all_ways = [(q, t, more) for more in ([], scratch) for q, t in ((0, 1), (2, 2), (3, 3))]
        ran = 0
        for number, (name, channels, small, large) in enumerate(MODELS):
            model = os.path.join(models, name, "model.onnx")
            if name == "unet3d":
                model = os.path.join(tmp, "unet3d.onnx")
                unet3d(model)
            if not os.path.exists(model) or (only and only not in name):
                continue
            for size in large if long_run else small:
                images = c.inputs(channels, size)
                for form in ("npy", "tif") if long_run else (("npy", "tif")[number // 2 % 2],):
                    c.check(name, model, images[form], form, size, all_ways if long_run else few[number % 2])
                    ran += 1
            if name == "fns_candy_nc16":
                c.many_threads(name, model)
    print(f"{ran} jobs, {c.staged} runs in stages, {c.wrong} wrong")
    return 1 if c.wrong or not c.staged else 0


if __name__ == "__main__":
    sys.exit(main())
