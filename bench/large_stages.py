#!/usr/bin/env python3
"""A network that reads whole images, over one larger than memory: file to file, stage by stage.

    python3 bench/large_stages.py --build build-release --scratch DIR [--side 8192] [--ram 512MiB] [--model fns_candy_nc16]
    python3 bench/large_stages.py --onnxruntime 24 [--side 16384] [--model waifu2x_cunet_n1_x2]

Beside the large image the same network runs, uncut and in turns, over a part of --part pixels that fits: `ratio` is the rate of the first over
that of the second. A row has time, peak as planned and as measured, and what passed between stages on disk, in bytes for each pixel of the image."""
import argparse
import json
import os
import statistics
import struct
import subprocess
import sys
import tempfile


def draw(path, side):
    """An RGB TIFF of side x side pixels, uncompressed, 64 rows a strip."""
    rows = 64
    strips = side // rows
    entry = lambda tag, kind, n, value: struct.pack("<HHII", tag, kind, n, value)  # noqa: E731
    behind = 8 + side * side * 3
    lists = struct.pack("<%dI" % strips, *(8 + k * rows * side * 3 for k in range(strips))) + \
        struct.pack("<%dI" % strips, *([rows * side * 3] * strips)) + struct.pack("<3H", 8, 8, 8)
    entries = [entry(256, 4, 1, side), entry(257, 4, 1, side), entry(258, 3, 3, behind + 8 * strips), entry(259, 3, 1, 1),
               entry(262, 3, 1, 2), entry(273, 4, strips, behind), entry(277, 3, 1, 3), entry(278, 4, 1, rows),
               entry(279, 4, strips, behind + 4 * strips)]
    row = bytes((x * x // 97 + 31 * c + (x * 2654435761 >> 7) % 23) % 256 for x in range(side) for c in range(3))
    with open(path, "wb") as f:
        f.write(struct.pack("<2sHI", b"II", 42, behind + len(lists)))
        for y in range(side):
            at = 3 * (y * 37 % side)
            f.write(row[at:] + row[:at])
        f.write(lists + struct.pack("<H", len(entries)) + b"".join(entries) + struct.pack("<I", 0))


def tegula(build, words, cache):
    r = subprocess.run([os.path.join(build, "cli", "tegula")] + words + ["--json"], capture_output=True, text=True,
                       env=dict(os.environ, TEGULA_CACHE=cache, TEGULA_CUDA_PLUGIN="none"))
    if r.returncode:
        raise SystemExit(r.stderr)
    return json.loads(r.stdout.splitlines()[-1])


def peer(model, side, gib, threads):
    """In a process of its own, whose memory may run out."""
    code = '''
import json, resource, sys, time
import numpy, onnxruntime
model, side, gib, threads = sys.argv[1], *map(int, sys.argv[2:])
resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
options.log_severity_level = 4
net = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
image, start = numpy.full((1, 3, side, side), 0.5, numpy.float32), time.monotonic()
try:
    net.run(None, {net.get_inputs()[0].name: image})
    said = "finished"
except Exception as e:
    said = str(e)
print(json.dumps({"onnxruntime": onnxruntime.__version__, "outcome": said.strip()[-90:], "seconds": round(time.monotonic() - start, 1),
                  "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}))
'''
    r = subprocess.run([sys.executable, "-c", code, model, str(side), str(gib), str(threads)], capture_output=True, text=True)
    got = json.loads(r.stdout) if r.returncode == 0 else {"outcome": "ended with %d: %s" % (r.returncode, r.stderr[-200:])}
    print(json.dumps(dict({"bench": "stages_onnxruntime", "side": side, "address_space_gib": gib, "threads": threads}, **got)))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", default=os.path.join(here, "..", "build-release"))
    p.add_argument("--data", default=os.path.join(here, "..", "..", "shared", "data", "models"))
    p.add_argument("--scratch", help="a folder on a disk")
    p.add_argument("--onnxruntime", type=int, metavar="GIB", help="instead: ONNX Runtime in so much memory")
    p.add_argument("--model", default="fns_candy_nc16")
    p.add_argument("--side", type=int, default=8192)
    p.add_argument("--part", type=int, default=1024)
    p.add_argument("--ram", default="512MiB")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--rounds", type=int, default=3, help="of the part, around the large image")
    a = p.parse_args()
    model = os.path.join(a.data, a.model, "model.onnx")
    if not os.path.exists(model):
        raise SystemExit("%s: not there" % model)
    if a.onnxruntime:
        return peer(model, a.side, a.onnxruntime, a.threads)
    if not a.scratch:
        p.error("--scratch DIR, or --onnxruntime GIB")
    with tempfile.TemporaryDirectory(dir=a.scratch) as folder:
        image = os.path.join(folder, "in.tif")
        draw(image, a.side)
        job = ["-m", model, image, "--normalize", "none", "--threads", str(a.threads), "-o", os.path.join(folder, "out.tif"), "-y"]
        large = job + ["--ram", a.ram, "--scratch", a.scratch]
        part = job + ["--roi", "0:%d,0:%d" % (a.part, a.part)]
        plan = tegula(a.build, ["plan"] + large, folder)
        rates = [tegula(a.build, ["run"] + part, folder)["megapixels_per_second"]]
        run = tegula(a.build, ["run"] + large, folder)
        rates += [tegula(a.build, ["run"] + part, folder)["megapixels_per_second"] for _ in range(a.rounds - 1)]
        staged = plan.get("staged", {})
        print(json.dumps({
            "bench": "stages", "model": a.model, "side": a.side, "ram": a.ram, "threads": a.threads,
            "seconds": round(run["seconds"], 1), "megapixels_per_second": run["megapixels_per_second"],
            "part": a.part, "part_megapixels_per_second": statistics.median(rates),
            "ratio": round(run["megapixels_per_second"] / statistics.median(rates), 3),
            "predicted_peak_bytes": run["predicted_peak_bytes"], "measured_peak_bytes": run["measured_peak_bytes"],
            "stages": plan["stages"], "kept_disk_bytes": staged.get("kept_disk_bytes"),
            "disk_bytes_per_pixel": round(staged.get("moved_disk_bytes", 0) / a.side ** 2, 1)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
