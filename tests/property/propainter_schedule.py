"""The frame numbers of ProPainter's schedule, from the rules of ../shared/conformance/propainter/SPEC.md, sections 3, 4 and 6, in plain Python:

    propainter_schedule.py [--uses] T L neighbor_length ref_stride     one setting: T frames, subvideo_length L
    propainter_schedule.py [--uses] --draw N [--seed S]                N settings, each with its lists
    propainter_schedule.py --golden e2e/index.json                     the lists in the goldens are those made here

Ranges are half open. Lines, in this order:

    setting T L neighbor_length ref_stride         with --draw only
    completion s e keep0 keep1                     flows s..e go in with masks s..e+1, of the result keep0..keep1 is kept; none where T is 1
    propagation s e keep0 keep1                    frames s..e go in with flows s..e-1
    step f neighbours a b refs i j k               frames a..b, then the references, in that order; flows a..b-1
    final i f                                      frame i is as it stays after step f
    flow i completion f l propagation f l step f l       with --uses: the first and the last window (counted from 0) or step that reads flow i;
    frame i propagation f l step f l                     `- -` where none does

A flow i is the pair between frames i and i + 1, both directions. Without --uses nothing follows `final`."""
import argparse
import json
import random
import sys


# ---- Rules ---------------------------------------------------------------------------------------------------------------

def windows(count, length, pad):
    """(s, e, keep0, keep1): all at once where that is no more than `length`, else every `length` with `pad` on both sides."""
    if count == 0:
        return []
    if count <= length:
        return [(0, count, 0, count)]
    made, f = [], 0
    while f < count:
        made.append((max(0, f - pad), min(count, f + length + pad), f, min(count, f + length)))
        f += length
    return made


