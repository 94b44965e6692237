#!/usr/bin/env python3
"""What codecs tell of damage: films with one other bit in a packet, through a network that changes nothing. A table.

    flips.py TEGULA SOURCE VIDEOS [FILMS [CODEC ...]]

FILMS (100) of each codec: 60 frames of 320x180 from ffmpeg, then one bit of all that packets hold is another, by TEGULA_SEED (7).
`run` ends in 65 (told), or in 0 with the same pixels or with others. ffmpeg decodes it, too, with `-xerror -err_detect explode`; *it
alone*: where ffmpeg tells and `run` ends in 0. Its threads move its figures by one.
Matroska is written without checksums of its clusters, so that the codec alone tells. Exit 1: another exit code, a signal, or exit 0
with fewer frames than the whole film and no warning that the whole film has not; 77: no ffmpeg. TEGULA_KEEP: a folder for such films, and for
those of which ffmpeg alone tells."""
import bisect
import itertools
import os
import random
import shutil
import subprocess
import sys

from film_help import TEGULA, WRONG, bytes_of, expect, ffmpeg, in_folder, network, run

FILMS = int(sys.argv[4]) if len(sys.argv) > 4 else 100
SEED = int(os.environ.get("TEGULA_SEED", "7"))
SOURCE = ["-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25,noise=alls=10:allf=t:all_seed=1", "-frames:v", "60", "-threads", "1", "-g", "20"]
Q = ["-q:v", "4"]
CODECS = {  # ending, how it is encoded
    "H.264": ("mp4", ["libx264"]),
    "H.264, CAVLC": ("mp4", ["libx264", "-profile:v", "baseline"]),
    "HEVC": ("mp4", ["libx265", "-preset", "fast", "-x265-params", "log-level=none:pools=none:frame-threads=1"]),
    "HEVC, checksums": ("mp4", ["libx265", "-preset", "fast", "-x265-params", "log-level=none:pools=none:frame-threads=1:hash=1"]),
    "VP8": ("mkv", ["libvpx", "-b:v", "1M", "-deadline", "realtime", "-cpu-used", "4"]),
    "VP9": ("mp4", ["libvpx-vp9", "-b:v", "1M", "-deadline", "realtime", "-cpu-used", "6"]),
    "AV1": ("mp4", ["libaom-av1", "-b:v", "1M", "-usage", "realtime", "-cpu-used", "8"]),
    "MPEG-1": ("mkv", ["mpeg1video", *Q, "-bf", "2"]),
    "MPEG-2": ("mkv", ["mpeg2video", *Q, "-bf", "2"]),
    "MPEG-4": ("mp4", ["mpeg4", *Q]),
    "H.263": ("mkv", ["h263p", *Q]),
    "FLV1": ("mkv", ["flv1", *Q]),
    "MS-MPEG-4 2": ("mkv", ["msmpeg4v2", *Q]),
    "MS-MPEG-4 3": ("mkv", ["msmpeg4", *Q]),
    "WMV1": ("mkv", ["wmv1", *Q]),
    "WMV2": ("mkv", ["wmv2", *Q]),
    "Theora": ("mkv", ["libtheora", "-q:v", "7"]),
    "MJPEG": ("mkv", ["mjpeg", *Q, "-pix_fmt", "yuvj420p"]),
    "ProRes": ("mov", ["prores_ks", "-pix_fmt", "yuv422p10le"]),
    "FFV1, checksums": ("mkv", ["ffv1", "-level", "3", "-slicecrc", "1"]),
    "FFV1, none": ("mkv", ["ffv1", "-level", "3", "-slicecrc", "0"]),
}


