#!/usr/bin/env python3
"""A part of a film, chosen by frames or by times, seen by ffprobe and ffmpeg.

    film_part.py TEGULA SOURCE VIDEOS

Frames are those of the film, exactly; times, sound, subtitles and chapters are those of the part, from its first frame
on. The same part, said in another way, is the same file. 77: no samples, or no ffprobe and ffmpeg."""
import subprocess
import sys

from film_help import bytes_of, expect, ffmpeg, in_folder, network, run, sample
from film_write import packets, probe, times


def write(film, out, *words):
    code, _, err = run("run", "-m", network(3), film, "-o", out, "-y", "--normalize", "none", *words)
    expect(code == 0, f"{film} {words}: {code}: {err}")
    return err


def hashes(path):
    r = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-map", "0:V:0", "-vsync", "passthrough", "-f", "framemd5", "-"],
                       capture_output=True, text=True, check=False)
    return [line.split(",")[-1].strip() for line in r.stdout.splitlines() if line and line[0] != "#"]


def frames_are_those(film, first, until, *words):
    """Of the whole film without loss the same frames; times from the first one on."""
    write(film, "all.mov", "--codec", "ffv1")
    write(film, "part.mov", "--codec", "ffv1", *words)
    expect(hashes("part.mov") == hashes("all.mov")[first:until], f"{film} {words}: not frames {first} to {until}")
    was, is_ = times(film)[first:until], times("part.mov")
    expect(len(was) == len(is_) and max(abs(a - was[0] - b) for a, b in zip(was, is_)) < 1e-4, f"{film} {words}: times {is_[:3]}")
    return was[0], was[-1]


def sound_goes_with_it(film, begin, last):
    """Packets that begin in the part, all of them, as far from its first frame as they were."""
    expect(len(packets(film)) == len(packets("part.mov")) == 1, f"{film}: tracks of sound")
    ticks = [1 / int(t["sample_rate"]) for t in probe("part.mov", "-select_streams", "a", "-show_streams")["streams"]]
    for (codec, was), (_, is_), tick in zip(packets(film), packets("part.mov"), ticks):
        want = [(float(t) - begin, h) for t, h in was if begin <= float(t)]
        got = [(float(t), h) for t, h in is_]
        expect(got and [h for _, h in got] == [h for _, h in want[:len(got)]], f"{film}: {codec} is not that of the part")
        off = max(abs(a[0] - b[0]) for a, b in zip(got, want))
        expect(off < tick + 2e-6, f"{film}: {codec} is {off} s off, a tick is {tick}")
        expect(abs(got[-1][0] - (last - begin)) < 0.1, f"{film}: {codec} ends at {got[-1][0]}, frames at {last - begin}")


def said_in_another_way():
    film = sample("carphone_pristine.mp4")
    all_times = times(film)
    for words, same in ((("--frames", "10:40"), ("--start", f"{all_times[10] - all_times[0]:.3f}", "--end", f"{all_times[40] - all_times[0]:.3f}")),
                        (("--frames", ":25"), ("--end", f"0:{all_times[25] - all_times[0]:.6f}")),
                        (("--frames", "50:"), ("--start", f"00:00:0{all_times[50] - all_times[0]:.6f}"))):
        write(film, "a.mp4", *words)
        write(film, "b.mp4", *same)
        expect(bytes_of("a.mp4") == bytes_of("b.mp4"), f"{words} and {same} give different files")


def subtitles_and_chapters():
    """One subtitle begins before the part, one lies in it, one behind; a chapter begins before it."""
    def stamp(s):
        return f"00:00:{s:06.3f}".replace(".", ",")
    with open("s.srt", "w", encoding="ascii") as f:
        for k, (a, b) in enumerate(((0.2, 1.5), (1.6, 1.8), (2.6, 2.9))):
            f.write(f"{k + 1}\n{stamp(a)} --> {stamp(b)}\nline {k}\n\n")
    with open("chapters", "w", encoding="ascii") as f:
        f.write(";FFMETADATA1\n" + "".join(f"[CHAPTER]\nTIMEBASE=1/1000\nSTART={a}\nEND={b}\ntitle=c{a}\n" for a, b in ((0, 1200), (1200, 3000))))
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=3", "-i", "s.srt", "-i", "chapters",
           "-map", "0", "-map", "1", "-map_metadata", "2", "-c:v", "ffv1", "-c:s", "srt", "src.mkv")
    write("src.mkv", "part.mkv", "--codec", "ffv1", "--start", "1", "--end", "2")
    rows = [(round(float(p["pts_time"]), 2), round(float(p["duration_time"]), 2)) for p in
            probe("part.mkv", "-select_streams", "s", "-show_packets")["packets"]]
    expect(rows == [(0, 0.5), (0.6, 0.2)], f"subtitles {rows}")
    rows = [(round(float(c["start_time"]), 2), round(float(c["end_time"]), 2)) for c in probe("part.mkv", "-show_chapters")["chapters"]]
    expect(rows == [(0, 0.2), (0.2, 1)], f"chapters {rows}")


