#!/usr/bin/env python3
"""Films as images, by the command: what it says of them, their frames through a network, their memory, their damage.

    films.py TEGULA SOURCE VIDEOS

VIDEOS is the folder of sample films with its index.csv; 77 without it. A film is a plane for each frame (axes TYXS)."""
import json
import os
import re
import struct
import sys

from film_help import SANITIZED, bytes_of, expect, in_folder, run, sample
from seeds import blk, model, node, num, port  # noqa: E402


def numbers_of(npy):
    """The array's bytes behind its head, which may name another shape."""
    data = bytes_of(npy)
    return data[10 + struct.unpack_from("<H", data, 8)[0]:]


def identity(channels):
    """A network that hands out what it gets."""
    weights = struct.pack(f"<{channels ** 2}f", *(float(i == k) for i in range(channels) for k in range(channels)))
    tensor = b"".join(num(1, d) for d in (channels, channels, 1, 1)) + num(2, 1) + blk(8, "w") + blk(9, weights)
    shape = ["N", channels, "H", "W"]
    return model([node("Conv", ["x", "w"], ["y"], kernel_shape=[1, 1])], [tensor],
                 [port("x", shape)], [port("y", shape)])


def done(stdout):
    return json.loads(stdout.strip().splitlines()[-1])


def info_tells_frames_and_their_size(rows):
    for row in rows:
        code, out, err = run("info", sample(row["file"]), "--json")
        expect(code == 0, f"{row['file']}: {code}: {err}")
        if code:
            continue
        i = json.loads(out.strip().splitlines()[-1])
        w, h = int(row["width"]), int(row["height"])
        if row["rotation"] and abs(int(row["rotation"])) == 90:
            w, h = h, w
        expect(i["axes"][0] == "T" and i["shape"][:3] == [int(row["frames_decoded"]), h, w], f"{row['file']}: {i['shape']}, index {row}")


def a_film_goes_through_a_network(rows):
    """Into a stack, with the frames that a copy has, in no more memory than was planned, at the smallest budget, too."""
    for row in rows:
        film, grey = sample(row["file"]), row["pix_fmt"].startswith("gray")
        channels = 1 if grey else 3  # the GIF among them is opaque
        with open("same.onnx", "wb") as f:
            f.write(identity(channels))
        frames = ["--planes", "0-2"]
        code, _, err = run("copy", film, "-o", "copied.npy", "-y", *frames)
        expect(code == 0, f"{row['file']}: copy: {code}: {err}")
        words = ["-m", "same.onnx", film, "--normalize", "none", *frames, "--dtype", "same", "--interlaced", "as-is"]
        told = re.search(r"--ram (\d+)MiB", "--ram 512MiB" if SANITIZED else run("plan", *words, "--ram", "3MiB")[2])
        expect(told, f"{row['file']}: a refusal that names --ram")
        if not told:
            continue
        code, out, err = run("run", *words, "-o", "run.tif", "-y", "--ram", f"{told[1]}MiB", "--json")
        expect(code == 0, f"{row['file']} in {told[1]} MiB: {code}: {err}")
        if code:
            continue
        d = done(out)
        expect(SANITIZED or d["measured_peak_bytes"] <= d["predicted_peak_bytes"] <= int(told[1]) << 20,
               f"{row['file']}: {d['measured_peak_bytes']} bytes measured, {d['predicted_peak_bytes']} planned, --ram {told[1]}MiB")
        code, _, err = run("copy", "run.tif", "-o", "run.npy", "-y")
        expect(code == 0 and numbers_of("run.npy") == numbers_of("copied.npy"), f"{row['file']}: other pixels")
        print(f"  {row['file']}: {told[1]} MiB, {d['measured_peak_bytes'] / d['predicted_peak_bytes']:.2f} of what was planned", flush=True)


def a_stopped_run_goes_on(rows):
    film = sample(rows[0]["file"])
    with open("same.onnx", "wb") as f:
        f.write(identity(3))
    words = ["run", "-m", "same.onnx", film, "--normalize", "none", "--planes", "100-111", "--dtype", "same"]
    expect(run(*words, "-o", "whole.tif", "-y")[0] == 0, "the undisturbed run")
    kills = 0
    for at in (60, 90, 150):
        code, _, err = run(*words, "-o", "killed.tif", TEGULA_FAIL_IO=f"{at}:kill", TEGULA_SYNC_TILES="1")
        expect(code in (-9, 0, 73), f"{at}: {code}: {err}")
        kills += code == -9
    code, _, err = run(*words, "-o", "killed.tif")
    expect(kills > 1 and code in (0, 73), f"{kills} kills, then {code}: {err}")
    expect(bytes_of("killed.tif") == bytes_of("whole.tif"), "other bytes after kills")


def what_is_not_whole_is_damage(rows):
    whole = bytes_of(sample(rows[0]["file"]))
    for part in (0.3, 0.6, 0.9):
        with open("cut.mp4", "wb") as f:
            f.write(whole[:int(part * len(whole))])
        code, _, err = run("copy", "cut.mp4", "-o", "cut.tif", "-y")
        expect(code == 65 and not os.path.exists("cut.tif"), f"{part} of a film: {code}: {err}")
    for row in rows:
        if int(row["decode_errors"]):
            code, _, err = run("copy", sample(row["file"]), "-o", "cut.tif", "-y")
            expect(code == 65 and "damaged" in err, f"{row['file']}: {code}: {err}")


def without_the_plugin_it_is_said(rows):
    code, _, err = run("info", sample(rows[0]["file"]), TEGULA_AV_PLUGIN="none")
    expect(code == 69 and "libtegula_av.so" in err and "TEGULA_AV_PLUGIN" in err, f"{code}: {err}")


def all_of_it(rows):
    info_tells_frames_and_their_size(rows)
    a_film_goes_through_a_network(rows)
    a_stopped_run_goes_on(rows)
    what_is_not_whole_is_damage(rows)
    without_the_plugin_it_is_said(rows)


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it))
