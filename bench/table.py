"""Tables from the rows that run.py keeps.

    bench/table.py [FILE]            every row of a results file (all that are kept) as Markdown
    bench/table.py --write           put rows into README.md, the summary into docs/benchmarks.md
    bench/table.py --check           1 when one of them says something else than the files

Both stand between two marker lines. Ratios above 1 are in tegula's favour,
memory ratios below 1. Of rows measured twice the last counts, by the files' dates."""
import argparse
import glob
import json
import os
import re
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN, END = "<!-- bench: made by bench/table.py --write -->", "<!-- bench: end -->"
NOTHING = "No measured figures are kept for this version yet; `make bench` makes some.\n"
UNITS = {"seconds": ("s", 1, "%.3g"), "mpix_per_second": ("MPix/s", 1, "%.3g"), "gflops": ("GF/s", 1, "%.0f"),
         "busy": ("busy", 1, "%.3f"), "median_ns": ("ns", 1, "%.0f")}


# ---- Rows ----------------------------------------------------------------------------------

def load(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]


def kept(root):
    """The rows of all results files, oldest first."""
    return [row for path in sorted(glob.glob(os.path.join(root, "bench", "results", "[0-9]*.jsonl"))) for row in load(path)]


def setting(row, kernel=True):
    """What was set, for people: threads, instruction set, --exact, the kernel of an operator."""
    c = row["config"]
    words = [f"{c['threads']} thread{'s' if c['threads'] > 1 else ''}"]
    words += [c["isa"]] if c.get("isa") not in (None, "auto") else []
    words += ["exact"] if c.get("exact") else []
    if c.get("lean"):
        words.append("small --ram")
    elif c.get("ram") not in (None, "default"):
        words.append(f"--ram {c['ram']}")
    words += [c["variant"]] if kernel and "variant" in c else []
    return ", ".join(words)


def latest(rows):
    """The last row of each case and setting, in order of first appearance."""
    kept = {}
    for row in rows:
        kept[(row["family"], row["case"], setting(row))] = row
    return list(kept.values())


def figure(side):
    """(median or single number, text with unit) of what a side was measured by; (None, '')."""
    for name, (unit, scale, form) in UNITS.items():
        value = side.get(name)
        if value is not None and not (name != "seconds" and "seconds" in side):
            value = value["median"] if isinstance(value, dict) else value
            text = (form + " " + unit) % (value * scale)
            text += ", hits %.3f" % side["hit_rate"] if "hit_rate" in side else ""
            return value, text + (", all %.3f" % side["processors"]["median"] if "processors" in side else "")
    return None, ""


def memory(side):
    size = side.get("peak_rss_bytes") or side.get("arena_bytes")
    return f"{size / (1 << 20):.0f} MiB" if size else ""


def against(row):
    peer = row.get("peer", {})
    return " ".join(peer[k] for k in ("name", "version") if k in peer)


def what(row):
    return {"process": "TIFF to TIFF, ", "stream": "rows streamed, ", "film": "film to film, ", "film_small": "film to film, ", "inpaint": "inpaint, ", "propainter": "ProPainter, "}.get(row["family"], "") + row["case"]


def ratio(row):
    return f"{row['ratio']:.2f} ({row['ratio_min']:.2f} to {row['ratio_max']:.2f})" if "ratio" in row else ""


def memory_ratio(row):
    return f"{row['memory_ratio']:.2f}" if "memory_ratio" in row else ""


def geometric_mean(values):
    return statistics.geometric_mean(values)


# ---- On the terminal -----------------------------------------------------------------------

def text_head(family):
    return f"\n{family:46} {'setting':36}{'tegula':>22}{'peer':>14}  {'ratio (range)':22}{'memory':>22}"


def text_line(row):
    peer = row.get("peer", {})
    both = memory(row["tegula"]) + (" / " + memory(peer) if memory(peer) else "")
    return (f"{row['case']:46} {setting(row):36}{figure(row['tegula'])[1]:>22}{figure(peer)[1]:>14}  "
            f"{ratio(row):22}{both:>22}")


