#!/usr/bin/env python3
"""What a refusal tells to give is enough, and nothing less is.

    figures.py TEGULA [--plugin FAKE_DEVICE] [--jobs N] [--seed S] [--first K] [--staged]

Jobs are drawn (drawn.py): networks, inputs, options, and budgets that are too small. Of each
refusal of plan:
  - what is needed is more than the budget, as they are printed;
  - the --ram that it tells is taken, with a peak within it, and one unit less is refused, with the
    same figures; so is the need itself, one hundredth less not;
  - other budgets below are refused with the same figures, and those above are taken;
  - what it tells to change (the largest --tile that fits, the commands below the line) is taken;
  - run (of every fourth job) and copy hold the same; of verify and preview, whose kernels depend on
    the budget, the commands below the line are taken;
  - with a plugin, every fourth job is on a device that is not there, and its figures are --vram's.
A failure names its job's number and the seed: --seed S --first K --jobs 1 draws it again."""
import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

import drawn

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MIB = 1 << 20
SIZE = r"([\d.]+) ?([KMG]?i?B)"


def parse(number, unit):
    return float(number) * UNITS[unit]


class Refusal:
    """The figures of a line, as text and in bytes."""

    def __init__(self, text):
        self.text = text
        need = re.search(r"needs? " + SIZE, text) or re.search(r"takes " + SIZE, text)
        have = (re.search(r"budget (?:is|of) " + SIZE, text) or re.search(SIZE + " are allowed", text) or
                re.search(SIZE + " may be used", text))
        ram = re.search(r"--v?ram (\d+)([MG]iB)", text)
        tile = re.search(r"is --tile (\d+)", text)
        self.need = need and need.groups()
        self.have = have and have.groups()
        self.ram = ram and ram.groups()
        self.tile = tile and tile.group(1)
        self.of_decoder = "to be decoded" in text

    def tells_as(self, other):
        """The same need; of the --ram that is told, one unit more is for a start with some pages more
        of the program, which one start may see coming and the next not."""
        units = {int(r.ram[0]) for r in (self, other) if r.ram}
        return ((self.need, self.of_decoder, bool(self.ram)) == (other.need, other.of_decoder, bool(other.ram)) and
                max(units, default=0) - min(units, default=0) <= 1)


