"""Objects equal to those that stardist 0.9.1 and cellpose 4.2.1.1 made once, in each pixel and number.

    object_golden.py POST_TOOL

golden/*.npy: small planes of whole numbers and the labels that the packages make of them, written by
`object_peers.py --store POST_TOOL`. Python's standard library is all it needs."""
import array
import ast
import os
import subprocess
import sys
import tempfile

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def load(path, code):
    """Shape and values of a .npy file."""
    with open(path, "rb") as f:
        data = f.read()
    size = int.from_bytes(data[8:10], "little")
    head = ast.literal_eval(data[10:10 + size].decode())
    values = array.array(code)
    values.frombytes(data[10 + size:])
    return head["shape"], values


def save_floats(path, shape, values):
    head = "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }" % (tuple(shape),)
    head = head.ljust(117) + "\n"
    with open(path, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode())
        array.array("f", values).tofile(f)


def single(value, by):
    """As the division of two numbers in single precision."""
    return array.array("f", [value / by])[0]


def check(tool, which, code, divisors, settings, folder):
    shape, whole = load(os.path.join(GOLDEN, which + "_planes.npy"), code)
    want_shape, want = load(os.path.join(GOLDEN, which + "_labels.npy"), "B")
    plane = shape[1] * shape[2]
    given, out = os.path.join(folder, "planes.npy"), os.path.join(folder, "labels.npy")
    save_floats(given, shape, [single(v, divisors[min(i // plane, len(divisors) - 1)]) for i, v in enumerate(whole)])
    for more in ([], ["band=3", "paint=5", "margin=2"]):
        done = subprocess.run([tool, which, given, out] + settings + more, capture_output=True, text=True, cwd=folder)
        if done.returncode:
            sys.exit("%s: exit %d: %s" % (which, done.returncode, done.stderr))
        got_shape, got = load(out, "I")
        off = sum(a != b for a, b in zip(want, got))
        if tuple(got_shape) != tuple(want_shape) or off or max(want) < 8:
            sys.exit("%s %s: %s, expected %s; %d pixels differ of %d objects"
                     % (which, more, got_shape, want_shape, off, max(want)))
    print("%s: %d objects, all pixels equal" % (which, max(want)))


def main(tool):
    with tempfile.TemporaryDirectory(prefix="tegula-golden-") as folder:
        check(tool, "stardist", "B", [255, 8], ["grid=2", "height=72", "width=80"], folder)
        check(tool, "cellpose", "b", [12], [], folder)


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
