"""A film of 1280 x 720 pixels, file to file, beside ffmpeg | Python and ONNX Runtime | ffmpeg: the family `film`.

Two rows for each network. `encoder excluded`: both sides write a YUV4MPEG2. `encoder included`: both write H.264 by
libx264 with the settings that tegula has. Two threads each: ours, and each of the peer's three processes. The peer's memory
is what its processes hold at most, added up; ours is the command's. Answers are compared by ffmpeg's PSNR of the films.

The clip is a sample film, enlarged, where there is one, else a test picture. `encoding` in a row is the encoder alone, of frames
that are there: the time that nothing but another encoder shortens. `floor`: what the run's seconds of processor would take on so many cores that
are never idle, over the same longer part.

`film_small`: as many pixels in frames of 96 x 64 and of 1280 x 720, YUV4MPEG2 to YUV4MPEG2: the rate at which small frames pass one by one, in
shares of that of large ones."""
import os
import re
import resource
import shutil
import subprocess

import lab

# The settings of io/av/av_encode.c.
H264 = "-c:v libx264 -crf 18 -rc-lookahead 10 -x264-params sync-lookahead=0:bf=2 -g 48 -threads 2"
RAW = "-f yuv4mpegpipe"
FRAMES = {"compact_x2_nomosuni": 4, "sci_low_light": 240}
ALIKE = 40  # dB: conversions of swscale are off by one and two


def ffmpeg(*words):
    code, seconds, _, _, err = lab.run_process(["ffmpeg", "-v", "info", "-nostdin", "-y", *words])
    if code != 0:
        raise lab.Failure(f"ffmpeg ended with {code}: {lab.last_words(err)}")
    return seconds, err


def clip(bench, frames):
    path = bench.file(f"clip{frames}.mp4")
    sample = os.path.join(bench.args.data, "data", "video", "bikes.mp4")
    source = ["-i", sample] if os.path.exists(sample) else ["-f", "lavfi", "-i", "testsrc2=size=1280x720:rate=25"]
    if not os.path.exists(path):
        ffmpeg(*source, "-frames:v", str(frames), "-an", "-vf", "scale=1280:720,setsar=1,format=yuv420p", *H264.split(), "-bsf:v",
               "h264_metadata=matrix_coefficients=1:colour_primaries=1:transfer_characteristics=1:video_full_range_flag=0", path)
    return path


def psnr(ours, theirs):
    """Decibels between two films of as many frames."""
    err = ffmpeg("-i", ours, "-i", theirs, "-lavfi", "psnr", "-f", "null", "-")[1]
    found = re.search(r"average:(\S+)", err)
    return float(found[1]) if found else 0.0


def count_frames(path):
    r = subprocess.run(["ffprobe", "-v", "error", "-count_packets", "-show_entries", "stream=nb_read_packets", "-of", "csv=p=0", path],
                       capture_output=True, text=True, check=True)
    return int(r.stdout.strip().strip(","))


def processor_seconds():
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Film:
    """One network over one clip, by the command and by the script."""

    def __init__(self, bench, name, path, end, encoder):
        self.bench, self.name, self.path, self.encoder = bench, name, path, encoder
        self.frames = FRAMES[name]
        self.clip = clip(bench, self.frames)
        self.ours_file, self.theirs_file = bench.file("ours" + end), bench.file("theirs" + end)
        self.runs = {"tegula": [], "peer": []}
        self.processor = []  # seconds of it, of each run of ours

    def ours(self):
        ram = ["--ram", self.bench.args.ram] if self.bench.args.ram else []
        return [self.bench.program("cli/tegula"), "run", "-q", "-y", "-m", self.path, self.clip, "-o", self.ours_file,
                *self.bench.common(), "--normalize", "scale:1/255", "--json", *ram]

    def theirs(self):
        return [*self.bench.peer("ffmpeg_ort.py"), "--threads", str(self.bench.args.threads), "--encoder", self.encoder,
                self.path, self.clip, self.theirs_file]

    def turn(self, who):
        lab.remove(self.ours_file if who == "tegula" else self.theirs_file)
        before = processor_seconds()
        code, seconds, peak, out, err = lab.run_process(self.ours() if who == "tegula" else self.theirs())
        if who == "tegula":
            self.processor.append(processor_seconds() - before)
        if code != 0:
            raise lab.Failure(f"{self.name}, {who}: ended with {code}: {lab.last_words(err)}")
        self.runs[who].append((peak, lab.json_lines(out)[-1]))
        return seconds

    def check(self):
        """Once, before anything is timed: the films are alike."""
        for who in self.runs:
            if who == "tegula" or self.bench.python:
                self.turn(who)
        if not self.bench.python:
            return None
        alike = psnr(self.ours_file, self.theirs_file)
        n = [count_frames(p) for p in (self.ours_file, self.theirs_file)]
        if alike < ALIKE or n != [self.frames] * 2:
            raise lab.Failure(f"{self.name}: films of {n} frames, PSNR {alike:.1f} dB")
        return alike


