#!/usr/bin/env python3
"""Something is removed from a film on a GPU, with drawn weights: frames a second, what it took of the device beside its plan, and the
processor of the same machine and PyTorch's operations beside it. One row of JSON each, to standard output;
`busy` is the share of the whole run's time that kernels took, `overlap` that of all three queues.

    bench/gpu_film.py --build build-gpu --data FOLDER [--sizes 432x240,1280x720] [--frames 24] [--precision fp16,fp32] [--no-processor]

FOLDER has conformance/propainter/weights.csv, by which the weights are drawn; without it, or in a build that reads no films, a row
says so (77). The processor computes the first size alone, and a few frames of it. Where this Python has torch, torchvision and a GPU,
bench/propainter_peer.py does what the published script does, with the same weights, sizes and settings, in turn with ours; a round in front warms it up.
"""
import argparse
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

ITERATIONS = "20"  # of RAFT, as published
FEW = 6  # frames of the processor


def emit(**row):
    print(json.dumps(row), flush=True)


def film(path, width, height, frames):
    """A pattern that moves, grey; a box of a quarter of each side is hidden."""
    row = bytes(16 + (5 * x + x // 7 * 3) % 220 for x in range(width + frames))
    with open(path, "wb") as f:
        f.write(b"YUV4MPEG2 W%d H%d F24:1 Ip A1:1 Cmono\n" % (width, height))
        for k in range(frames):
            f.write(b"FRAME\n" + b"".join(row[(k + 3 * (y // 9)) % frames:][:width] for y in range(height)))
    return path


def mask(path, width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    x0, y0 = width * 3 // 8, height * 3 // 8
    inside = bytes(x0) + b"\xff" * (width // 4) + bytes(width - x0 - width // 4)
    rows = b"".join(b"\0" + (inside if y0 <= y < y0 + height // 4 else bytes(width)) for y in range(height))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)) +
                chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
    return path


def weights(a, folder):
    """The drawn ones; None: no table of them."""
    tables = (os.path.join(a.data or "", *up, "propainter", "weights.csv") for up in (["conformance"], []))
    table = next((t for t in tables if os.path.exists(t)), None)
    if table:
        subprocess.run([os.path.join(a.build, "tools", "tegula-draw-weights"), table, folder], check=True, stdout=subprocess.DEVNULL)
    return folder if table else None


def removed(a, drawn, name, hidden, *words):
    """(what `done` says, what went wrong)"""
    done = subprocess.run([os.path.join(a.build, "cli", "tegula"), "inpaint", name, "--mask", hidden, "--weights", drawn, "-y", "--json",
                           "--raft-iter", a.iterations, "-o", os.path.join(os.path.dirname(name), "out.y4m"), *words],
                          text=True, capture_output=True, check=False, env={**os.environ, "TEGULA_CUDA_TIMES": "1", "TEGULA_CACHE": os.path.dirname(name)})
    last = [e for e in map(json.loads, filter(None, done.stdout.splitlines())) if e.get("event") == "done"]
    return (last[-1] if last else {}), done.stderr.strip()[-300:] if done.returncode else None


def row(a, drawn, folder, size, device, precision, frames):
    width, height = map(int, size.split("x"))
    name = film(os.path.join(folder, f"{size}.y4m"), width, height, frames)
    done, error = removed(a, drawn, name, mask(os.path.join(folder, "mask.png"), width, height), "--device", device,
                          *(["--precision", precision] if device == "cuda" else []))
    seconds = done.get("seconds")
    took, planned = done.get("device_measured_bytes"), done.get("device_predicted_bytes")
    fps = frames / seconds if seconds else None
    queues = [done.get(f"device_{q}_seconds", 0) for q in ("upload", "kernel", "download")]
    emit(family="gpu_film", size=size, frames=frames, device=done.get("device") or device, precision=precision, clock="host",
         fps=fps, device_bytes=took, planned_bytes=planned, busy=queues[1] / seconds if seconds else None, overlap=sum(queues) / seconds if seconds else None,
         error=error)
    return fps, bool(error) or (device == "cuda" and not 0 < (took or 0) <= (planned or 0))


def has_torch():
    return subprocess.run([sys.executable, "-c", "import torch, torchvision; assert torch.cuda.is_available()"], capture_output=True,
                          check=False).returncode == 0


def peer(a, drawn, size, precision):
    """Frames a second of PyTorch; None where it fails (memory, say), which the row tells."""
    done = subprocess.run([sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "propainter_peer.py"), "--weights", drawn,
                           "--time", "e2e", "--size", size, "--frames", str(a.frames), "--mask", "0.25", "--rounds", "1", "--device", "cuda",
                           "--settings", f"80,10,10,{a.iterations}", *(["--half"] if precision == "fp16" else [])], text=True, capture_output=True, check=False)
    told = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    fps = a.frames / told["seconds"][0] if told else None
    emit(family="gpu_film_peer", peer=f"PyTorch {told.get('torch')}", size=size, frames=a.frames, precision=precision, clock="host", fps=fps,
         device_bytes=told.get("device_bytes"), error=None if told else done.stderr.strip()[-300:])
    return fps


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--build", required=True)
    p.add_argument("--data")
    p.add_argument("--sizes", default="432x240,1280x720")
    p.add_argument("--frames", type=int, default=24)
    p.add_argument("--precision", default="fp16,fp32")
    p.add_argument("--iterations", default=ITERATIONS)
    p.add_argument("--no-processor", action="store_true")
    a = p.parse_args()
    a.build = os.path.abspath(a.build)
    failed, rates, peers = 0, {}, {}
    torch = has_torch()
    with tempfile.TemporaryDirectory() as folder:
        drawn = weights(a, folder)
        if not drawn:
            emit(family="gpu_film", error="no table of weights (--data)")
            return 77
        for size in a.sizes.split(","):
            for precision in a.precision.split(","):
                rates[size, precision], wrong = row(a, drawn, folder, size, "cuda", precision, a.frames)
                failed += wrong
                if torch:
                    peers[size, precision] = peer(a, drawn, size, precision)
        emit(family="gpu_film_against", peer="PyTorch" if torch else None,
             ratio={f"{k[0]} {k[1]}": rates[k] / r for k, r in peers.items() if rates[k] and r})
        if not a.no_processor:
            size = a.sizes.split(",", maxsplit=1)[0]
            fps, wrong = row(a, drawn, folder, size, "cpu", "fp32", min(FEW, a.frames))
            failed += wrong
            emit(family="gpu_film_against", peer="processor", size=size, ratio={k[1]: r / fps for k, r in rates.items() if k[0] == size and r and fps})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
