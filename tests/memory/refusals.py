#!/usr/bin/env python3
"""Every remedy that a memory refusal tells is run, and works within the peak it was told with.

    refusals.py TEGULA OWN_MODEL

The command is taken from the text as a person would copy it, and its memory is measured from outside
(and from inside, where it says so). Refusals of the plan, of verify, of
preview, of copy, of arrays, and of the system, whose address space is limited."""
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile

import tiffmade
import watch

MIB = 1 << 20
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def size(text):
    number, unit = text.split()
    return float(number) * UNITS[unit]


def remedies(stderr):
    """[(command, peak in bytes, what it loses)] of a refusal as it is printed."""
    lines = stderr.splitlines()
    if not any(x.startswith("  what would do") for x in lines):
        return []
    at = next(i for i, x in enumerate(lines) if x.startswith("  what would do"))
    found = []
    for command, cost in zip(lines[at + 1::2], lines[at + 2::2]):
        if not command.startswith("    "):
            break
        peak, _, loses = cost.strip().partition("; loses ")
        found.append((shlex.split(command), size(peak.removeprefix("peak ")), loses))
    return found


def limited(megabytes):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes * MIB, megabytes * MIB))


def least_to_start(tegula):
    """MiB of address space that the libraries alone take, which differ between machines: without them nothing starts."""
    for megabytes in range(16, 512):
        if not subprocess.run([tegula, "--version"], capture_output=True, check=False, stdin=subprocess.DEVNULL,
                              preexec_fn=limited(megabytes)).returncode:
            return megabytes
    sys.exit("tegula --version needs more than 512 MiB of address space")


class Check:
    def __init__(self, tegula):
        self.tegula, self.failed, self.n = tegula, 0, 0

    def complain(self, name, what):
        self.failed += 1
        print(f"{name}: WRONG: {what}")

    def works(self, name, remedy, address_space):
        command, told, loses = remedy
        extra = ["--json"] + ([] if command[1] == "verify" or "-y" in command else ["-y"])
        done = watch.run(command + extra, before=limited(address_space) if address_space else None)
        if done.code:
            return self.complain(name, f"{shlex.join(command)}: exit {done.code}: {done.stderr}")
        own = done.done.get("measured_peak_bytes", 0)  # run watches itself
        planned = done.done.get("predicted_peak_bytes", told)
        measured = max(own, done.peak)
        self.n += 1
        print(f"{name:16} {shlex.join(command[2:])[-60:]:60} told {told / MIB:8.2f} MiB, "
              f"measured {measured / MIB:8.2f} MiB; loses {loses}")
        if measured > told * 1.001 + MIB / 64:
            self.complain(name, "more than it was told")
        # Nor a number that is always enough; from outside a short command's peak is easily missed.
        if own and own < told * 0.7 - 2 * MIB:
            self.complain(name, "much less than it was told")
        if not 0.95 * told - MIB <= planned <= 1.05 * told + MIB:
            self.complain(name, f"planned {planned / MIB:.2f} MiB in the end")
        return None

    def under_a_limit(self, words, least):
        """Where the shell's limit leaves no room, that is said; where a --ram is named, it is enough."""
        said = {"--ram": 0, "ulimit -v": 0}
        for megabytes in range(least, least + 74, 2):
            def run(*more):
                return subprocess.run([self.tegula, *words, *more], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                                      preexec_fn=limited(megabytes))
            told = re.search(r"give (--ram|a larger ulimit -v)(?: (\d+MiB))?", run().stderr)
            if not told:
                continue
            said[told[1].removeprefix("a larger ")] += 1
            done = run("--ram", told[2]) if told[2] else None
            if done and done.returncode:
                self.complain("ulimit -v", f"{megabytes} MiB, --ram {told[2]}: exit {done.returncode}: {done.stderr[:300]}")
            if said["--ram"] == 3:
                break
        print(f"ulimit -v        {said}")
        if not all(said.values()):
            self.complain("ulimit -v", f"{said}")

    def doctor(self, name, job):
        """The doctor names one change, with the job's own file."""
        done = subprocess.run([self.tegula, "doctor", job, "--json"], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL)
        found = [f for f in json.loads(done.stdout.splitlines()[0])["findings"] if f["about"] == "job"]
        if done.returncode != 71 or len(found) != 1 or " (peak " not in (found[0]["remedy"] or ""):
            return self.complain(name, f"exit {done.returncode}: {found}")
        command, _, cost = found[0]["remedy"].removesuffix(")").partition(" (peak ")
        peak, _, loses = cost.partition("; loses ")
        return self.works(name, ([self.tegula] + shlex.split(command)[1:], size(peak), loses), 0)

    def refused(self, name, args, least, expect=(), address_space=0):
        done = subprocess.run([self.tegula] + args, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL,
                              preexec_fn=limited(address_space) if address_space else None)
        found = remedies(done.stderr)
        if done.returncode != 71 or "tried to allocate" not in done.stderr or \
                "held now:" not in done.stderr or len(found) < least:
            return self.complain(name, f"exit {done.returncode}, {len(found)} remedies:\n{done.stderr}")
        for option in expect:
            if not any(option in r[0] for r in found):
                self.complain(name, f"no remedy with {option}:\n{done.stderr}")
        for remedy in found:
            self.works(name, remedy, address_space)
        return None


