"""The families of measurements. Each is a generator of rows: dictionaries that run.py prints,
completes with commit and machine, and keeps. A case that fails comes as its lab.Failure."""
import csv
import os
import re
import sys

import lab
import onnx_edit
import estimate
import film
import inpaint
import overlap
import propainter

STREAM_UNTILED = ("512x512", "1024x1024", "2048x2048")
STREAM_BANDS = ("2048x2048@128", "1024x4096@64")  # 0.25 megapixels each
NETS_WANTED = re.compile(r"U-Net|DnCNN")
PROCESS_SECONDS = 150  # of turns for each network: fewer rounds where they take long, two at least
LEAN = 0.09  # of the script's peak is the budget of the second way to run tegula
GLOBAL_STATE = "global"  # receptive field in index.csv: reads the whole image


class Bench:
    """Settings of a run, and where its programs and files are."""

    def __init__(self, args, python, say):
        self.args, self.python, self.say = args, python, say
        self.files = os.path.join(args.build, "bench-files")
        os.makedirs(self.files, exist_ok=True)

    def program(self, path):
        path = os.path.join(self.args.build, path)
        if not os.access(path, os.X_OK):
            raise lab.Failure(f"{path} is not built")
        return path

    def file(self, name):
        return os.path.join(self.files, name)

    def peer(self, script):
        return [self.python, os.path.join(lab.ROOT, "bench", "peers", script)]

    def common(self):
        a = self.args
        return ["--threads", str(a.threads)] + (["--isa", a.isa] if a.isa != "auto" else [])

    def wanted(self, name):
        return self.args.only in name

    def few_rounds(self):
        """For what takes seconds a round."""
        return self.args.rounds if self.args.full else min(self.args.rounds, 3)

    def cores(self):
        """Processors that this script and its children are kept on."""
        return len(os.sched_getaffinity(0))

    def config(self, **more):
        return {"threads": self.args.threads, "isa": self.args.isa, **more}


# ---- Networks ------------------------------------------------------------------------------

def own_model():
    return os.path.join(lab.ROOT, "models", "tegula_denoise.onnx")


def reference_unet(bench):
    path = bench.file("reference_unet.onnx")
    if not os.path.exists(path):
        onnx_edit.reference_unet(path)
    return path


def collected(bench):
    """(name, path) of the U-Nets and DnCNNs of the model collection that read a bounded
    neighbourhood, with a declared size set free: the peer refuses others."""
    folder = os.path.join(bench.args.data, "data", "models")
    index = os.path.join(folder, "index.csv")
    if not os.path.exists(index):
        bench.say(f"no model collection in {folder}: only the project's own networks")
        return
    with open(index, newline="") as f:
        for row in csv.DictReader(f):
            if not NETS_WANTED.search(row["task"]) or GLOBAL_STATE in row["rf"]:
                continue
            path = os.path.join(folder, row["file"])
            if row["dynamic_hw"] != "True":
                path, source = bench.file(row["name"] + ".onnx"), path
                onnx_edit.free_size(source, path)
            yield row["name"], path


def networks(bench):
    yield "tegula_denoise", own_model()
    yield "reference_unet", reference_unet(bench)
    yield from collected(bench)


def net_programs(bench, path, size):
    """name -> command of the programs that take turns; the first leaves its answer in a file."""
    answer = bench.file("answer.npy")
    ours = [bench.program("bench/bench_net"), *bench.common(), "--size", size, "--serve"]
    programs = {"tegula": [*ours, "--answer", answer, path], "exact": [*ours, "--exact", path]}
    if bench.python:
        programs["peer"] = [*bench.peer("ort_session.py"), "--threads", str(bench.args.threads),
                            "--size", size.split("@")[0], "--compare", answer, path]
    return programs


def run_net(bench, path, size):
    """Seconds of every round, the ready lines and the end lines of each program."""
    served = {}
    try:
        for name, command in net_programs(bench, path, size).items():
            served[name] = lab.Served(command)
        seconds = lab.take_turns({n: s.turn for n, s in served.items()}, bench.args.rounds)
        return seconds, {n: s.ready for n, s in served.items()}, {n: s.end() for n, s in served.items()}
    finally:
        for s in served.values():
            s.close()