def text_means(rows):
    lines = [f"{group:46} {how:36}{ratio_text:24}{'memory ' + memory_text if memory_text else ''}"
             for group, how, _, ratio_text, memory_text in means(latest(rows))]
    return "\n".join(["", "geometric means of the ratios", *lines]) if lines else ""


# ---- Means ---------------------------------------------------------------------------------

def group_of_operator(row):
    words = re.match(r"(\S+) .*?(\d+)->(\d+)", row["case"])
    if row["case"].startswith("dw") or not words:
        return "depthwise convolution"
    if re.match(r"g\d+ ", row["case"]):
        return "grouped convolution"
    if row["case"].startswith("T"):
        return "transposed convolution"
    if int(words[2]) < 16 or int(words[3]) < 16:
        return "convolution " + ("from" if int(words[2]) < 16 else "to") + " few channels"
    by_window = {"1x1": "1x1 convolution", "3-D": "3-D convolution"}
    kind = "Winograd" if "winograd" in row["config"].get("variant", "") else "direct"
    return by_window.get(words[1], f"{kind} convolution, 16 channels and more")


def group_of(row):
    """Rows that share a mean: networks by size, operators by kind."""
    if row["family"] == "nets":
        return "warm networks at " + row["case"].rsplit(" ", 1)[-1]
    if row["family"] != "ops":
        return None
    return group_of_operator(row) + (" in bf16" if "bf16" in row["config"].get("variant", "") else "")


def means(rows):
    """(what, setting, peer, ratio text, memory text) of each group, with the range of its members."""
    groups = {}
    for row in rows:
        if group_of(row) and "ratio" in row:
            groups.setdefault((group_of(row), setting(row, kernel=False), against(row)), []).append(row)
    for (group, how, peer), members in groups.items():
        r = [m["ratio"] for m in members]
        shares = [m["memory_ratio"] for m in members if "memory_ratio" in m]
        text = f"{geometric_mean(r):.2f} ({min(r):.2f} to {max(r):.2f})"
        yield (f"{group} ({len(members)})", how, peer, text, f"{geometric_mean(shares):.2f}" if shares else "")


# ---- Markdown ------------------------------------------------------------------------------

def origin(rows):
    commits = {}  # of each machine and day
    for row in sorted(rows, key=lambda r: r["time"]):
        m = row["machine"]
        where = f"{row['time'][:10]} on {m['cpu']}, {m['cores']} cores, {', '.join(m['isa'])}"
        commits.setdefault(where, {})[row["commit"]] = None
    measured = "; ".join(f"{where}: commit {', '.join(found)}" for where, found in commits.items())
    return f"Measured {measured}. Ratio: peer's time over tegula's, median and range; memory: tegula's peak over the peer's."


def pivot(rows):
    """Operators: a line for each kind, a column for each setting that was measured."""
    found = [m for m in means(rows) if not m[0].startswith("warm networks")]
    settings = list(dict.fromkeys(how for _, how, _, _, _ in found))
    lines = list(dict.fromkeys((group, peer) for group, _, peer, _, _ in found))
    cell = {(group, peer, how): text for group, how, peer, text, _ in found}
    out = ["| operators, geometric mean (range of the rows) | against | " + " | ".join(settings) + " |",
           "|---|---|" + "---|" * len(settings)]
    for line in lines:
        out.append("| " + " | ".join([*line, *(cell.get((*line, how), "") for how in settings)]) + " |")
    return out if found else []


def summary(rows):
    """The tables of docs/benchmarks.md: operators by kind and setting; networks, each process and streaming row."""
    rows = latest(rows)
    out = [origin(rows), "", "| what | setting | against | ratio | memory |", "|---|---|---|---|---|"]
    for group, how, peer, ratio_text, memory_text in means(rows):
        if group.startswith("warm networks"):
            out.append(f"| {group} | {how} | {peer} | {ratio_text} | {memory_text} |")
    for row in rows:
        if not group_of(row) and "ratio" in row and row["family"] != "estimate":
            out.append(f"| {what(row)} | {setting(row)} | {against(row)} | {ratio(row)} | "
                       f"{memory_ratio(row)} |")
    operators = pivot(rows)
    return "\n".join(out + ([""] + operators if operators else [])) + "\n"


