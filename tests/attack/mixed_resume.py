"""What was begun with one model, input or setting is never gone on with by another: the answer is 65
with a cure, and with -y what a fresh run gives.

    mixed_resume.py TEGULA SOURCE_DIR"""
import base64
import json
import os
import random
import struct
import sys
import zlib

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "crash"))
from crashlib import (_field, _ints, _node, _value, SLOT, SLOT_MAGIC, check, crc32c, main, picture,  # noqa: E402
                      upscaler)

BASE = {"TEGULA_SYNC_TILES": 1}
LONG_AGO = 1_000_000_000
found = {}


def aged(path):
    """With a time of change that is the same in every run of this test."""
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def slots(journal):
    """(place, values) of the slots that hold, the newest first."""
    found = []
    for at in (4096, 8192):
        if len(journal) >= at + SLOT.size:
            v = SLOT.unpack_from(journal, at)
            if v[0] == SLOT_MAGIC and crc32c(journal[at:at + SLOT.size - 4]) == v[-1]:
                found.append((at, list(v)))
    return sorted(found, key=lambda s: -s[1][1])


def tiles_of(out):
    try:
        with open(out + ".journal", "rb") as f:
            held = slots(f.read())
    except FileNotFoundError:
        return 0
    return held[0][1][2] if held else 0


def clean(out):
    for end in ("", ".partial", ".journal", ".tegula.json"):
        if os.path.exists(out + end):
            os.remove(out + end)


def stop(lab, args, out, more=()):
    """Kill a run of `args` when some tiles are safe, not all."""
    first = found.get(tuple(args[:2]), 24)
    for k in range(first, 600, 3):
        clean(out)
        for path in more:
            if os.path.exists(path):
                os.remove(path)
        r = lab.run(args + ["-o", out], dict(BASE, TEGULA_FAIL_IO="%d:kill" % k))
        check(r.code == -9, "cannot be interrupted: %s" % r)
        if tiles_of(out) >= 3:
            found[tuple(args[:2])] = max(24, k - 15)  # near that the next search begins
            return
    check(False, "no kill left three tiles")


def whole(lab, args, out):
    clean(out)
    r = lab.run(args + ["-o", out], BASE)
    check(r.code == 0, "an undisturbed run fails: %s" % r)
    with open(out, "rb") as f:
        data = f.read()
    os.remove(out)
    return data


def refused(lab, args, out, what, word=None):
    """65, nothing touched; then -y gives what a fresh run does."""
    before = tiles_of(out)
    r = lab.run(args + ["-o", out], BASE)
    check(r.code == 65, "%s: not refused: %s" % (what, r))
    check("-y" in r.err, "%s: no cure: %s" % (what, r))
    check(not word or word in r.err, "%s: \"%s\" is not named: %s" % (what, word, r))
    check(tiles_of(out) == before, "%s: a refusal changed the journal" % what)
    r = lab.run(args + ["-o", out, "-y"], BASE)
    check(r.code == 0, "%s: -y does not begin again: %s" % (what, r))
    with open(out, "rb") as f:
        data = f.read()
    fresh = out + ".fresh.tif"
    check(data == whole(lab, args, fresh), "%s: -y gives other bytes than a fresh run" % what)


def goes_on(lab, args, out, want, what):
    r = lab.run(args + ["-o", out], BASE)
    check(r.code == 0, "%s: does not go on: %s" % (what, r))
    with open(out, "rb") as f:
        check(f.read() == want, "%s: other bytes than undisturbed" % what)


# ---- External data ---------------------------------------------------------------------------

def weights(path, seed):
    rng = random.Random(seed)
    with open(path, "wb") as f:
        f.write(struct.pack("<9f", *[rng.uniform(-1, 1) for _ in range(9)]))


def outside(path, weights_file, seed):
    """A convolution whose weights lie in a file beside the model."""
    weights(os.path.join(os.path.dirname(path), weights_file), seed)
    entry = _field(13, _field(1, "location") + _field(2, weights_file))
    weight = b"".join(_field(1, d) for d in (1, 1, 3, 3)) + _field(2, 1) + _field(8, "w") + entry + _field(14, 1)
    graph = (_node("Conv", ["x", "w"], "y", _ints("kernel_shape", [3, 3]) + _ints("pads", [1, 1, 1, 1]))
             + _field(2, "outside") + _field(5, weight) + _field(11, _value("x", 1)) + _field(12, _value("y", 1)))
    with open(path, "wb") as f:
        f.write(_field(1, 8) + _field(7, graph) + _field(8, _field(1, "") + _field(2, 13)))
    return path