def net_row(bench, case, ours, seconds, ready, end):
    plan = ready[ours]["configs"][0]
    megapixels = plan["height"] * plan["width"] / 1e6
    own = {"seconds": lab.summary(seconds[ours]), "peak_rss_bytes": end[ours]["peak_rss_bytes"],
           "arena_bytes": plan["arena_bytes"], "weights_bytes": plan["weights_bytes"],
           "reference_relative_l2": ready[ours]["reference_relative_l2"]}
    middle = own["seconds"]["median"]
    own["gflops"], own["mpix_per_second"] = plan["gflop"] / middle, megapixels / middle
    row = {"family": "nets", "case": case, "config": bench.config(exact=ours == "exact", warm=True),
           "tegula": own}
    row["config"]["isa"] = ready[ours]["isa"]
    if "peer" in ready:
        off = ready["peer"]["answer_relative_l2"]
        if not off < 1e-4:
            raise lab.Failure(f"{case}: the peer's answer is {off:.1e} away (relative L2)")
        row["peer"] = {"name": "onnxruntime", "version": ready["peer"]["version"],
                       "seconds": lab.summary(seconds["peer"]),
                       "peak_rss_bytes": end["peer"]["peak_rss_bytes"]}
        if ours == "tegula":  # the one that the peer compares itself with
            row["answer_relative_l2"] = off
        row.update(lab.ratios(seconds["peer"], seconds[ours]))
        row["memory_ratio"] = own["peak_rss_bytes"] / row["peer"]["peak_rss_bytes"]
    return row


def nets(bench):
    for name, path in networks(bench):
        for size in bench.args.sizes.split(","):
            case = f"{name} {size}x{size}"
            if not bench.wanted(case):
                continue
            try:
                measured = run_net(bench, path, f"{size}x{size}@auto")
                yield net_row(bench, case, "tegula", *measured)
                yield net_row(bench, case, "exact", *measured)
            except lab.Failure as e:
                yield e


# ---- Single operators ----------------------------------------------------------------------

def has_bf16(bench):
    return bench.args.isa in ("auto", "avx512") and "avx512_bf16" in lab.machine()["isa"]


def op_rows(bench, threads, exact, bf16=False):
    command = [bench.program("bench/bench_op"), "--json", "--rounds", str(max(bench.args.rounds, 7)),
               "--threads", str(threads)]
    command += ["--isa", bench.args.isa] if bench.args.isa != "auto" else []
    command += ["--exact"] if exact else []
    command += ["--precision", "bf16"] if bf16 else []
    code, _, _, out, err = lab.run_process([*command, bench.args.only])
    if code != 0:
        raise lab.Failure(f"bench_op: {lab.last_words(err or out)}")
    for r in lab.json_lines(out):
        row = {"family": "ops", "case": r["layer"],
               "config": bench.config(threads=threads, variant=r["variant"], isa=r["isa"]),
               "tegula": {"gflops": r["gflops"], "peak_share": r["gflops"] / max(r["peak_gflops"], 1e-9),
                          "relative_l2": r["relative_l2"]}}
        if r["peer_gflops"] > 0:
            row["peer"] = {"name": "own float32 direct" if bf16 else "oneDNN direct", "gflops": r["peer_gflops"]}
            row.update({k: r[k] for k in ("ratio", "ratio_min", "ratio_max")})
        yield row


def ops(bench):
    """bench_op takes the turns itself; with one thread as well, on the processor's clock. Where
    --exact changes the kernel there are two rows; where --precision bf16 does, a third one."""
    for threads in sorted({1, bench.args.threads}):
        kernels = {}
        for exact in (False, True):
            for row in op_rows(bench, threads, exact):
                if row["config"]["variant"] != kernels.get(row["case"]):
                    yield row
                kernels[row["case"]] = row["config"]["variant"]
        if has_bf16(bench):  # against our own direct float32; layers without such a kernel stay out
            for row in op_rows(bench, threads, True, bf16=True):
                if "bf16" in row["config"]["variant"]:
                    yield row


