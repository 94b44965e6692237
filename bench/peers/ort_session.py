"""ONNX Runtime beside bench_net: session.run on the same image, in turns on demand.

    ort_session.py [--size HxW] [--threads N] [--compare FILE.npy] MODEL.onnx

Says `ready` as one line of JSON, runs one turn for each line on stdin (seconds of a pass), and
says `end` with VmHWM of this process when stdin ends: interpreter, libraries, model and arrays
included, nothing taken off; ru_maxrss would also hold what the parent had before exec. All of
the runtime's defaults but the thread counts: one operator at a time, `threads` within it.
Python with numpy and onnxruntime."""
import argparse
import json
import sys
import time

import numpy as np
import onnxruntime as ort

TURN_SECONDS = 0.25


def image(channels, height, width):
    """The image of bench_net."""
    c = np.arange(channels)[:, None, None] * 17
    y = np.arange(height)[:, None] * 61
    x = np.arange(width) * 37
    return (((x + y + c) % 255).astype(np.float32) / np.float32(255))[None]


def open_session(path, threads):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    options.log_severity_level = 3
    return ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def relative_l2(got, want):
    d = got.astype(np.float64).ravel() - want.astype(np.float64).ravel()
    return float(np.linalg.norm(d) / max(np.linalg.norm(want.astype(np.float64)), 1e-30))


def turn(run, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def peak_rss():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))


def say(event, **members):
    print(json.dumps({"event": event, **members}), flush=True)


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--size", default="512x512")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--compare")
    p.add_argument("model")
    return p.parse_args()


def main():
    args = arguments()
    height, width = (int(n) for n in args.size.split("x"))
    session = open_session(args.model, args.threads)
    port = session.get_inputs()[0]
    feed = {port.name: image(port.shape[1], height, width)}
    run = lambda: session.run(None, feed)[0]  # noqa: E731
    answer = run()
    off = relative_l2(np.load(args.compare), answer) if args.compare else None
    del answer
    once = turn(run, 1)
    repeats = 1 if once > TURN_SECONDS else int(TURN_SECONDS / once) + 1
    say("ready", peer="onnxruntime", version=ort.__version__, threads=args.threads,
        repeats=repeats, answer_relative_l2=off)
    for _ in sys.stdin:
        say("turn", seconds=[turn(run, repeats)])
    say("end", peak_rss_bytes=peak_rss())


if __name__ == "__main__":
    main()