def to_the_end_is_to_the_end():
    """Sound goes on behind the last frame."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1", "-f", "lavfi", "-i", "sine=duration=3", "-c:v", "libx264", "-c:a", "aac", "tail.mp4")
    write("tail.mp4", "t.mp4", "--frames", "5:")
    last = float(packets("t.mp4")[0][1][-1][0])
    expect(2.3 < last < 2.6, f"sound of 5: ends at {last}")


def sound_of_frames_without_times():
    """It is cut at the rate of the header, of which a warning tells; a whole film has all of it, without a word."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=4", "-f", "lavfi", "-i", "sine=duration=4", "-c:v", "mpeg4", "-bf", "2", "-c:a", "pcm_s16le",
           "sound.avi")
    whole = [h for _, h in packets("sound.avi")[0][1]]
    for words, begin, end in (((), 0, 4), (("--frames", "10:25"), 1, 2.5), (("--start", "3"), 3, 4)):
        err = write("sound.avi", "r.mkv", "--codec", "ffv1", *words)
        got = packets("r.mkv")[0][1]
        want = [(float(t), h) for t, h in packets("sound.avi")[0][1] if begin <= float(t) < end - 1e-6]
        expect([h for _, h in got] == [h for _, h in want] and (words or len(got) == len(whole)), f"{words}: {len(got)} packets of sound, not {len(want)}")
        off = max(abs(float(a[0]) - b[0] + begin) for a, b in zip(got, want))
        expect(off < 0.001, f"{words}: sound is {off} s off")
        expect(("cut as if each came at the rate of its header, 10 frames" in err) == bool(words), f"{words}: {err}")


def sound_of(film):
    return subprocess.run(["ffmpeg", "-v", "error", "-i", film, "-map", "0:a:0", "-f", "s16le", "-"], capture_output=True, check=True).stdout


def on_air(name, *words, rate=25, seconds=3):
    ffmpeg("-f", "lavfi", "-i", f"testsrc2=size=64x48:rate={rate}:duration={seconds}", "-f", "lavfi", "-i", f"sine=duration={seconds}:sample_rate=48000", "-c:v",
           "libx264", "-g", "25", "-bf", "2", "-c:a", "ac3", *words, name)


def sound_in_front_of_the_first_frame():
    """A recording begins amid a group of pictures: its sound is there before, and is heard."""
    on_air("air.ts")
    ffmpeg("-ss", "1.3", "-i", "air.ts", "-c", "copy", "front.ts")
    was = times("front.ts")[0] - float(packets("front.ts")[0][1][0][0])
    expect(was > 0.2, f"sound begins {was} s in front")
    for out in ("front.mp4", "front.mkv"):
        write("front.ts", out)
        is_ = times(out)[0] - float(packets(out)[0][1][0][0])
        expect(abs(is_ - was) < 0.0011 and len(sound_of(out)) == len(sound_of("front.ts")), f"{out}: sound begins {is_} s in front, not {was}")


