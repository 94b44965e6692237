"""The script that one writes without tegula for a film: ffmpeg decodes into a pipe, ONNX Runtime runs over each frame,
ffmpeg encodes what comes out of another pipe.

    ffmpeg_ort.py [--threads N] [--encoder "-c:v libx264 ..."] MODEL.onnx IN.mp4 OUT

Frames are RGB of 8 bits, the network sees 0 to 1. Ends in a line of JSON: the peak of resident memory of the three
processes together. Python with numpy, onnxruntime; ffmpeg and ffprobe."""
import argparse
import json
import os
import resource
import shlex
import subprocess
import sys

import numpy as np
import onnxruntime as ort

# What swscale assumes elsewhere is BT.601, whatever the film says.
TO_RGB = "scale=in_color_matrix=bt709:in_range=tv:out_range=pc,format=rgb24"
FROM_RGB = "scale=out_color_matrix=bt709:in_range=pc:out_range=tv,format=yuv420p"


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--encoder", default="-f yuv4mpegpipe")
    p.add_argument("model")
    p.add_argument("source")
    p.add_argument("target")
    return p.parse_args()


def shape_of(source):
    words = subprocess.run(["ffprobe", "-v", "error", "-select_streams", "v:0", "-show_entries",
                            "stream=width,height,r_frame_rate", "-of", "csv=p=0", source],
                           capture_output=True, text=True, check=True).stdout.strip().split(",")
    return int(words[0]), int(words[1]), words[2]


def ffmpeg(threads, *words, **pipes):
    return subprocess.Popen(["ffmpeg", "-v", "error", "-y", "-threads", str(threads), *words], **pipes)


def frames(stream, height, width):
    n = height * width * 3
    while len(data := stream.read(n)) == n:
        yield np.frombuffer(data, np.uint8).reshape(height, width, 3)


def enhanced(session, name, frame):
    x = np.ascontiguousarray(frame.transpose(2, 0, 1)[None]).astype(np.float32) / 255
    y = session.run(None, {name: x})[0][0]
    return np.clip(np.rint(y * 255), 0, 255).astype(np.uint8).transpose(1, 2, 0)


def peak_of(process):
    """Resident bytes at most, once it has ended well."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"ffmpeg ended with {process.returncode}")
    return usage.ru_maxrss * 1024


def main():
    args = arguments()
    width, height, rate = shape_of(args.source)
    options = ort.SessionOptions()
    options.intra_op_num_threads = args.threads
    options.log_severity_level = 3
    session = ort.InferenceSession(args.model, options, providers=["CPUExecutionProvider"])
    reader = ffmpeg(args.threads, "-i", args.source, "-vf", TO_RGB, "-f", "rawvideo", "-", stdout=subprocess.PIPE)
    writer = None
    for frame in frames(reader.stdout, height, width):
        y = enhanced(session, session.get_inputs()[0].name, frame)
        if not writer:
            writer = ffmpeg(args.threads, "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{y.shape[1]}x{y.shape[0]}", "-r", rate,
                            "-i", "-", "-vf", FROM_RGB, *shlex.split(args.encoder), args.target, stdin=subprocess.PIPE)
        writer.stdin.write(np.ascontiguousarray(y))
    writer.stdin.close()
    peaks = [peak_of(reader), peak_of(writer), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]
    print(json.dumps({"peak_rss_bytes": sum(peaks), "of_each": peaks}))


if __name__ == "__main__":
    main()