def token_rows(bench, threads):
    command = [bench.program("bench/bench_tokens"), "--json", "--rounds", str(max(bench.args.rounds, 7)), "--threads", str(threads)]
    command += ["--isa", bench.args.isa] if bench.args.isa != "auto" else []
    code, _, _, out, err = lab.run_process([*command, bench.args.only])
    if code != 0:
        raise lab.Failure(f"bench_tokens: {lab.last_words(err or out)}")
    if err.strip():
        bench.say(f"tokens: {lab.last_words(err)}")
    for r in lab.json_lines(out):
        for what, beside in (("products", "matrix products alone"), ("softmax", "matrix products and softmax")):
            row = {"family": "tokens", "case": r["case"] + (", softmax too" if what == "softmax" else ""),
                   "config": bench.config(threads=threads, isa=r["isa"]),
                   "tegula": {"gflops": r["gflops"], "peak_share": r["gflops"] / max(r["peak_gflops"], 1e-9)},
                   "peer": {"name": f"oneDNN, {beside}", "gflops": r["peer_gflops"], "ways": r["peer"]}}
            row.update(zip(("ratio", "ratio_min", "ratio_max"), r[what]))
            if what == "products" or r[what] != r["products"]:
                yield row


def tokens(bench):
    """bench_tokens takes the turns itself, as bench_op does."""
    for threads in sorted({1, bench.args.threads}):
        yield from token_rows(bench, threads)


# ---- Whole processes, file to file ---------------------------------------------------------

class Process:
    """One network over one image, by the command and by the script, file to file."""

    def __init__(self, bench, name, path):
        self.bench, self.name, self.path = bench, name, path
        own = name == "tegula_denoise"
        self.normalize = "percentile:1,99.8" if own else "scale:1/65535"
        self.dtype = "uint16" if own else "float32"
        self.tile = 0

    def ours(self, image, out, ram):
        a = self.bench.args
        command = [self.bench.program("cli/tegula"), "run", "-m", self.path, image, "-o", out, *self.bench.common(),
                   "--normalize", self.normalize, "--dtype", self.dtype, "--yes", "--json"]
        return command + (["--ram", ram] if ram else []) + (["--exact"] if a.exact else [])

    def theirs(self, image, out, compare):
        command = [*self.bench.peer("tifffile_ort.py"), "--threads", str(self.bench.args.threads),
                   "--normalize", self.normalize, "--dtype", self.dtype]
        command += ["--tile", str(self.tile), "--halo", "160"] if self.tile else []
        return command + (["--compare", compare] if compare else []) + [self.path, image, out]


def timed_process(command, out):
    """Seconds, peak RSS and events of a run that starts without its output."""
    lab.remove(out)
    code, seconds, peak, text, err = lab.run_process(command)
    if code != 0:
        raise lab.Failure(f"{os.path.basename(command[0])} ended with {code}: {lab.last_words(err)}")
    return seconds, peak, lab.json_lines(text)


def process_image(bench):
    side = bench.args.side
    noisy = bench.file(f"noisy{side}.tif")
    if not os.path.exists(noisy):
        clean = bench.file("clean.tif")
        lab.run_process([bench.program("tools/tegula-draw"), "--size", str(side), noisy, clean])
        lab.remove(clean)
    return noisy


def first_script_run(p, image, ours, theirs):
    """Warmth, the comparison of the answers, and whether the whole image fits.
    Relative L2, peak RSS and seconds."""
    limit = int(0.9 * lab.available_bytes())
    for p.tile in (0, 1024):
        lab.remove(theirs)
        code, seconds, peak, out, err = lab.run_process(p.theirs(image, theirs, ours), limit)
        if code == 0:
            return lab.json_lines(out)[-1]["relative_l2"], peak, seconds
        if code not in (71, -6, -9, -11):
            break
        p.bench.say(f"{p.name}: the whole image does not fit the script's process; tiles of 1024")
    raise lab.Failure(f"tifffile_ort.py ended with {code}: {lab.last_words(err)}")


def fits(p, image, out, ram):
    """Whether tegula takes the budget at all."""
    try:
        timed_process(p.ours(image, out, ram), out)
    except lab.Failure as e:
        p.bench.say(f"{p.name} in {ram}: {e}")
        return False
    return True


def rounds_within(rounds, seconds):
    """Rounds of `seconds` each that PROCESS_SECONDS have room for, two at least if so many are wanted."""
    return min(rounds, max(2, int(PROCESS_SECONDS / max(seconds, 1e-3))))