def one_clock(film, parts, out, err):
    """All frames of the parts at 25 a second, all their sound without a gap, as far from the frames as in the first part."""
    was = times(parts[0])[0] - float(packets(parts[0])[0][1][0][0])
    shown, heard = times(out), [float(t) for t, _ in packets(out)[0][1]]
    expect("its clock starts again amid it, so frames come at 25 a second" in err, f"{film}: {err}")
    expect(len(shown) == 75 * len(parts) and all(abs(b - a - 0.04) < 0.0011 for a, b in zip(shown, shown[1:])), f"{film}, {out}: {len(shown)} frames to {shown[-1]}")
    step = 0.024 if film.endswith("mpg") else 0.032
    expect(all(abs(b - a - step) < 0.0011 for a, b in zip(heard, heard[1:])), f"{film}, {out}: sound has gaps, to {heard[-1]}")
    expect(abs(shown[0] - heard[0] - was) < 0.0011, f"{film}, {out}: sound begins {shown[0] - heard[0]} s in front, not {was}")
    expect(len(heard) == sum(len(packets(part)[0][1]) for part in parts), f"{film}, {out}: {len(heard)} packets of sound")


DISC = ("-c:v", "mpeg2video", "-f", "vob")
FORMS = (("ts", (), ((0, 0), (30, 0), (1800, 0), (60000, 0), (0, 95000), (0, 1800, 0))), ("vob", DISC, ((0, 0), (1800, 0), (0, 1800))),
         ("mpg", ("-c:v", "mpeg2video", "-c:a", "mp2"), ((1800, 0),)))


def a_clock_that_starts_again():
    """Recordings behind each other (cat a.ts b.ts), cells of a DVD: sound stays with its frames, and goes on. Where the clock goes back by more than
    a minute libavformat takes it for one that counted to its end."""
    for end, words, films in FORMS:
        for at in {at for starts in films for at in starts}:
            on_air(f"at{at}.{end}", *words, "-output_ts_offset", str(at))
        for starts in films:
            parts, film = [f"at{at}.{end}" for at in starts], "again." + end
            with open(film, "wb") as f:
                f.write(b"".join(bytes_of(part) for part in parts))
            for out in ("again.mp4", "again.mkv") if starts[0] else ("again.mp4",):
                one_clock(f"{starts}.{end}", parts, out, write(film, out))
        in_order, film = [], "again." + end
        for part in parts:
            write(part, "one.mov", "--codec", "ffv1")
            in_order += hashes("one.mov")
        write(film, "again.mov", "--codec", "ffv1")
        expect(hashes("again.mov") == in_order, f"{film}: frames are others than those of its parts")
        write(film, "part.mov", "--codec", "ffv1", "--start", "2", "--end", "4")
        expect(hashes("part.mov") == in_order[50:100], f"{film}: a part has other frames")


def sound_of_a_part_by_a_late_clock():
    """Frames without times, of a clock that does not begin at 0: sound is that of the part, as far from its frames as in the whole, also where the clock
    starts again amid it."""
    for end, words in (("vob", DISC), ("ts", ())):
        for at in (0, 1800):
            on_air(f"at{at}.{end}", *words, "-output_ts_offset", str(at))
        with open("back." + end, "wb") as f:
            f.write(bytes_of(f"at1800.{end}") + bytes_of(f"at0.{end}"))
        for film in ("at1800." + end, "back." + end):
            write(film, "all.mkv", "--codec", "ffv1")
            first, whole = times("all.mkv")[0], packets("all.mkv")[0][1]
            for begin, until in ((1, 2), (2, 2.8), (2, 4)) if film.startswith("back") else ((1, 2), (2, 2.8)):
                write(film, "part.mkv", "--codec", "ffv1", "--start", str(begin), "--end", str(until))
                got, want = packets("part.mkv")[0][1], [(float(t) - first - begin, h) for t, h in whole if begin <= float(t) - first < until]
                expect(got and abs(len(got) - len(want)) < 2, f"{film} from {begin}: {len(got)} packets of sound, not {len(want)}")
                at = {h: t for t, h in want}
                off = [abs(float(t) - at[h]) for t, h in got if h in at]
                expect(len(off) >= len(want) - 1 and max(off) < 0.0021, f"{film} from {begin}: sound is {max(off or [9])} s off")