def tegula_copy(tegula, image, to):
    subprocess.run([tegula, "copy", image, "-o", to, "--compress", "deflate", "-q"], check=True,
                   stdin=subprocess.DEVNULL)


def main():
    tegula, model = sys.argv[1:3]
    check = Check(tegula)
    with tempfile.TemporaryDirectory() as tmp:
        image = tiffmade.Made(os.path.join(tmp, "an image.tif"), 2048, 512, 1)
        tiffmade.fill(image)
        net, image, out = ["-m", model], image.path, ["-o", os.path.join(tmp, "out.tif")]
        packed = os.path.join(tmp, "packed.tif")  # one strip: its decoder is a large part of all
        tegula_copy(tegula, image, packed)
        for verb, ram in (("preview", "8MiB"), ("run", "5MiB"), ("copy", "4MiB")):
            to = ["-o", os.path.join(tmp, "q.png")] if verb == "preview" else out
            check.refused("packed " + verb, [verb, *([] if verb == "copy" else net), packed, *to,
                                             *(["--compress", "deflate"] if verb == "copy" else []),
                                             "--ram", ram], 1, ["--ram"])
        job = os.path.join(tmp, "a job.json")
        subprocess.run([tegula, "plan", *net, image, *out, "--save", job, "-q", "--ram", "1GiB"], check=True,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with open(job, encoding="utf-8") as f:
            saved = json.load(f)
        with open(job, "w", encoding="utf-8") as f:
            json.dump({**saved, "ram": "5MiB"}, f)
        check.doctor("doctor", job)
        check.refused("budget", ["run", *net, image, *out, "--ram", "5MiB"], 1, ["--ram"])
        check.refused("tile", ["run", *net, image, *out, "--ram=17MiB", "--tile", "512x2048",
                               "--threads", "8"], 2, ["--ram", "--tile"])
        check.refused("no bytes", ["plan", *net, image, *out, "--ram", "1MiB"], 1, ["--ram"])
        check.refused("verify", ["verify", *net, image, "--ram", "60MiB"], 2, ["--ram", "--roi"])
        check.refused("preview", ["preview", *net, image, "-o", os.path.join(tmp, "p.png"),
                                  "--ram", "8MiB"], 1, ["--ram"])
        check.refused("copy", ["copy", image, *out, "--compress", "zstd", "--threads", "64",
                               "--ram", "12MiB"], 2, ["--ram", "--threads"])
        if not is_sanitized():
            least = least_to_start(tegula)
            check.refused("system", ["run", *net, image, *out, "-y", "--ram", "3GiB", "--threads", "1",
                                     "--tile", "512x2048"], 1, ["--ram"], address_space=least + 14)
            check.under_a_limit(["run", *net, image, *out, "-y", "--threads", "1"], least)
    print(f"{check.n} remedies ran, {check.failed} wrong")
    return 1 if check.failed or not check.n else 0


def is_sanitized():
    """A sanitizer maps terabytes: address space cannot be limited."""
    return any(k in os.environ for k in ("ASAN_OPTIONS", "TSAN_OPTIONS"))


if __name__ == "__main__":
    sys.exit(main())