class Check:
    def __init__(self, tegula, plugin, seed, cache, staged):
        self.tegula, self.seed, self.plugin = tegula, seed, plugin
        self.staged = staged
        self.option, self.peaks = "--ram", ("peak_bytes", "measured_peak_bytes")
        self.env = {**os.environ, "TEGULA_CACHE": cache, "TEGULA_CUDA_PLUGIN": "none",
                    "FAKE_DEVICE": "devices=1 MiB=4000 context=3"}
        self.refused = self.violated = self.calls = self.ran = 0
        self.where = ""

    def complain(self, what):
        self.violated += 1
        print(f"seed {self.seed} {self.where}: {what}")

    def call(self, verb, args, ram):
        """(exit, the event of done or of the error, stderr) of a command."""
        self.calls += 1
        command = [self.tegula, verb] + args + [self.option, ram]
        if verb in ("run", "copy", "preview"):
            command.append("-y")
        p = subprocess.run(command + ["--json"], stdin=subprocess.DEVNULL, capture_output=True, check=False,
                           timeout=300, env=self.env)
        lines = [x for x in p.stdout.splitlines() if x.startswith(b"{")]
        return p.returncode, json.loads(lines[-1]) if lines else {}, p.stderr.decode("utf-8", "replace")

    def taken(self, verb, args, ram, why):
        """The command works within its budget."""
        code, event, err = self.call(verb, args, ram)
        if code != 0:
            line = next((x for x in err.splitlines() if x.startswith("tegula:") and "warning" not in x), err)
            self.complain(f"{verb} {self.option} {ram} ({why}) is not taken: exit {code}: {line}\n    {shlex.join(args)}")
            return False
        size, unit = re.fullmatch(SIZE, ram).groups()
        for key in self.peaks:
            if event.get(key, 0) > parse(size, unit):
                self.complain(f"{verb} {self.option} {ram} ({why}): {key} is {event[key] / MIB:.3f} MiB\n    {shlex.join(args)}")
        return True

    def refusal(self, verb, args, ram):
        """Its figures, or None where the command does not refuse."""
        code, event, err = self.call(verb, args, ram)
        if code != 71:
            if code != 0:
                self.complain(f"{verb} {self.option} {ram}: exit {code}: {err.strip()[-300:]}\n    {shlex.join(args)}")
            return None
        r = Refusal(event["detail"])
        r.remedies = event.get("remedies", [])
        r.tried = event.get("tried_bytes", 0)
        r.budget = ram
        if not r.need:
            self.complain(f"{verb} {self.option} {ram}: no figure: {r.text}")
        elif r.have and parse(*r.need) <= parse(*r.have):
            self.complain(f"{verb} {self.option} {ram}: needs no more than there is: {r.text}\n    {shlex.join(args)}")
        return r

    def stands(self, verb, args, ram, first):
        """Refused, with the same figures as the first time."""
        r = self.refusal(verb, args, ram)
        if not r:
            self.complain(f"{verb} {self.option} {ram} works, where {first.budget} was refused with: {first.text}\n    {shlex.join(args)}")
        elif not r.tells_as(first):
            self.complain(f"{verb}: other figures: {first.budget}: {first.text}\n    {ram}: {r.text}\n    {shlex.join(args)}")

    def judge(self, verb, args, r, draw):
        """Everything that a refusal of `verb` says."""
        self.refused += 1
        need, ram = parse(*r.need), r.ram
        size, unit = r.need
        factor = 4 if r.of_decoder else 1  # a quarter of the budget is for decoding
        if r.of_decoder:  # what is enough to decode may still be too little for the rest
            again = self.refusal(verb, args, f"{factor * need / UNITS[unit] + 1e-4:.4f}{unit}")
            if again and again.of_decoder:
                self.complain(f"{verb}: told {r.text}\n    then {again.text}\n    {shlex.join(args)}")
            less = self.refusal(verb, args, f"{factor * (float(size) - 0.011):.4f}{unit}")
            if not less or not less.of_decoder:
                self.complain(f"{verb}: less than {r.text} is enough\n    {shlex.join(args)}")
            return
        if verb in ("verify", "preview"):  # their kernels are the run's, which a larger budget may make larger
            return self.remedies(verb, args, r)
        self.taken(verb, args, size + unit, "the need")
        self.stands(verb, args, f"{float(size) - 0.01:.2f}{unit}", r)
        if r.tried:  # one byte less than the need, and than the printed one
            for less in (r.tried - 1, int(-(-need // 1)) - 1):
                if less < r.tried:
                    self.stands(verb, args, f"{less / 1024:.10f}KiB", r)
        if ram:
            self.taken(verb, args, "".join(ram), "told")
            if (int(ram[0]) - 1) * UNITS[ram[1]] < need:  # else a start with some pages more would need what was told
                self.stands(verb, args, f"{int(ram[0]) - 1}{ram[1]}", r)
        for _ in range(2):
            more = need * draw.choice([1.003, 1.01, 1.1, 1.5, 2.5, 6]) / MIB + 0.01
            self.taken(verb, args, f"{more:.2f}MiB", f"more than {r.need}")
        if r.tile:
            where = args.index("--tile")
            other = args[:where] + args[where + 2:]
            self.taken(verb, other + ["--tile", r.tile], r.budget, "the largest tile")
            if self.call(verb, other + ["--tile", str(int(r.tile) + 16)], r.budget)[0] == 0:
                self.complain(f"--tile {int(r.tile) + 16} fits, the largest was {r.tile}\n    {shlex.join(args)}")
        return self.remedies(verb, args, r)

    def remedies(self, verb, args, r):
        """The commands below the line work, with the peak that they are told with."""
        if not r.remedies:
            self.complain(f"{verb}: nothing is told to do: {r.text}\n    {shlex.join(args)}")
        for told in r.remedies:
            words = shlex.split(told["command"])[2:]
            words = [w for w in words if w not in ("--json", "-y")]
            at = words.index(self.option) if self.option in words else None
            budget = words[at + 1] if at is not None else r.budget
            if at is not None:
                del words[at:at + 2]
            code, event, _ = self.call(verb, words, budget)
            peak = event.get(self.peaks[0] if "--device cpu" not in told["command"] else "peak_bytes",
                             told["peak_bytes"])
            if code != 0 or peak != told["peak_bytes"]:
                self.complain(f"{verb}: exit {code}, peak {peak}, told {told['peak_bytes']}: {told['command']}\n"
                              f"    {shlex.join(args)}")

    def device_job(self, draw):
        self.option, self.peaks = "--vram", ("device_peak_bytes", "device_measured_bytes")
        self.env["TEGULA_CUDA_PLUGIN"] = self.plugin
        with tempfile.TemporaryDirectory() as folder:
            job = drawn.Job(draw, folder, self.staged)
            args = job.args + ["--device", "cuda", "--ram", "4GiB"]
            if not self.is_supported(args):
                return
            r = self.refusal("plan", args, f"{3 + draw.choice([0.01, 0.1, 0.3, 1])}MiB")
            if r and r.need:
                self.judge("plan", args, r, draw)
                if job.h * job.w <= 70000 and draw.random() < 0.5:
                    self.runs(args, r)
            self.option, self.peaks = "--ram", ("peak_bytes",)  # measured, the device's memory is ours
            args[-2:] = ["--vram", "3500MiB"]
            r = self.refusal("plan", args, "3.3MiB")
            if r and r.need and not r.of_decoder:
                self.judge("plan", args, r, draw)

    def is_supported(self, args):
        """The device that is not there has not every operator."""
        return self.call("plan", args, "3500MiB")[0] == 0

    def job(self, draw):
        self.option, self.peaks = "--ram", ("peak_bytes", "measured_peak_bytes")
        self.env["TEGULA_CUDA_PLUGIN"] = "none"
        with tempfile.TemporaryDirectory() as folder:
            job = drawn.Job(draw, folder, self.staged)
            start = f"{draw.choice([1, 2, 3, 4, 5, 6, 8]) + draw.choice([0, 0.3, 0.77])}MiB"
            verb = draw.choices(["plan", "verify", "preview", "copy"], [7, 1, 1, 1])[0]
            args = job.args
            if verb == "copy" and not job.array:
                args = [job.input, "-o", job.path("copy.tif"), "--compress", "zstd", "--threads",
                        str(draw.choice([1, 4, 64]))]
            elif verb == "preview" and not job.array:
                args = ["-m", job.net, job.input, "-o", job.path("seen.png"), "--normalize", "minmax"]
            elif verb == "verify":
                args = ["-m", job.net, job.input] + (["--tile", "128"] if draw.random() < 0.3 and job.sides[0] == 0 else [])
            else:
                verb = "plan"
            r = self.refusal(verb, args, start)
            if r and r.of_decoder:
                self.judge(verb, args, r, draw)
                start = f"{4.1 * parse(*r.need) / MIB:.2f}MiB"
                r = self.refusal(verb, args, start)
            if not r or not r.need or r.of_decoder:
                return
            self.judge(verb, args, r, draw)
            if verb == "plan" and draw.random() < 0.25:
                self.runs(args, r)

    def runs(self, args, r):
        """Where it takes no long: what plan told holds for run."""
        told = "".join(r.ram)
        if self.call("plan", args, told)[1].get("seconds_estimate", 9) > 2:
            return
        self.ran += 1
        self.taken("run", args, told, "told by plan")
        self.stands("run", args, f"{float(r.need[0]) - 0.01:.2f}{r.need[1]}", r)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tegula")
    p.add_argument("--plugin", default="")
    p.add_argument("--jobs", type=int, default=12)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--first", type=int, default=0)
    p.add_argument("--staged", action="store_true", help="networks that read the whole image many times over")
    a = p.parse_args()
    with tempfile.TemporaryDirectory() as cache:  # what earlier jobs of this machine taught is no part of it
        check = Check(a.tegula, a.plugin, a.seed, cache, a.staged)
        for k in range(a.first, a.first + a.jobs):
            check.where = f"job {k}"
            draw = random.Random(a.seed * 1000003 + k)
            (check.device_job if a.plugin and k % 4 == 3 else check.job)(draw)
    print(f"seed {a.seed}: {a.jobs} jobs, {check.refused} refusals, {check.ran} run, {check.calls} commands, "
          f"{check.violated} violations")
    return 1 if check.violated or not check.refused else 0


if __name__ == "__main__":
    sys.exit(main())