def places(film, data):
    """Where packets lie in the file: (first bytes, lengths)."""
    words = ["-v", "error", "-i", film, "-map", "0:v", "-c", "copy", "-f", "data", "-"]
    packets = subprocess.run(["ffmpeg", *words], capture_output=True, check=True).stdout
    words = ["-v", "error", "-select_streams", "v", "-show_entries", "packet=size", "-of", "csv=p=0", film]
    sizes = [int(n.strip(",")) for n in subprocess.run(["ffprobe", *words], capture_output=True, text=True, check=True).stdout.split()]
    assert sum(sizes) == len(packets), f"{film}: {sum(sizes)} bytes of packets, {len(packets)} were read"
    begins, at, behind = [], 0, 0
    for size in sizes:
        begins.append(data.index(packets[at:at + size], behind))
        at, behind = at + size, begins[-1] + size
    return begins, sizes


def through(film):
    """Exit code, pixels and warnings of a run."""
    code, _, err = run("run", "-m", "same.onnx", film, "-o", "out.raw", "-y", "-q", "--normalize", "none", "--threads", "1")
    pixels = bytes_of("out.raw") if code == 0 else b""
    for name in [x for x in os.listdir(".") if x.startswith("out.")]:
        os.remove(name)
    return code, pixels, err.splitlines()


def one(what, film, whole, said):
    """How a run over this film ends; whether ffmpeg ends in an error; whether it does or logs one."""
    code, pixels, err = through(film)
    before = len(WRONG)
    expect(code in (0, 65), f"{what}: exit {code}: {err}")
    words = [x for x in err if x not in said]
    expect(code or len(pixels) >= len(whole) or words, f"{what}: {len(pixels)} bytes of pixels, {len(whole)} of the whole film, and no word")
    if code == 0 and len(pixels) != len(whole):
        print(f"  {what}: {len(pixels)} bytes of pixels, {len(whole)} of the whole film: {words}", flush=True)
    end = "told" if code == 65 else "same" if pixels == whole else "other"
    other = subprocess.run(["ffmpeg", "-v", "error", "-xerror", "-err_detect", "explode", "-i", film, "-f", "null", "-"],
                           capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=False)
    ends_in_error = other.returncode != 0
    says = ends_in_error or bool(other.stderr.strip())
    if (len(WRONG) > before or (says and code == 0)) and os.environ.get("TEGULA_KEEP"):
        shutil.copy(film, os.path.join(os.environ["TEGULA_KEEP"], what.replace(",", "").replace(" ", "_") + os.path.splitext(film)[1]))
    return end, ends_in_error, says


def codec(name):
    ending, words = CODECS[name]
    film, r = "film." + ending, random.Random(f"{SEED} {name}")
    ffmpeg(*SOURCE, "-pix_fmt", "yuv420p", "-c:v", *words, *(["-write_crc32", "0"] if ending == "mkv" else []), film)
    data = bytes_of(film)
    begins, sizes = places(film, data)
    ends = list(itertools.accumulate(sizes))
    code, whole, said = through(film)
    expect(code == 0, f"{name}: the whole film: exit {code}: {said}")
    counts = {k: 0 for k in ("told", "same", "other", "ends", "says", "alone")}
    for k in range(FILMS):
        bit = r.randrange(8 * ends[-1])
        n = bisect.bisect_right(ends, bit // 8)
        at = begins[n] + bit // 8 - (ends[n] - sizes[n])
        with open(film, "wb") as f:
            f.write(data[:at] + bytes([data[at] ^ 1 << bit % 8]) + data[at + 1:])
        end, ends_in_error, says = one(f"{name}, {k}, bit {bit % 8} of byte {at}", film, whole, said)
        counts[end] += 1
        counts["ends"] += ends_in_error
        counts["says"] += says
        counts["alone"] += says and end != "told"
    os.remove(film)
    print(f"| {name} | " + " | ".join(str(n) for n in counts.values()) + " |", flush=True)


def all_of_it(_):
    network(3)
    print(f"{TEGULA}: {FILMS} films of each codec, seed {SEED}")
    print("| codec | 65 | 0, the same pixels | 0, other pixels | ffmpeg ends in an error | or logs one | it alone |\n|---|---|---|---|---|---|---|")
    for name in sys.argv[5:] or CODECS:
        codec(name)


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffmpeg", "ffprobe", samples=False))
