"""Films through networks on a device, which gets their frames as Y, U and V: the pixels are those that the processor makes.

usage: gpu_frames.py BUILD [--emulated PLUGIN]

Frames are drawn here, as YUV4MPEG2, of every kind that a device converts. `copy` makes pixels of them on the processor, and
those go through the same network as an array; a network that hands out what it gets makes the same film on both. With
--emulated it runs on the device that is played on the processor, else on a real one; without one it is skipped (77).
Standard library only."""
import os
import random
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, own_folder, played, read  # noqa: E402
from gpu_made import content, write  # noqa: E402
from seeds import blk, floats, model, node, npy, num, port  # noqa: E402

sys.argv += played()
EMULATED = sys.argv[3] if sys.argv[2:3] == ["--emulated"] else None
C = Command(sys.argv[1], EMULATED)
W, H, N = (61, 37, 3) if EMULATED else (641, 363, 5)
# log2 of the pixels for one of chroma across and down, and bits
KINDS = {"420jpeg": (1, 1, 8), "420mpeg2": (1, 1, 8), "420paldv": (1, 1, 8), "422": (1, 0, 8), "444": (0, 0, 8), "411": (2, 0, 8),
         "420p10": (1, 1, 10), "422p12": (1, 0, 12), "444p16": (0, 0, 16)}
PLAIN = ("--normalize", "none", "--device", "cuda", "--precision", "fp32", "-y")


def draw(name, kind):
    across, down, bits = KINDS[kind]
    numbers = W * H + 2 * (-(-W >> across)) * (-(-H >> down))
    some = random.Random(kind)
    with open(name, "wb") as f:
        f.write(f"YUV4MPEG2 W{W} H{H} F25:1 Ip A1:1 C{kind}\n".encode())
        for _ in range(N):
            f.write(b"FRAME\n" + some.randbytes(numbers) if bits == 8 else
                    b"FRAME\n" + struct.pack(f"<{numbers}H", *(some.getrandbits(bits) for _ in range(numbers))))


def make():
    k3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    ends = [port("x", ["N", 3, "H", "W"])], [port("y", ["N", 3, "H", "W"])]
    write("mixes.onnx", model([node("Conv", ["x", "w"], ["a"], **k3), node("Relu", ["a"], ["b"]), node("Conv", ["b", "v"], ["y"], **k3)],
                              [floats("w", [6, 3, 3, 3], 7), floats("v", [3, 6, 3, 3], 31)], *ends))
    one = b"".join(num(1, d) for d in (3, 3, 1, 1)) + num(2, 1) + blk(8, "w") + blk(9, struct.pack("<9f", *(i % 4 == 0 for i in range(9))))
    write("same.onnx", model([node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])], [one], *ends))
    for kind in KINDS:
        draw(f"{kind}.y4m", kind)


def pixels_of(film):
    """What `copy` makes of it, on the processor: as an array [N,3,H,W]."""
    code, _, said = C.run(film, "-o", "copy.npy", "-y", verb="copy")
    C.expect(code == 0, f"copy {film}: exit {code}: {said}")
    shape, values = read("copy.npy")
    C.expect(shape == (N, H, W, 3), f"{film} as an array: {shape}")
    planes = b"".join(values[k * H * W * 3:(k + 1) * H * W * 3][c::3].tobytes() for k in range(N) for c in range(3))
    write("planes.npy", npy("|u1" if values.itemsize == 1 else "<u2", repr((N, 3, H, W)), planes))


def run(out, *words, net="mixes.onnx", plain=PLAIN):
    code, done, said = C.run("-m", net, *words, *plain, "-o", out)
    C.expect(code == 0, f"{words} {plain}: exit {code}: {said}")
    return done


def staging(film):
    """Bytes that are read ahead of the network."""
    code, plan, said = C.run("-m", "mixes.onnx", film, *PLAIN[:-1], "-o", "no.npy", verb="plan")
    C.expect(code == 0, f"plan of {film}: exit {code}: {said}")
    return next(line["bytes"] for line in plan["lines"] if line["name"] == "staging")


def frames_have_the_pixels_of_the_processor():
    for kind in KINDS:
        pixels_of(f"{kind}.y4m")
        run("array.npy", "planes.npy")
        run("film.npy", f"{kind}.y4m")
        C.expect(read("film.npy")[1] == read("array.npy")[1], f"{kind}: other numbers than those of its pixels")


def less_goes_up():
    for kind, (across, down, bits) in KINDS.items():
        most = (W * H + 2 * (-(-W >> across)) * (-(-H >> down))) * (2 if bits > 8 else 1)
        C.expect(staging(f"{kind}.y4m") <= 2 * (most + 64), f"{kind}: {staging(f'{kind}.y4m')} bytes for two frames of {most}")


def a_film_becomes_the_film_of_the_processor():
    """In tiles, in a part of the frames that begins anywhere, and where numbers are scaled, too."""
    cpu = (*PLAIN[:2], "--device", "cpu", "-y")
    for kind in KINDS:
        run("cpu.y4m", f"{kind}.y4m", net="same.onnx", plain=cpu)
        for words in ((), ("--tile", "16")):
            run("film.y4m", f"{kind}.y4m", *words, net="same.onnx")
            C.expect(content("film.y4m") == content("cpu.y4m"), f"{kind} {words}: another film than the processor's")
    roi = ("420mpeg2.y4m", "--roi", f"5:{H - 2},3:{W - 5}", "--pad", "reflect")
    run("cpu.y4m", *roi, net="same.onnx", plain=cpu)
    run("film.y4m", *roi, net="same.onnx")
    C.expect(content("film.y4m") == content("cpu.y4m"), "a part of the frames: another film than the processor's")
    scaled = ("--normalize", "scale:1/256")
    run("cpu.npy", "422.y4m", net="same.onnx", plain=(*scaled, *cpu[2:]))
    run("film.npy", "422.y4m", net="same.onnx", plain=(*scaled, *PLAIN[2:]))
    C.expect(read("film.npy")[1] == read("cpu.npy")[1], "scaled: other numbers than the processor's")


def numbers_of_the_whole_film_are_read_as_pixels():
    """Statistics are of R, G and B, which the processor makes then."""
    for film in ("420jpeg.y4m", "444p16.y4m"):
        run("gpu.npy", film, net="same.onnx", plain=("--normalize", "minmax", *PLAIN[2:]))
        run("cpu.npy", film, net="same.onnx", plain=("--normalize", "minmax", "--device", "cpu", "-y"))
        C.expect(read("gpu.npy")[1] == read("cpu.npy")[1], f"{film}: other numbers where they are normalised by its own")


def through_pipes_it_is_the_same():
    run("film.y4m", "420jpeg.y4m", net="same.onnx")
    with open("420jpeg.y4m", "rb") as film, open("piped.y4m", "wb") as out:
        done = subprocess.run([C.tegula, "run", "-m", "same.onnx", "-", "-o", "-", *PLAIN], stdin=film, stdout=out, stderr=subprocess.PIPE,
                              check=False, env=C.environment())
    C.expect(done.returncode == 0 and content("piped.y4m") == content("film.y4m"), f"a pipe: exit {done.returncode}: {done.stderr}")


def main():
    if not C.there():
        return 77
    with own_folder():
        make()
        return C.steps(frames_have_the_pixels_of_the_processor, less_goes_up, a_film_becomes_the_film_of_the_processor,
                       numbers_of_the_whole_film_are_read_as_pixels, through_pipes_it_is_the_same)


if __name__ == "__main__":
    sys.exit(main())
