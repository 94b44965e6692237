#!/usr/bin/env python3
"""What a user of films comes by: through pipes, into pictures, what is kept, and what is said when it goes wrong.

    film_walk.py TEGULA SOURCE VIDEOS

Seen by ffprobe and ffmpeg. 77: no samples, or no ffprobe and ffmpeg."""
import sys

from film_help import expect, ffmpeg, in_folder, network, run, sample


def what_another_film_differs_in():
    """Of two long descriptions of the film the words that differ, whole."""
    args = ["run", "-m", network(3), sample("carphone_pristine.mp4"), "--normalize", "none", "-o", "other.mp4"]
    got = run(*args, TEGULA_FAIL_IO="30:kill", TEGULA_SYNC_TILES="1")[0]
    expect(got == -9, f"{got}: not killed")
    for words, says in ((("--crf", "30"), "(...crf=-1..., now ...crf=30...)"), (("--codec", "hevc"), "(h264..., now hevc...)")):
        code, _, err = run(*args, *words)
        expect(code == 65 and "another form of its film " + says in err, f"{words}: {code}: {err}")


def all_of_it(_):
    what_another_film_differs_in()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
