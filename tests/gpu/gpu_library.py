"""Jobs whose products of matrices a library computes: near the processor's result, tiles with the bits of the whole,
its memory in the plan, and what is done where it is missing, refuses or fails.

usage: gpu_library.py BUILD [--emulated PLUGIN LIBRARY]

With --emulated it runs on the device that is played on the processor, with a pretended library, else on a real one,
with the library that is installed there; without either it is skipped (77). What the library gains is measured as in
any first run; the figure is then replaced, so that plans take it. Standard library only; the networks are made here.
"""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from gpu_command import Command, distance, own_folder, played, read  # noqa: E402
from seeds import floats, model, node, npy, port  # noqa: E402

sys.argv += played("libtg_fake_cublaslt.so")
EMULATED = sys.argv[3] if len(sys.argv) > 4 and sys.argv[2] == "--emulated" else None
LIBRARY = EMULATED and os.path.abspath(sys.argv[4])
C = Command(sys.argv[1], EMULATED, mib=4096)  # free enough that it is measured
H, W = (24, 40) if EMULATED else (400, 520)
TILE = "8" if EMULATED else "64"
K3 = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
K1 = {"kernel_shape": [1, 1]}


def pixels():
    """Four convolutions, of which two are of single pixels."""
    return model([node("Conv", ["x", "wa"], ["a"], **K3), node("Conv", ["a", "wb", "bb"], ["b"], **K1),
                  node("Relu", ["b"], ["c"]), node("Conv", ["c", "wc"], ["d"], **K1), node("Conv", ["d", "wd"], ["y"], **K3)],
                 [floats("wa", [32, 1, 3, 3]), floats("wb", [48, 32, 1, 1]), floats("bb", [48]), floats("wc", [32, 48, 1, 1]),
                  floats("wd", [1, 32, 3, 3])], [port("x", ["N", 1, "H", "W"])], [port("y", ["N", 1, "H", "W"])])


def tokens():
    """Two products of matrices over whole arrays."""
    return model([node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]), node("MatMul", ["b", "v"], ["y"])],
                 [floats("w", [128, 160]), floats("v", [160, 128])], [port("x", [1, 1, 144, 128])], [port("y", [1, 1, 144, 128])])


def write(name, data):
    with open(name, "wb") as f:
        f.write(data)


def numbers(shape):
    n = 1
    for s in shape:
        n *= s
    return npy("<f4", repr(shape), struct.pack(f"<{n}f", *[(i * 7919 % 251) / 251 - 0.4 for i in range(n)]))


def make():
    write("pixels.onnx", pixels())
    write("tokens.onnx", tokens())
    write("pixels.npy", numbers((1, 1, H, W)))
    write("tokens.npy", numbers((1, 1, 144, 128)))


JOBS = ("pixels", "tokens")


def run(out, what, *words, precision="fp32", order=None):
    return C.run("-m", what + ".onnx", what + ".npy", "-y", "-o", out + ".npy", "--device", "cuda", "--precision",
                 precision, *words, order=order)


def pretend(words):
    os.environ["TEGULA_FAKE_CUBLASLT"] = "mib=300," + words


def planned(what, *words):
    """The library's line of a plan."""
    code, plan, said = C.run("-m", what + ".onnx", what + ".npy", "-o", "none.npy", "--device", "cuda", "--precision",
                             "fp32", *words, verb="plan")
    C.expect(code == 0, f"plan of {what} {words}: exit {code}: {said}")
    return next((line for line in plan.get("lines", []) if line["name"] == "library"), None)


def what_it_gains_is_measured_once():
    """... and replaced by a figure for which any plan takes it. False: it is not there."""
    code, _, said = run("first", "pixels")
    C.expect(code == 0, f"the first run: exit {code}: {said}")
    name = os.path.join(os.environ["TEGULA_CACHE"], "devices.json")
    with open(name, encoding="utf-8") as f:
        kept = json.load(f)
    rows = [row for row in kept["devices"] if "library_gain" in row]
    for row in rows:
        print(f"  it gains {row['library_gain']:.3g} and takes {row.get('library_bytes', 0) >> 20} MiB", flush=True)
        C.expect(row["library_gain"] > 0, "its results are those of own kernels, to the bit")
        row["library_gain"] = 3.0
    with open(name, "w", encoding="utf-8") as f:
        json.dump(kept, f, separators=(",", ":"))
    C.expect(rows or not EMULATED, "what it gains is kept")
    return bool(rows)


