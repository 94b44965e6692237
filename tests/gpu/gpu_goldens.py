"""The networks of the model collection on a device, by the command, arrays in and out: in FP32 they give what the
reference runtime gave, within the tolerance that golden.json states; how far FP16 is from it is printed.

usage: gpu_goldens.py BUILD DATA SOURCE [--emulated PLUGIN]

DATA: the folder of sample data; SOURCE: the checkout, whose own networks are tried where DATA is not there. With
--emulated it runs on the device that is played on the processor, and the networks that take seconds there alone;
without a device it is skipped (77). A network without a kernel on the device is named. Standard library only."""
import json
import os
import sys
import tempfile

from gpu_command import Command, distance, played, read

sys.argv += played()
DATA, SOURCE = os.path.abspath(sys.argv[2]), os.path.abspath(sys.argv[3])
EMULATED = sys.argv[5] if len(sys.argv) > 5 and sys.argv[4] == "--emulated" else None
C = Command(sys.argv[1], EMULATED, mib=2048)
QUICK = {"sci_low_light", "fsrcnn_x2", "nanoflownet", "heads", "iat_lol_v1", "yolox_nano"}
FP16_MOST = 0.1  # of the norm; FP16 that is worse than that is broken, not rounded


def networks():
    """(name, model, folder of golden.json)"""
    collection = os.path.join(DATA, "data", "models")
    for name in sorted(os.listdir(collection)) if os.path.isdir(collection) else []:
        folder = os.path.join(collection, name)
        if os.path.exists(os.path.join(folder, "golden.json")):
            yield name, os.path.join(folder, "model.onnx"), folder
    own = os.path.join(SOURCE, "tests", "golden")
    yield "tegula_denoise", os.path.join(SOURCE, "models", "tegula_denoise.onnx"), os.path.join(own, "tegula_denoise")
    yield "heads", os.path.join(own, "heads", "model.onnx"), os.path.join(own, "heads")


def outside(got, want, rtol, atol):
    """Elements that are not within the tolerance, and the largest difference."""
    bad, most = 0, 0.0
    for x, y in zip(got, want):
        d = abs(x - y)
        most = d if d > most else most
        bad += not d <= atol + rtol * abs(y)  # NaN is bad
    return bad, most


def outputs(case, folder, out):
    for o in case["outputs"]:
        got = read(os.path.join(out, o["name"].replace("/", "_") + ".npy"))
        want = read(os.path.join(folder, o["file"]))
        yield o["name"], got, want


def one_case(name, model, folder, case, tolerance):
    """Whether the device has kernels for it."""
    words = ["-m", model, "-y", "-o", "out/", "--device", "cuda"]
    for i in case["inputs"]:
        words += ["--input", f"{i['name']}={os.path.join(folder, i['file'])}"]
    tag = f"{name} {case['tag']}"
    code, _, said = C.run(*words, "--precision", "fp32")
    if code == 65 and "has no kernel" in said:
        print(f"  {tag}: not on this device: {said.strip()}", flush=True)
        C.expect(name not in QUICK, f"{tag} has to run on a device")
        return False
    C.expect(code == 0, f"{tag}: exit {code}: {said}")
    for output, (shape, got), (want_shape, want) in outputs(case, folder, "out") if code == 0 else ():
        bad, most = outside(got, want, tolerance["rtol"], tolerance["atol"])
        print(f"  {tag}, {output}: largest difference {most:.3g}", flush=True)
        C.expect(shape == want_shape and bad == 0, f"{tag}, {output}: {shape} of {want_shape}, {bad} are outside")
    if EMULATED:
        return True
    code, _, said = C.run(*words, "--precision", "fp16")
    C.expect(code == 0, f"{tag} in FP16: exit {code}: {said}")
    for output, (_, got), (_, want) in outputs(case, folder, "out") if code == 0 else ():
        off = distance(got, want)
        print(f"  {tag}, {output}, FP16: relative L2 {off:.3g}", flush=True)
        C.expect(off < FP16_MOST, f"{tag}, {output}: FP16 is {off} away")
    return True


def main():
    if not C.there():
        return 77
    ran = 0
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        for name, model, folder in networks():
            if EMULATED and name not in QUICK:
                continue
            with open(os.path.join(folder, "golden.json"), encoding="utf-8") as f:
                golden = json.load(f)
            code, _, said = C.run("-m", model, os.path.join(folder, golden["cases"][0]["inputs"][0]["file"]),
                                  "--device", "cpu", verb="plan")
            if code != 0:
                print(f"  {name}: nor does the processor: {said.strip()}", flush=True)
                continue
            for case in golden["cases"][:1] if EMULATED else golden["cases"]:
                ran += one_case(name, model, folder, case, golden["suggested_tolerance"])
    C.expect(ran or not os.path.isdir(os.path.join(DATA, "data")), "no network ran")
    print(f"{ran} cases")
    return 1 if C.problems else 0 if ran else 77


if __name__ == "__main__":
    sys.exit(main())