def test_external_data(lab):
    model = outside(lab.path("outside.onnx"), "outside.bin", 1)
    image = picture(lab.path("external.tif"), 96, 200)
    args, out = ["run", "-m", model, image, "--tile", "32x32"], lab.path("external-out.tif")
    want = whole(lab, args, out)
    stop(lab, args, out)
    goes_on(lab, args, out, want, "external data as it was")
    with open(out + ".tegula.json") as f:
        told = json.load(f)["fingerprint"].get("model_data", "")
    check("outside.bin" in told and "36 bytes" in told, "the receipt does not name external data: %r" % told)
    stop(lab, args, out)
    weights(lab.path("outside.bin"), 2)
    refused(lab, args, out, "other external data", "external data")


# ---- Patterns of many files ------------------------------------------------------------------

def test_patterns(lab):
    folder = lab.path("many")
    os.mkdir(folder)
    for a in range(2):
        for b in range(2):
            picture(os.path.join(folder, "a%d_b%d.tif" % (a, b)), 64, 96, seed=10 * a + b)
    model = upscaler(lab.path("patterns.onnx"), 4)
    first = ["--z", r"a(\d)", "--t", r"b(\d)"]
    swapped = ["--z", r"b(\d)", "--t", r"a(\d)"]
    for args in (["run", "-m", model, folder, "--tile", "32x32"], ["copy", folder, "--ram", "64MiB"]):
        out = lab.path("patterns-out.tif")
        want = whole(lab, args + first, out)
        check(want != whole(lab, args + swapped, out), "the patterns do not matter to this test")
        stop(lab, args + first, out)
        refused(lab, args + swapped, out, "%s: patterns swapped" % args[0], "--name-z")


# ---- Statistics ------------------------------------------------------------------------------

def test_statistics(lab):
    model = upscaler(lab.path("stats.onnx"), 4)
    image = picture(lab.path("stats.tif"), 96, 200)
    out, stats = lab.path("stats-out.tif"), lab.path("collected.json")
    plain = ["run", "-m", model, image, "--tile", "32x32", "--normalize", "zscore"]
    named = plain + ["--stats", stats]
    want = whole(lab, plain, out)
    stop(lab, plain, out)
    goes_on(lab, named, out, want, "--stats FILE that is not there yet")
    check(os.path.exists(stats), "--stats at resume writes no file")
    stop(lab, named, out, [stats])
    goes_on(lab, named, out, want, "--stats FILE that the run itself wrote")
    stop(lab, named, out, [stats])
    with open(stats) as f:
        told = json.load(f)
    told["channels"][0]["mean"] += 1
    with open(stats, "w") as f:
        json.dump(told, f)
    refused(lab, named, out, "other statistics", "statistics")
    for later in (plain, plain + ["--stats", lab.path("nowhere.json")]):  # begun with a file's, and no file is there
        stop(lab, named, out)
        refused(lab, later, out, "statistics of a file, and then its own", "statistics of a file")
        if os.path.exists(lab.path("nowhere.json")):
            os.remove(lab.path("nowhere.json"))
    clean(out)
    told["channels"][0]["deviation"] = -1.5
    with open(stats, "w") as f:
        json.dump(told, f)
    r = lab.run(named + ["-o", out])
    check(r.code == 65 and "negative" in r.err, "a negative deviation is taken: %s" % r)
    check(not os.path.exists(out), "a negative deviation makes an output")


# ---- Long settings ---------------------------------------------------------------------------

def test_long_settings(lab):
    """A list of planes that fills pages, and what comes behind it in the fingerprint."""
    planes = 24
    image = picture(lab.path("long.tif"), 32, 32, planes=planes)
    model = upscaler(lab.path("long.onnx"), 4)
    spelled = ",".join("0" * 300 + str(i) for i in range(planes))
    base = ["run", "-m", model, image, "--tile", "32x32", "--planes", spelled, "--dtype", "uint8"]
    out = lab.path("long-out.tif")
    stop(lab, base + ["--normalize", "scale:0.001,0"], out)
    refused(lab, base + ["--normalize", "scale:0.002,0"], out,
            "another scale behind %d bytes of planes" % len(spelled), "normalize")
    for args, other in ((["run", "-m", model, image, "--tile", "32x32"], "13,14,15,16,17,18"),
                        (["copy", image], "13,14,15,16,17,18")):
        out = lab.path("planes-out.tif")
        stop(lab, args + ["--planes", "0,1,2,3,4,5"], out)
        refused(lab, args + ["--planes", other], out, "%s: other planes, as many" % args[0], "planes")


# ---- Other builds ----------------------------------------------------------------------------

