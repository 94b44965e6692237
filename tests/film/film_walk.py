#!/usr/bin/env python3
"""What a user of films comes by: through pipes, into pictures, what is kept, and what is said when it goes wrong.

    film_walk.py TEGULA SOURCE VIDEOS

Seen by ffprobe and ffmpeg. 77: no samples, or no ffprobe and ffmpeg."""
import os
import re
import shlex
import sys

from film_help import SOURCE, expect, ffmpeg, in_folder, network, run, sample
from film_write import probe


def good(*words):
    """A run that ends well; what it says."""
    code, _, err = run("run", "-m", network(3), "-y", "--normalize", "none", *words)
    expect(code == 0, f"{words}: {code}: {err}")
    return err


def the_first_screen_of_the_readme():
    """A TIFF and a film: both commands, as they stand there."""
    with open(os.path.join(SOURCE, "README.md"), encoding="utf-8") as f:
        block = re.search(r"\n\n((?:    tegula run .*\n|        .*\n)+)", f.read()).group(1)
    commands = re.findall(r"^    (tegula run [^#\n]*?(?:\\\n[^#\n]*)?) *#", block, re.M)
    expect(len(commands) == 2 and "film.mp4" in commands[1] and ".tif" in commands[0], f"README: {commands}")
    network(1, "denoise.onnx")
    network(3, "lowlight.onnx")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1", "-f", "lavfi", "-i", "sine=duration=1", "-c:v", "libx264", "-c:a", "aac", "film.mp4")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48", "-frames:v", "1", "-pix_fmt", "gray", "stack.tif")
    for line in commands:
        words = shlex.split(line.replace("\\\n", " "))
        code, _, err = run(*words[1:])
        expect(code == 0 and os.path.exists(words[words.index("-o") + 1]), f"{line}: {code}: {err}")
    expect([s["codec_type"] for s in probe("bright.mp4", "-show_streams")["streams"]] == ["video", "audio"], "README: the film's sound")


def what_another_film_differs_in():
    """Of two long descriptions of the film the words that differ, whole."""
    args = ["run", "-m", network(3), sample("carphone_pristine.mp4"), "--normalize", "none", "-o", "other.mp4"]
    got = run(*args, TEGULA_FAIL_IO="30:kill", TEGULA_SYNC_TILES="1")[0]
    expect(got == -9, f"{got}: not killed")
    for words, says in ((("--crf", "30"), "(...crf=usual..., now ...crf=30...)"), (("--codec", "hevc"), "(h264..., now hevc...)")):
        code, _, err = run(*args, *words)
        expect(code == 65 and "another form of its film " + says in err, f"{words}: {code}: {err}")


def words_of_a_phone():
    """com.apple.quicktime.* of a phone's film are in a MOV or MP4; what has no place there is named."""
    words = {"com.apple.quicktime.make": "Apple", "com.apple.quicktime.location.ISO6709": "+37.1-122.2/", "title": "a day"}
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1", "-c:v", "libx264", "-movflags", "use_metadata_tags",
           *(x for k, v in words.items() for x in ("-metadata", f"{k}={v}")), "phone.mov")
    for out in ("p.mov", "p.mp4", "p.mkv"):
        err = good("phone.mov", "-o", out)
        tags = probe(out, "-show_format")["format"]["tags"]
        got = {k.lower(): v for k, v in tags.items()} if out == "p.mkv" else tags
        want = {k.lower(): v for k, v in words.items()} if out == "p.mkv" else words
        expect(all(got.get(k) == v for k, v in want.items()) and "no place" not in err, f"{out}: {tags}: {err}")
    ffmpeg("-i", "phone.mov", "-c", "copy", "-metadata", "mood=fair", "-metadata", "com.apple.quicktime.make=", "-metadata",
           "com.apple.quicktime.location.ISO6709=", "mood.mkv")
    err = good("mood.mkv", "-o", "m.mp4")
    expect("no place for these words about the film: MOOD" in err, f"a word without a place: {err}")
    expect("no place" not in good("mood.mkv", "-o", "m.mkv"), "a word of a .mkv")


def rows_of_two_moments():
    """As they are: each container and codec that says so says which rows come first; others are told."""
    film = "testsrc=size=64x48:rate=50:duration=1"
    for order, scan, top in (("tt", "tff", 1), ("bb", "bff", 0)):
        ffmpeg("-f", "lavfi", "-i", film, "-vf", f"interlace=scan={scan}", "-c:v", "ffv1", "-field_order", order, "-pix_fmt", "yuv420p", "two.mkv")
        for out, *more in (("a.mp4",), ("a.mov",), ("a.mkv",), ("b.mov", "--codec", "ffv1"), ("b.mkv", "--codec", "ffv1"),
                           ("c.mov", "--codec", "prores"), ("a.y4m",)):
            err = good("two.mkv", "-o", out, "--interlaced", "as-is", *more)
            got = probe(out, "-show_streams", "-show_frames", "-read_intervals", "%+#1")
            said = (got["streams"][0].get("field_order"), got["frames"][0]["interlaced_frame"], got["frames"][0]["top_field_first"])
            expect(said == (order, 1, top) and "does not say so" not in err, f"{out} {more} of {order}: {said}: {err}")
        err = good("two.mkv", "-o", "d.mkv", "--interlaced", "as-is", "--codec", "hevc")
        expect("does not say so" in err, f"HEVC of {order}: {err}")
    err = good("two.mkv", "-o", "part.mkv", "--interlaced", "as-is", "--roi", "0:40,0:64")
    expect("does not say so" in err, f"some of the rows: {err}")


def all_of_it(_):
    the_first_screen_of_the_readme()
    words_of_a_phone()
    rows_of_two_moments()
    what_another_film_differs_in()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