def process_turns(p, image):
    """Takes turns: tegula as it comes, tegula in LEAN of the script's memory, the script. Seconds of
    every round and every run's (peak RSS, last event), by name, and the distance of the answers."""
    bench, off = p.bench, None
    ours, theirs = bench.file("ours.tif"), bench.file("theirs.tif")
    runs = {}

    def turn(name, command, out):
        seconds, *run = timed_process(command, out)
        runs.setdefault(name, []).append(run)
        return seconds

    spent = timed_process(p.ours(image, ours, bench.args.ram), ours)[0]  # the image in the page cache
    turns = {"tegula": lambda: turn("tegula", p.ours(image, ours, bench.args.ram), ours)}
    if bench.python:
        off, peak, seconds = first_script_run(p, image, ours, theirs)
        spent = 2 * spent + seconds
        lean = f"{int(LEAN * peak) >> 20}MiB"
        if fits(p, image, ours, lean):
            turns["lean"] = lambda: turn("lean", p.ours(image, ours, lean), ours)
        turns["peer"] = lambda: turn("peer", p.theirs(image, theirs, None), theirs)
    seconds = lab.take_turns(turns, rounds_within(bench.few_rounds(), spent))
    lab.remove(ours, theirs)
    return seconds, runs, off


def process_row(p, who, seconds, runs, off):
    side, last = p.bench.args.side, runs[who][-1][1][-1]
    budget = f"{last['budget_bytes'] >> 20}MiB" if who == "lean" or p.bench.args.ram else "default"
    row = {"family": "process", "case": f"{p.name} {side}x{side}",
           "config": p.bench.config(exact=p.bench.args.exact, ram=budget, lean=who == "lean",
                                    normalize=p.normalize, dtype=p.dtype),
           "tegula": {"seconds": lab.summary(seconds[who]),
                      "peak_rss_bytes": max(peak for peak, _ in runs[who]),
                      "own_peak_bytes": max(e[-1]["measured_peak_bytes"] for _, e in runs[who]),
                      "planned_peak_bytes": last["predicted_peak_bytes"],
                      "compute_share": last["compute_seconds"] / last["seconds"]}}
    if off is None:
        return row
    if not off < 1e-4:
        raise lab.Failure(f"{p.name}: the script's answer is {off:.1e} away (relative L2)")
    row["peer"] = {"name": "tifffile + onnxruntime", "tile": p.tile or "whole",
                   "seconds": lab.summary(seconds["peer"]),
                   "peak_rss_bytes": max(peak for peak, _ in runs["peer"])}
    row["answer_relative_l2"] = off
    row.update(lab.ratios(seconds["peer"], seconds[who]))
    row["memory_ratio"] = row["tegula"]["peak_rss_bytes"] / row["peer"]["peak_rss_bytes"]
    return row


def process(bench):
    short = {"tegula_denoise", "unet2d_nuclei_broad"}
    image = process_image(bench)
    for name, path in networks(bench):
        if bench.wanted(name) and (bench.args.full or bench.args.only or name in short):
            try:
                p = Process(bench, name, path)
                seconds, runs, off = process_turns(p, image)
                for who in seconds:
                    if who != "peer":
                        yield process_row(p, who, seconds, runs, off)
            except lab.Failure as e:
                yield e


# ---- Row streaming -------------------------------------------------------------------------

def stream_against_untiled(bench):
    """Full-width bands of the reference U-Net against the best rate of untiled passes."""
    code, _, _, out, err = lab.run_process(
        [bench.program("bench/bench_net"), *bench.common(), "--json", "--rounds", str(bench.few_rounds()), "--size",
         ",".join(STREAM_UNTILED + STREAM_BANDS), *(["--exact"] if bench.args.exact else []),
         reference_unet(bench)])
    if code != 0:
        raise lab.Failure(f"bench_net: {lab.last_words(err)}")
    configs = [e for e in lab.json_lines(out) if e["event"] == "config"]
    best = max((c for c in configs if not c["band"]), key=lambda c: c["mpix_per_second"])
    rate = lambda c: [c["height"] * c["width"] / 1e6 / s for s in c["seconds_all"]]  # noqa: E731
    for c in configs:
        if c["band"]:
            yield {"family": "stream",
                   "case": f"reference_unet {c['height']}x{c['width']} bands of {c['band']}",
                   "config": bench.config(exact=bench.args.exact),
                   "tegula": {"mpix_per_second": lab.summary(rate(c)), "arena_bytes": c["arena_bytes"]},
                   "peer": {"name": f"untiled {best['height']}x{best['width']}",
                            "mpix_per_second": lab.summary(rate(best)), "arena_bytes": best["arena_bytes"]},
                   **lab.ratios(rate(c), rate(best))}