# OUT.journal of tegula 0.1.0 before it had numbers of its bits and its journal's format: packed by zlib.
OLD = """
eNrt1z2LE0EYB/Coh8JgYWs3jSBcDDO7eduTEeECgsgVen2Y3Z3kxpvsLDtzIbESW0GutbewsLMUwdYPIPoNRLS0slBn8yLhtBAs
DuT/22RnnifD7ORJmmf/1u27e3cYv9AAAAAAAAAAgP+VH9+/5oz1W6v43Gp82FlNotXIlsO3M8vxx+DFm0XM/7zvk4H4evXyy+PN
3KvGzWNUHAAAAAAAAOD0+v9133923f9f+bf+f+/z492T/f/W28PvqDgAAAAAAADAKfT/anxkpGAt3mJEOylKW3mZGkXKSmXaaVuI
URlHRBflkRdxvxO3aTr3yjXpxOuJopyttX7NmvRAugPKeJf18ziPol6a9pI2mdhcGcFZ0vvrPWLe7/OMsSTho/6oJ8mhqgplnNg8
7PVdW0x3snAblkYWsvo9MVClP9i390qZqZ28DobeDl0dkkqN6+/JmuHa5rOIsVnSpaXMBaPaq4kTnDj9QInw6Y3wpqmd0bCWsu2w
NmTajG3kkm69KInWKVIfQTkhjSFOVTpMGTVqGkrBSO7npRIjY6UPVS5sNZGmflRhC0V1MVWVD6vKeSUnOpyH2GKYynzotVHCeVuS
LNQ0Wy5f7EkZDT9drjNvK8oXzxa8GUf1K+p0VzNGTvwRLjUaH989/XJ+I37+4fWjixvx+2etTz8BKxjEGw==
"""


def stored_job(lab):
    model = aged(upscaler(lab.path("old.onnx"), 4))
    image = aged(picture(lab.path("old.tif"), 96, 200))
    return ["run", "-m", model, image, "--tile", "32x32", "--isa", "portable", "--threads", "1"]


def test_older_journals(lab):
    args, out = stored_job(lab), lab.path("old-out.tif")
    stop(lab, args, out)
    with open(out + ".journal", "rb") as f:
        ours = f.read()
    older = {"0.1.0 without numbers": zlib.decompress(base64.b64decode("".join(OLD.split()))),
             "another number of bits": with_line(ours, b"bits=", other_digit),
             "another format by its text": with_line(ours, b"journal=", other_digit),
             "another format by its head": ours[:6] + b"%02d" % ((int(ours[6:8]) + 98) % 100 or 99) + ours[8:]}
    for what, journal in older.items():
        stop(lab, args, out)
        with open(out + ".journal", "wb") as f:
            f.write(journal)
        refused(lab, args, out, "a journal of " + what, "tegula that began it")


def test_what_is_said_behind_a_discard(lab):
    """With -y another job's output goes; when the new one fails then, its own failure is told."""
    model = upscaler(lab.path("discard.onnx"), 4)
    one, other = picture(lab.path("one.tif"), 96, 200), lab.path("other.tif")
    out = lab.path("discard-out.tif")
    r = lab.run(["copy", picture(lab.path("two.tif"), 96, 200), "-o", other, "--compress", "deflate"], BASE)
    check(r.code == 0, "copy: %s" % r)
    with open(other, "r+b") as f:
        f.seek(os.path.getsize(other) - 40)
        f.write(bytes(8))
    args = ["run", "-m", model, one, "--tile", "32x32"]
    stop(lab, args, out)
    r = lab.run(["run", "-m", model, other, "--tile", "32x32", "-o", out, "-y"], BASE)
    check(r.code == 65 and "deflate" in r.err, "a damaged input behind a discarded output: %s" % r)
    check("restore it" not in r.err, "the discarded output's answer is given: %s" % r)


def other_digit(number):
    """Another number of as many digits."""
    return number[:-1] + b"%d" % ((int(number[-1:]) + 5) % 10)


def with_line(journal, key, change):
    """The journal with another value in one line of its job text, and checksums that agree."""
    data = bytearray(journal)
    for at, v in slots(journal):
        begin, n = v[5], v[6]
        text = bytes(data[begin:begin + n])
        line = text.index(b"\n" + key) + 1 + len(key)
        end = text.index(b"\n", line)
        value = change(text[line:end])
        check(len(value) == end - line, "the line changes its length")
        text = text[:line] + value + text[end:]
        data[begin:begin + n] = text
        v[7] = crc32c(text)
        struct.pack_into("<I", data, at + 48 + 8, v[7])
        struct.pack_into("<I", data, at + SLOT.size - 4, crc32c(bytes(data[at:at + SLOT.size - 4])))
        break  # of the newest; the older slot's text no longer holds, and is not asked
    return bytes(data)


def test(lab, rest):
    if rest == ["--store"]:
        args, out = stored_job(lab), lab.path("old-out.tif")
        stop(lab, args, out)
        with open(out + ".journal", "rb") as f:
            print(base64.b64encode(zlib.compress(f.read(), 9)).decode())
        return
    chosen = [globals()[name] for name in rest] or [test_external_data, test_patterns, test_statistics,
                                                    test_long_settings, test_older_journals,
                                                    test_what_is_said_behind_a_discard]
    for one in chosen:
        one(lab)
        print("ok  %s" % one.__name__, flush=True)


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