def a_clock_at_its_end():
    """It has 33 bits: after 26.5 hours it goes on at 0, and so does the film. Where the film begins a minute before that or earlier libavformat counts
    on from there, else it counts from what is below 0."""
    for end, words, _ in FORMS:
        for at, rate, seconds in ((95441, 25, 5), (95372, 5, 80)):
            if end != "ts" and rate == 5:  # which MPEG-2 has not
                continue
            on_air("end." + end, *words, "-output_ts_offset", str(at), rate=rate, seconds=seconds)
            err = write("end." + end, "end.mkv")
            shown, heard = times("end.mkv"), [float(t) for t, _ in packets("end.mkv")[0][1]]
            expect("starts again" not in err, f"{end}, {at}: {err}")
            expect(len(shown) == rate * seconds and all(abs(b - a - 1 / rate) < 0.0011 for a, b in zip(shown, shown[1:])), f"{end}, {at}: {len(shown)} frames to {shown[-1]}")
            expect(abs(heard[-1] - seconds) < 0.2 and all(b - a < 0.1 for a, b in zip(heard, heard[1:])), f"{end}, {at}: sound to {heard[-1]}")
            write("end." + end, "all.mov", "--codec", "ffv1")
            for first in (rate * seconds - 20, 10):
                write("end." + end, "part.mov", "--codec", "ffv1", "--frames", f"{first}:{first + 10}")
                expect(hashes("part.mov") == hashes("all.mov")[first:first + 10], f"{end}, {at}: frames from {first} on are others")


def other_tracks_of_clocks_that_start_again():
    """They come with the sound."""
    for at in (1800, 0):
        ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x48:rate=25:duration=3", "-f", "lavfi", "-i", "testsrc=size=32x32:rate=25:duration=3", "-f", "lavfi", "-i",
               "sine=duration=3:sample_rate=48000", "-map", "0", "-map", "1", "-map", "2", "-c:v", "mpeg2video", "-c:a", "ac3", "-output_ts_offset", str(at), f"two{at}.ts")
    with open("two.ts", "wb") as f:
        f.write(bytes_of("two1800.ts") + bytes_of("two0.ts"))
    for out in ("two.mp4", "two.mkv"):
        write("two.ts", out)
        got = sorted(float(p["pts_time"]) for p in probe(out, "-select_streams", "v:1", "-show_packets")["packets"])
        expect(len(got) == 150 and 5.8 < got[-1] < 6.2 and all(b - a < 0.1 for a, b in zip(got, got[1:])), f"{out}: {len(got)} frames of the other film, to {got[-1:]}")


def without_times():
    """Frames of an AVI with B-frames have none: they are counted at its rate, of which they are told."""
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=4", "-c:v", "mpeg4", "-bf", "2", "-q:v", "3", "b.avi")
    for words, same in ((("--start", "1", "--end", "1.2"), "10:12"), (("--start", "0:03.71"), "38:"), (("--end", "0.3"), ":3"), (("--start", "0.0999"), "1:")):
        err = write("b.avi", "a.mkv", "--codec", "ffv1", *words)
        write("b.avi", "b.mkv", "--codec", "ffv1", "--frames", same)
        expect("no times: 10 a second" in err and bytes_of("a.mkv") == bytes_of("b.mkv"), f"{words}: not as --frames {same}: {err}")
    for words, says in ((("--start", "4"), "comes at 3.900 s"), (("--start", "1", "--end", "1.05"), "")):
        code, _, err = run("plan", "-m", network(3), "b.avi", "-o", "o.mp4", "--normalize", "none", *words)
        expect((code == 64) == bool(says) and says in err, f"{words}: {code}: {err}")
    strips = []
    for words in (("--time", "2.55"), ("--frames", "25:26")):
        code, _, err = run("preview", "-m", network(3), "b.avi", "-o", "p.png", "-y", "--normalize", "none", *words)
        expect(code == 0, f"preview {words}: {code}: {err}")
        strips.append(bytes_of("p.png"))
    expect(strips[0] == strips[1], "preview --time shows another frame")
    code, _, err = run("preview", "-m", network(3), "b.avi", "-o", "p.png", "-y", "--normalize", "none", "--time", "4.1")
    expect(code == 64 and "to 4.000 s" in err, f"preview behind the end: {code}: {err}")