def everything(rows):
    rows = latest(rows)
    out = [origin(rows), "", "| family | case | setting | tegula | against | peer | ratio | memory |",
           "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        peer = row.get("peer", {})
        both = " / ".join(m for m in (memory(row["tegula"]), memory(peer)) if m)
        out.append(f"| {row['family']} | {row['case']} | {setting(row)} | {figure(row['tegula'])[1]} | "
                   f"{against(row)} | {figure(peer)[1]} | {ratio(row)} | {both} |")
    return "\n".join(out) + "\n"


def mean_row(name, how, rows):
    """A line of the README: the geometric mean of some rows, with their range; [] when there are none."""
    if not rows:
        return []
    r = [row["ratio"] for row in rows]
    shares = [row["memory_ratio"] for row in rows if "memory_ratio" in row]
    held = f"{geometric_mean(shares):.2f}" if shares else ""
    return [f"| {name} ({len(rows)}) | {how} | {against(rows[0])} | {geometric_mean(r):.2f} ({min(r):.2f} to {max(r):.2f}) | "
            f"{held} |"]


def headline(rows):
    """The README's rows: networks in memory, as planned and exact; files, as planned and in small memory; bands; films; ProPainter."""
    rows = [row for row in latest(rows) if "ratio" in row]

    def nets(size, exact):
        return [r for r in rows if r["family"] == "nets" and r["case"].endswith(size) and
                bool(r["config"].get("exact")) == exact]

    def files(lean):
        return [r for r in rows if r["family"] == "process" and bool(r["config"].get("lean")) == lean]
    def films(what):
        return [r for r in rows if r["family"] == "film" and r["case"].endswith(f"encoder {what}")]
    drawn = [r for r in rows if r["family"] == "propainter" and "a film" in r["case"]]
    streamed = [r for r in rows if r["family"] == "stream" and "bands of" in r["case"]]
    return "\n".join([origin(rows), "", "| what | setting | against | ratio | memory |", "|---|---|---|---|---|",
                      *mean_row("warm networks at 1024x1024", "as planned", nets("1024x1024", False)),
                      *mean_row("warm networks at 1024x1024", "exact", nets("1024x1024", True)),
                      *mean_row("TIFF to TIFF at 4096x4096", "as planned", files(False)),
                      *mean_row("TIFF to TIFF at 4096x4096", "small --ram", files(True)),
                      *mean_row("rows streamed in bands", "2048 and 4096 wide", streamed),
                      *mean_row("film to film at 1280x720", "to YUV4MPEG2", films("excluded")),
                      *mean_row("film to film at 1280x720", "to H.264", films("included")),
                      *mean_row("ProPainter at 432x240, a film", "pictures to pictures", drawn)]) + "\n"


# ---- README --------------------------------------------------------------------------------

PAGES = (("README.md", headline), (os.path.join("docs", "benchmarks.md"), summary))


def wanted(root, make):
    rows = kept(root)
    return make(rows) if rows else NOTHING


def split(name, text):
    """A page before, between and behind the markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit(f"{name}: the two bench markers are not there once each")
    before, rest = text.split(BEGIN + "\n")
    between, behind = rest.split(END)
    return before, between, behind


def check(root):
    wrong = 0
    for name, make in PAGES:
        with open(os.path.join(root, name)) as f:
            between = split(name, f.read())[1]
        if between.strip() != wanted(root, make).strip():
            print(f"{name} does not say what the results files say; run bench/table.py --write")
            wrong = 1
    return wrong


def write(root):
    for name, make in PAGES:
        path = os.path.join(root, name)
        with open(path) as f:
            before, _, behind = split(name, f.read())
        with open(path, "w") as f:
            f.write(before + BEGIN + "\n" + wanted(root, make) + END + behind)
    return 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("file", nargs="?")
    p.add_argument("--write", action="store_true")
    p.add_argument("--check", action="store_true")
    p.add_argument("--root", default=ROOT, help="of the tree (tests)")
    args = p.parse_args()
    if args.write or args.check:
        return write(args.root) if args.write else check(args.root)
    rows = load(args.file) if args.file else kept(args.root)
    print(everything(rows) if rows else NOTHING, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
