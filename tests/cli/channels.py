#!/usr/bin/env python3
"""A network of other channels than the image: the refusal has a command that can be pasted, and it works.

    channels.py TEGULA SOURCE"""
import json
import os
import shlex
import subprocess
import sys
import tempfile

TEGULA, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
sys.path.insert(0, os.path.join(SOURCE, "tests", "packages"))
import package_help as h  # noqa: E402
import package_names as names  # noqa: E402


def ask(folder, *words):
    r = subprocess.run([TEGULA, *words], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
    return r.returncode, r.stdout, r.stderr


def command_of(said):
    lines = said.splitlines()
    at = [i for i, line in enumerate(lines) if line == "  such as:"]
    return shlex.split(lines[at[0] + 1]) if at else []


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TG_DISK")) as folder:
        with open(os.path.join(folder, "two.onnx"), "wb") as f:
            f.write(h.same(2))
        os.rename(names.image(folder, ["DAPI", "GFP", "RFP"], 3), os.path.join(folder, "in 1.ome.tif"))
        choice = "--channels GFP chooses 1 of the image's 3 (0 DAPI, 1 GFP, 2 RFP)"
        for given, said, would in (([], "the image (axes TZCYX) has 3", "DAPI,GFP"), (["--channels", "GFP"], choice, "GFP,DAPI"),
                                   (["--channels=GFP"], choice, "GFP,DAPI"), (["--c", "GFP"], choice, "GFP,DAPI"), (["--c=GFP"], choice, "GFP,DAPI"),
                                   (["--channels", "2,1,0"], "chooses 3 of the image's 3", "RFP,GFP")):
            words = ["run", "-m", "two.onnx", *given, "-o", "out.tif", "-y", "in 1.ome.tif"]
            code, out, err = ask(folder, *words)
            h.expect(code == 64 and said in err, f"{given}: {code}: {err}")
            want = [TEGULA, "run", "-m", "two.onnx", "-o", "out.tif", "-y", "in 1.ome.tif", "--channels", would]
            h.expect(command_of(err) == want, f"{given}: {command_of(err)}, not {want}")
            code, _, err = ask(folder, *want[1:])
            h.expect(code == 0, f"{want}: {code}: {err}")
            code, out, _ = ask(folder, *words, "--json")
            event = json.loads(out.splitlines()[-1])
            remedy = event.get("remedies", [{}])[0]
            h.expect(remedy.get("options") == {"channels": would}, f"{given}: {event}")
            h.expect(shlex.split(remedy.get("command", "")) == [*want[:-2], "--json", *want[-2:]], f"{given}: {remedy}")
    print(f"{h.failed} failed")
    return 1 if h.failed else 0


if __name__ == "__main__":
    sys.exit(main())