def encoding_alone(film, raw):
    """Seconds that libx264 takes for the frames of our film, as the median of three."""
    out = film.bench.file("alone.mp4")
    seconds = sorted(ffmpeg("-i", raw, *film.encoder.split(), out)[0] for _ in range(3))
    lab.remove(out)
    return seconds[1]


def row_of(film, what, seconds, alike):
    last = film.runs["tegula"][-1][1]
    row = {"family": "film", "case": f"{film.name} 1280x720x{film.frames}, encoder {what}",
           "config": film.bench.config(ram=film.bench.args.ram or "default"),
           "tegula": {"seconds": lab.summary(seconds["tegula"]), "peak_rss_bytes": max(p for p, _ in film.runs["tegula"]),
                      "own_peak_bytes": max(e["measured_peak_bytes"] for _, e in film.runs["tegula"]),
                      "planned_peak_bytes": last["predicted_peak_bytes"]}}
    if "peer" in seconds:
        row["peer"] = {"name": "ffmpeg + onnxruntime", "seconds": lab.summary(seconds["peer"]),
                       "peak_rss_bytes": max(e["peak_rss_bytes"] for _, e in film.runs["peer"])}
        row["answer_psnr"] = alike
        row.update(lab.ratios(seconds["peer"], seconds["tegula"]))
        row["memory_ratio"] = row["tegula"]["peak_rss_bytes"] / row["peer"]["peak_rss_bytes"]
    return row


def measured(film, what):
    alike = film.check()
    turns = {who: (lambda who=who: film.turn(who)) for who in film.runs if film.runs[who]}
    return row_of(film, what, lab.take_turns(turns, film.bench.few_rounds()), alike)


def film(bench, networks):
    if not shutil.which("ffmpeg") or not shutil.which("ffprobe"):
        raise lab.Failure("there is no ffmpeg here")
    for name, path in networks:
        if not bench.wanted(name):
            continue
        excluded = Film(bench, name, path, ".y4m", RAW)
        first = measured(excluded, "excluded")
        yield first
        included = Film(bench, name, path, ".mp4", H264)
        row = measured(included, "included")
        alone = encoding_alone(included, excluded.ours_file)
        longer = max(alone, first["tegula"]["seconds"]["median"])
        row["encoding_seconds"], row["over_longer"] = alone, row["tegula"]["seconds"]["median"] / longer
        row["floor"] = sorted(included.processor)[len(included.processor) // 2] / bench.args.threads / longer
        bench.say(f"{name}: {row['over_longer']:.2f} (no idle core: {row['floor']:.2f}) of the longer of decoding and network, "
                  f"{first['tegula']['seconds']['median']:.2f} s, and of encoding alone, {alone:.2f} s")
        yield row
        lab.remove(excluded.ours_file, excluded.theirs_file, included.ours_file, included.theirs_file)


# ---- Small frames ------------------------------------------------------------------------------------------------------

SMALL = {"96x64": 300, "1280x720": 2}  # frames of as many pixels


def film_small(bench, networks):
    if not shutil.which("ffmpeg"):
        raise lab.Failure("there is no ffmpeg here")
    for name, path in networks:
        if not bench.wanted(name):
            continue
        films = {size: bench.file(f"small{size}.y4m") for size in SMALL}
        for size, frames in SMALL.items():
            ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size}:rate=25", "-frames:v", str(frames), "-pix_fmt", "yuv420p", films[size])
        out, used = bench.file("small.y4m"), {size: [] for size in SMALL}

        def turn(size):
            before = processor_seconds()
            code, seconds, _, _, err = lab.run_process(
                [bench.program("cli/tegula"), "run", "-q", "-y", "-m", path, films[size], "-o", out, *bench.common(), "--normalize",
                 "scale:1/255"])
            if code != 0:
                raise lab.Failure(f"{name}, frames of {size}: ended with {code}: {lab.last_words(err)}")
            used[size].append(processor_seconds() - before)
            return seconds

        seconds = lab.take_turns({size: (lambda size=size: turn(size)) for size in SMALL}, bench.few_rounds())
        small, large = (seconds[size] for size in SMALL)
        row = {"family": "film_small", "case": f"{name}, frames of 96x64", "config": bench.config(),
               "tegula": {"seconds": lab.summary(small)}, "peer": {"name": "frames of 1280x720", "seconds": lab.summary(large)},
               "processor_ratio": sorted(used["1280x720"])[len(large) // 2] / sorted(used["96x64"])[len(small) // 2]}
        row.update(lab.ratios(large, small))
        bench.say(f"{name}: small frames at {row['ratio']:.2f} of the rate of large ones, {row['processor_ratio']:.2f} by processor time")
        yield row
        lab.remove(out, *films.values())
