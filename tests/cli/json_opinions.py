"""What the command writes as JSON (each verb's --json, receipts, job files, presets) by two readers.

    json_opinions.py TEGULA JSON_OPINIONS SOURCE

The second program compares what cJSON reads with what our own strict reader does; here it gets all
there is to read, also texts that cJSON must not read alike: so it can fail."""
import os
import subprocess
import sys
import tempfile

tegula, opinions, root = (os.path.abspath(p) for p in sys.argv[1:4])
sys.path.insert(0, os.path.join(root, "tests", "fuzz"))
from seeds import Tiff, page  # noqa: E402

NOT_ALIKE = {"twice.json": b'{"a":1,"a":2}', "bare.json": b'{"a":01}', "far.json": b'[1e400]',
             "raw.json": b'["a\tb"]', "cut.json": b'{"a":1', "bytes.json": b'["\xff\xfe"]'}


def main():
    failed = 0
    model = os.path.join(root, "models", "tegula_denoise.onnx")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name, text in (("in.tif", b'a "quoted" \\ text\xc3\xa9'), ("two words.tif", b"\xe2\x82\xac\xf0\x9f\x98\x80")):
            t = Tiff()
            page(t, 70, 50, bits=16, t270=(2, text + b"\0"))
            with open(name, "wb") as f:
                f.write(t.out)
        verbs = (("info", "in.tif"), ("info", "two words.tif"), ("info", model), ("plan", "-m", model, "in.tif"),
                 ("plan", "-m", model, "in.tif", "--why"), ("plan", "-m", model, "in.tif", "--ram", "1MiB"),
                 ("run", "-m", model, "in.tif", "-o", "out.tif"), ("run", "-m", model, "two words.tif", "-o", "a b.tif"),
                 ("run", "-m", model, "missing.tif", "-o", "no.tif"), ("verify", "-m", model, "in.tif"),
                 ("copy", "in.tif", "-o", "copy.tif"), ("estimate", "in.tif"), ("doctor",), ("mem",), ("info", "out.tif"),
                 ("version",), ("nonsense",))
        lines = 0
        for i, words in enumerate(verbs):
            r = subprocess.run([tegula, *words, "--json"], capture_output=True, stdin=subprocess.DEVNULL, timeout=120)
            texts = [x for x in (r.stdout + r.stderr).splitlines() if x.startswith((b"{", b"["))]
            lines += len(texts)
            if texts:
                with open(f"{i}.lines", "wb") as f:
                    f.write(b"\n".join(texts) + b"\n")
            else:
                print("no JSON of", words, r.returncode, r.stdout[:200], r.stderr[:200])
        files = sorted(n for n in os.listdir() if n.endswith((".lines", ".json")))
        receipts = [n for n in files if n.endswith(".json")]
        r = subprocess.run([opinions, *files], capture_output=True, text=True)
        print(f"{lines} texts of {len(verbs)} commands, receipts {receipts}: {r.stdout.strip()}")
        print(r.stderr, end="")
        failed += r.returncode != 0 or len(receipts) < 2 or lines < 15
        for name, text in NOT_ALIKE.items():
            with open(name, "wb") as f:
                f.write(text)
            if subprocess.run([opinions, "0.lines", name], capture_output=True).returncode == 0:
                print(f"{name} is read alike")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