def near_the_processor_and_own_kernels():
    for what in JOBS:
        line = planned(what)
        C.expect(line and (not EMULATED or 0 < line["bytes"] - (300 << 20) <= 4096), f"the plan of {what} has the library: {line}")
        C.expect(planned(what, "--no-cublas") is None and planned(what, "--exact") is None,
                 f"the plan of {what} has none where it is not wanted")
        C.run("-m", what + ".onnx", what + ".npy", "-y", "-o", "cpu.npy", "--device", "cpu", "--exact")
        for precision, most in (("fp32", 1e-5), ("fp16", 5e-3)):
            code, done, said = run("by_it", what, precision=precision)
            C.expect(code == 0, f"{what}, {precision}: exit {code}: {said}")
            if code != 0:
                continue
            off = distance(read("by_it.npy")[1], read("cpu.npy")[1])
            print(f"  {what}, {precision}: relative L2 {off:.3g}", flush=True)
            C.expect(off < most, f"{what}, {precision}: {off} from the processor")
            C.expect(0 < done.get("device_measured_bytes", 0) <= done["device_predicted_bytes"], f"{what}: {done}")


def tiles_have_the_bits_of_the_whole():
    for precision in ("fp32", "fp16"):
        run("whole", "pixels", precision=precision)
        code, done, said = run("tiles", "pixels", "--tile", TILE, precision=precision)
        C.expect(code == 0 and done.get("tiles", 0) > 1, f"tiles: exit {code}, {done}: {said}")
        C.expect(read("tiles.npy") == read("whole.npy"), f"{precision}: tiles equal the whole")


def without_it_own_kernels_compute():
    run("own", "pixels", "--no-cublas")
    library = os.environ.get("TEGULA_CUBLASLT")
    for name in ("none", "/nowhere/libcublasLt.so"):
        os.environ["TEGULA_CUBLASLT"] = name
        code, _, said = run("without", "pixels")
        C.expect(code == 0 and read("without.npy") == read("own.npy"), f"TEGULA_CUBLASLT={name}: exit {code}: {said}")
    if library is None:
        del os.environ["TEGULA_CUBLASLT"]
    else:
        os.environ["TEGULA_CUBLASLT"] = library


def what_it_refuses_is_planned_again():
    """No algorithm for anything larger than it is tried with."""
    run("own", "pixels", "--no-cublas")
    pretend("none_beyond=64")
    code, _, said = run("refused", "pixels")
    C.expect(code == 0 and read("refused.npy") == read("own.npy") and "without its library" in said,
             f"it has no algorithm: exit {code}: {said}")
    pretend("")


def a_product_that_fails_ends_the_attempt():
    pretend("fail=5")  # three are of opening it
    code, _, said = run("failed", "pixels")
    C.expect(code == 75 and "CUBLAS_STATUS_EXECUTION_FAILED" in said and "conv_1x1_cublaslt" in said,
             f"a product fails: exit {code}: {said}")
    pretend("")


def main():
    if not C.there():
        return 77
    with own_folder():
        if EMULATED:
            os.environ["TEGULA_CUBLASLT"] = LIBRARY
            pretend("")
        make()
        if not what_it_gains_is_measured_once():
            print("without cuBLASLt: tegula run --log debug says why")
            return 77
        more = [what_it_refuses_is_planned_again, a_product_that_fails_ends_the_attempt] if EMULATED else []
        return C.steps(near_the_processor_and_own_kernels, tiles_have_the_bits_of_the_whole,
                       without_it_own_kernels_compute, *more)


if __name__ == "__main__":
    sys.exit(main())