def its_time_code_is_that_of_its_first_frame():
    """As ffmpeg spells it; at 29.97 frames a second numbers 0 and 1 of most minutes are dropped."""
    for rate, name, word, begin, others in (("30000/1001", "tc.mov", "-timecode", "00:00:59;20", ((9, "00:00:59;29"), (10, "00:01:00;02"), (31, "00:01:00;23"))),
                                            ("25", "late.mov", "-timecode", "23:59:59:20", ((6, "00:00:00:01"),)),
                                            ("24000/1001", "tc.mkv", "-metadata", "10:00:00:00", ((26, "10:00:01:02"),)),
                                            ("25", "no.mkv", "-metadata", "ten o'clock", ((3, None),))):
        ffmpeg("-f", "lavfi", "-i", f"testsrc=size=64x48:rate={rate}:duration=2", "-c:v", "libx264", word, begin if word == "-timecode" else "timecode=" + begin, name)
        for first, want in ((0, begin), *others):
            for out in ("tc_part.mov", "tc_part.mkv"):
                if want == "ten o'clock" and out.endswith("mov"):
                    continue  # it has a clock, and this is none
                err = write(name, out, "--frames", f"{first}:{first + 9}")
                said = subprocess.run(["ffprobe", "-v", "error", "-of", "csv=p=0", "-show_entries", "stream_tags=timecode:format_tags=timecode", out],
                                      capture_output=True, text=True, check=True).stdout.replace("\n", ",").split(",")
                expect({x for x in said if x} == ({want} if want else set()), f"{name} from frame {first} into {out}: {said}, not {want}")
                expect(("the time code" in err) == (want is None), f"{name} from frame {first} into {out}: {err}")
    for clock, out, kept in (("ten o'clock", "tc_all.mov", False), ("ten o'clock", "tc_all.mkv", True), ("01:00:00:31", "tc_all.mp4", False),
                             ("25:00:00:00", "tc_all.mov", True)):
        ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=25:duration=1", "-c:v", "libx264", "-metadata", f"timecode={clock}", "odd.mkv")
        err = write("odd.mkv", out)
        expect((f"the time code ({clock}), which this film cannot count" in err) != kept, f"{clock} into {out}: {err}")


def a_second_film_is_named():
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=2", "-f", "lavfi", "-i", "testsrc2=size=64x48:rate=10:duration=2", "-map", "0", "-map", "1",
           "-c:v", "libx264", "two.mp4")
    err = write("two.mp4", "one.mp4", "--frames", "5:15")
    expect("amid frames" in err, f"a second film track: {err}")


def what_is_refused():
    film = sample("realshort.mp4")
    for words, says in ((("--frames", "3"), "120:480"), (("--frames", "5:5"), "none in"), (("--frames", "0:100000"), "not all of"),
                        (("--frames", "0:5", "--start", "1"), "give one"), (("--start", "1:75"), "a time"), (("--start", "1e3"), "a time"),
                        (("--start", "4:00:00"), "--start 4:00:00: no frame is shown then: the last one of the film comes at"),
                        (("--end", "0"), "--end 0: no frame is shown before, from the beginning"), (("--start", "1", "--end", "0:01"), "from 1 on"),
                        (("--start", "0.001", "--end", "0.002"), "between these times"), (("--end", "-1"), "a time")):
        code, _, err = run("plan", "-m", network(3), film, "-o", "o.mp4", "--normalize", "none", *words)
        expect(code == 64 and says in err, f"{words}: {code}: {err}")
    ffmpeg("-f", "lavfi", "-i", "testsrc=size=64x48", "-frames:v", "1", "p.png")
    code, _, err = run("plan", "-m", network(3), "p.png", "-o", "o.tif", "--normalize", "none", "--frames", "0:1")
    expect(code == 64 and "is for films" in err, f"a picture: {code}: {err}")


def all_of_it(_):
    sound_goes_with_it(sample("test-sample0.mp4"), *frames_are_those(sample("test-sample0.mp4"), 31, 60, "--frames", "31:60"))
    frames_are_those(sample("unordered_pts.mov"), 1, 3, "--frames", "1:3")
    said_in_another_way()
    subtitles_and_chapters()
    to_the_end_is_to_the_end()
    sound_of_frames_without_times()
    sound_in_front_of_the_first_frame()
    a_clock_that_starts_again()
    sound_of_a_part_by_a_late_clock()
    a_clock_at_its_end()
    other_tracks_of_clocks_that_start_again()
    without_times()
    its_time_code_is_that_of_its_first_frame()
    a_second_film_is_named()
    what_is_refused()


if __name__ == "__main__":
    sys.exit(in_folder(all_of_it, "ffprobe", "ffmpeg"))