def references(frames, length, ref_stride, f, near):
    if frames <= length:
        return [i for i in range(frames) if i % ref_stride == 0 and not near[0] <= i < near[1]]
    most = length // ref_stride
    reach, refs = ref_stride * (most // 2), []
    i = f - reach if f > reach else 0
    while i < f + reach and i < frames:
        if i < near[0] or i >= near[1]:
            if len(refs) > most:  # never: no more than 2 * (most // 2) are looked at
                break
            refs.append(i)
        i += ref_stride
    return refs


def schedule(frames, length, neighbor_length, ref_stride):
    """(completion windows, propagation windows, steps (f, a, b, references))."""
    half, made = neighbor_length // 2, []
    for f in range(0, frames, half):
        near = (f - half if f > half else 0, f + half + 1 if f + half < frames else frames)
        made.append((f, *near, references(frames, length, ref_stride, f, near)))
    return windows(frames - 1, length, 5), windows(frames, length if length < 100 else 100, 10), made


def last_steps(frames, neighbor_length):
    """Of each frame, the last step that it is a neighbour in: f a multiple of half, f - half <= i."""
    half = neighbor_length // 2
    return [min((i + half) // half, (frames - 1) // half) * half for i in range(frames)]


# ---- Text ----------------------------------------------------------------------------------------------------------------

def ends(readers):
    return f"{min(readers)} {max(readers)}" if readers else "- -"


def use_lines(frames, completion, propagation, steps):
    for i in range(frames - 1):
        yield (f"flow {i} completion {ends([k for k, (s, e, _, _) in enumerate(completion) if s <= i < e])}"
               f" propagation {ends([k for k, (s, e, _, _) in enumerate(propagation) if s <= i < e - 1])}"
               f" step {ends([f for f, a, b, _ in steps if a <= i < b - 1])}")
    for i in range(frames):
        yield (f"frame {i} propagation {ends([k for k, (s, e, _, _) in enumerate(propagation) if s <= i < e])}"
               f" step {ends([f for f, a, b, refs in steps if a <= i < b or i in refs])}")


def lines(setting, uses):
    completion, propagation, steps = schedule(*setting)
    for w in completion:
        yield "completion %d %d %d %d" % w
    for w in propagation:
        yield "propagation %d %d %d %d" % w
    for f, a, b, refs in steps:
        yield " ".join(map(str, ("step", f, "neighbours", a, b, "refs", *refs)))
    for i, f in enumerate(last_steps(setting[0], setting[2])):
        yield f"final {i} {f}"
    if uses:
        yield from use_lines(setting[0], completion, propagation, steps)


# ---- Drawn settings ------------------------------------------------------------------------------------------------------

def short(rng):
    """T <= L: one completion window, references anywhere."""
    length = rng.randint(1, 400)
    return rng.randint(1, length), length


def edge(rng):
    """T at L and at L + 1, where T - 1 > L, T > Li and T > L part."""
    length = rng.randint(1, 398)
    return length + rng.randint(0, 2), length


def long_windows(rng):
    """Li < T <= L: propagation is cut at 100 and nothing else is."""
    length = rng.randint(101, 400)
    return rng.randint(101, length), length


def tail(rng):
    """A last window of one or two."""
    length = rng.randint(2, 130)
    return min(400, length * rng.randint(1, 3) + rng.randint(1, 3)), length


def small(rng):
    """Windows shorter than their pads."""
    return rng.randint(1, 400), rng.randint(1, 12)


def usual(rng):
    return rng.randint(1, 400), rng.choice((20, 40, 60, 80, 100, 120))


def tiny(rng):
    return rng.randint(1, 4), rng.randint(1, 4)


KINDS = (short, edge, long_windows, tail, small, usual, tiny)


def draw(n, seed):
    rng = random.Random(seed)
    for k in range(n):
        frames, length = KINDS[k % len(KINDS)](rng)
        neighbor_length = rng.choice((10, 10, 20, rng.randint(2, 30)))
        ref_stride = rng.choice((10, 5, rng.randint(1, 20), length + rng.randint(1, 5)))
        yield frames, length, neighbor_length, ref_stride


BRANCHES = {
    "T <= L": lambda t, n, h, r: t <= n,
    "T = L + 1": lambda t, n, h, r: t == n + 1,
    "Li < T <= L": lambda t, n, h, r: min(100, n) < t <= n,
    "Li < L < T": lambda t, n, h, r: 100 < n < t,
    "T = 1": lambda t, n, h, r: t == 1,
    "last completion window of one or two": lambda t, n, h, r: t - 1 > n and (t - 1) % n in (1, 2),
    "L below the pads": lambda t, n, h, r: n < 10 and t > n,
    "odd neighbor_length": lambda t, n, h, r: h % 2 == 1,
    "long, no step has references": lambda t, n, h, r: t > n and not any(s[3] for s in schedule(t, n, h, r)[2]),
    "short, no step has references": lambda t, n, h, r: t <= n and not any(s[3] for s in schedule(t, n, h, r)[2]),
    "some steps have references": lambda t, n, h, r: len({bool(s[3]) for s in schedule(t, n, h, r)[2]}) == 2,
    "references begin at 0, out of phase": lambda t, n, h, r: t > n and n // r > 1 and any(
        0 < f < r * (n // r // 2) and f % r and refs for f, _, _, refs in schedule(t, n, h, r)[2]),
}


def print_drawn(n, seed, uses):
    met = dict.fromkeys(BRANCHES, 0)
    for setting in draw(n, seed):
        print("setting", *setting)
        for line in lines(setting, uses):
            print(line)
        for name, holds in BRANCHES.items():
            met[name] += holds(*setting)
    for name, count in met.items():
        print(f"{count:5} {name}", file=sys.stderr)
    missing = [name for name, count in met.items() if count == 0]
    if missing and n >= 100:
        sys.exit(f"no drawn setting has: {', '.join(missing)}")


def compare(path):
    with open(path) as f:
        cases = json.load(f)["cases"]
    for case in cases:
        p = case["params"]
        _, _, made = schedule(p["frames"], p["subvideo_length"], p["neighbor_length"], p["ref_stride"])
        said = [(s["mid"], s["neighbors"], s["refs"]) for s in p["schedule"]]
        if [(f, list(range(a, b)), refs) for f, a, b, refs in made] != said:
            sys.exit(f"{case['name']}: the golden's schedule is another one")
        print(f"{case['name']}: {len(made)} steps")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("setting", type=int, nargs="*", metavar="N", help="T L neighbor_length ref_stride")
    p.add_argument("--uses", action="store_true")
    p.add_argument("--draw", type=int)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--golden")
    args = p.parse_args()
    if args.golden:
        compare(args.golden)
    elif args.draw is not None:
        print_drawn(args.draw, args.seed, args.uses)
    elif len(args.setting) == 4 and min(args.setting) >= 1 and args.setting[2] >= 2:
        for line in lines(args.setting, args.uses):
            print(line)
    else:
        p.error("four numbers, each at least 1, neighbor_length at least 2")


if __name__ == "__main__":
    main()