def stream_in_budget(bench):
    """bench_stream: 192 MiB of activations for an image of 4096 x 4096."""
    command = [bench.program("bench/bench_stream"), "--rounds", str(bench.few_rounds()), "--threads",
               str(bench.args.threads), "--json"]
    code, _, _, out, err = lab.run_process(command)
    if code != 0:
        raise lab.Failure(f"bench_stream: {lab.last_words(err)}")
    strip, *tiles = lab.json_lines(out)
    for t in tiles:
        yield {"family": "stream", "case": f"192 MiB: strip against {t['kind']}",
               "config": bench.config(exact=False),
               "tegula": {"mpix_per_second": lab.summary(strip["mpix_per_second"]),
                          "arena_bytes": strip["arena_bytes"], "cell": f"{strip['height']}x{strip['width']}"},
               "peer": {"name": f"{t['kind']} of {t['height']}x{t['width']}",
                        "mpix_per_second": lab.summary(t["mpix_per_second"]), "arena_bytes": t["arena_bytes"]},
               **lab.ratios(strip["mpix_per_second"], t["mpix_per_second"])}


def stream(bench):
    if bench.wanted("stream"):
        yield from stream_against_untiled(bench)
        yield from stream_in_budget(bench)


# ---- Pool ----------------------------------------------------------------------------------

def pool_row(bench, name, path, image):
    """Allocations of a run over 512 x 512 pixels, again on a pool of host memory."""
    timeline, out = bench.file("timeline.json"), bench.file("traced.tif")
    lab.remove(out)
    code, _, _, _, err = lab.run_process([bench.program("cli/tegula"), "run", "-q", "-y", "-m", path, image, "-o", out,
                                          "--roi", "0:512,0:512", "--trace", timeline])
    lab.remove(out)
    if code != 0:
        raise lab.Failure(f"{name}: {lab.last_words(err)}")
    code, _, _, text, err = lab.run_process([bench.program("bench/bench_pool"), "--json", "--rounds", "50", timeline])
    if code != 0:
        raise lab.Failure(f"bench_pool: {lab.last_words(err)}")
    r = next(iter(lab.json_lines(text)))
    ours = {k: r[k] for k in ("median_ns", "p99_ns", "hit_rate", "warm_hit_rate", "allocs", "raw_allocs", "peak_bytes",
                              "reserved_peak_bytes")}
    return {"family": "pool", "case": f"{name}, {r['allocs']} allocations", "config": bench.config(threads=1),
            "tegula": ours, "peer": {"name": "malloc", "median_ns": r["malloc_median_ns"], "p99_ns": r["malloc_p99_ns"]}}


def pool(bench):
    image = process_image(bench)
    for name, path in networks(bench):
        if bench.wanted(name):
            try:
                yield pool_row(bench, name, path, image)
            except lab.Failure as e:
                yield e


# ---- Overlap -------------------------------------------------------------------------------

def every_network(bench):
    folder = os.path.join(bench.args.data, "data", "models")
    index = os.path.join(folder, "index.csv")
    if os.path.exists(index):
        with open(index, newline="") as f:
            for row in csv.DictReader(f):
                yield row["name"], os.path.join(folder, row["file"])


def busy(bench):
    yield from overlap.overlap(bench, process_image(bench), every_network(bench))


def estimated(bench):
    own = [("tegula_denoise", own_model()), ("reference_unet", reference_unet(bench))]
    yield from estimate.estimate(bench, process_image(bench), [*own, *every_network(bench)])


def films(bench):
    """The networks with their sizes set free: the peer refuses others."""
    free = []
    for name, source in every_network(bench):
        if name in film.FRAMES:
            path = bench.file(name + ".onnx")
            onnx_edit.free_size(source, path)
            free.append((name, path))
    yield from film.film(bench, free)


def small_films(bench):
    """Of the compact network: some 0.1 TFLOP."""
    yield from film.film_small(bench, [(n, p) for n, p in every_network(bench) if n == "compact_x2_nomosuni"])


FAMILIES = {"ops": ops, "tokens": tokens, "nets": nets, "process": process, "stream": stream, "overlap": busy,
            "estimate": estimated, "pool": pool, "film": films, "film_small": small_films, "inpaint": inpaint.inpaint,
            "propainter": propainter.propainter}
BY_NAME = ("propainter",)  # not a part of `make bench` without names: it asks for PyTorch and ten minutes

if __name__ == "__main__":
    sys.exit("this is a part of run.py")
