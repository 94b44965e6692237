#!/usr/bin/env python3
"""SIGINT while a network of many nodes is opened and planned: heard, at whatever phase.

    stopped_plan.py TEGULA SOURCE_DIR [NODES [SIGNALS [NET...]]]

For `info`, `plan` and `run` as many signals as said, at moments spread over all that the verb does (of `run`, over
its plan). Each ends it with 130 within a second. Moments and the second are processor time of the command, which
its neighbours on the machine hardly change. What is over before the signal is there has nothing to hear, so a verb
must take a while. With a NET given `run` is left out."""
import os
import signal
import subprocess
import sys
import tempfile
import time

from many_nodes import MORE, NETS, SLOW, Check  # noqa: E402
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fuzz"))
from seeds import npy  # noqa: E402

STOP = 1 * SLOW
LONG = 0.1  # seconds that a verb takes at least: less shows nothing
NODES = int((sys.argv[3:] or [20000])[0])
SIGNALS = int((sys.argv[4:] or [10])[0])
TICKS = os.sysconf("SC_CLK_TCK")
# What is slow about each lies in another phase: bands, cuts, stages, arena.
CHOSEN = {"convolutions": NETS["convolutions"], "squeeze": MORE["squeeze"], "flip": MORE["flip"],
          "up and down": MORE["up and down"]}


def taken(pid):
    """Processor seconds of a process so far; None: it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
            rest = f.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if rest[0] == "Z" else (int(rest[11]) + int(rest[12])) / TICKS


class Stopped(Check):
    def one(self, words, after):
        """The exit code, all processor seconds, those behind the signal (None: it ended before)."""
        with tempfile.TemporaryFile() as said:
            p = subprocess.Popen([self.tegula, *words], stdout=said, stderr=said, stdin=subprocess.DEVNULL)
            at = 0
            while at is not None and at < after:
                time.sleep(0.005)
                at = taken(p.pid)
            if at is not None and after < float("inf"):
                p.send_signal(signal.SIGINT)
            _, status, usage = os.wait4(p.pid, 0)
            p.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read().decode(errors="replace")
        whole = usage.ru_utime + usage.ru_stime
        return p.returncode, whole, None if at is None else whole - at, text

    def stops(self, what, whole, *words):
        worst, late = 0, 0
        for k in range(SIGNALS):
            code, _, behind, text = self.one(words, whole * (k + 0.5) / SIGNALS)
            if behind is None:
                late += 1
                self.expect(code in (0, 71), f"{what}: nobody stopped it, exit {code}")
                continue
            worst = max(worst, behind)
            if code == 0 and "stopping" not in text:
                late += 1  # done before the handler ran
                continue
            self.expect(code in (130, -signal.SIGINT), f"{what}, signal {k + 1}: exit {code}: {text[-300:]}")
            self.expect(behind < STOP, f"{what}, signal {k + 1}: {behind:.2f} s more")
        print(f"  {what}: {whole:.1f} s, {SIGNALS - late} times stopped, within {worst:.2f} s", flush=True)
        self.expect(late <= (SIGNALS + 1) // 2, f"{what}: {late} of {SIGNALS} signals came too late to show anything")

    def long_enough(self, verb, name, words):
        """Writes the network, of more nodes on a machine that takes no time for the first ones; the verb's seconds."""
        nodes = NODES
        while True:
            with open("net.onnx", "wb") as f:
                f.write(CHOSEN[name](nodes))
            code, whole, _, text = self.one([verb, *words], float("inf"))
            self.expect(code in (0, 71), f"{verb}, {name}: exit {code}: {text[-300:]}")
            if whole > LONG or nodes >= 8 * NODES:
                self.expect(whole > LONG, f"{verb}, {name}: {whole:.2f} s are too few to show anything")
                return whole
            nodes *= 2


def main():
    check = Stopped(os.path.abspath(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started this may have it ignored
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with open("x.npy", "wb") as f:
            f.write(npy("<f4", "(1, 2, 512, 256)", bytes(4 * 2 * 512 * 256)))
        for name in sys.argv[5:] or CHOSEN:
            plan = ["-m", "net.onnx", "x.npy"]
            verbs = [("info", ["net.onnx"]), ("plan", plan), ("run", [*plan, "-o", "y.npy", "-y"])]
            for verb, words in verbs[:2] if sys.argv[5:] else verbs:
                if verb != "run":
                    whole = check.long_enough(verb, name, words)
                check.stops(f"{verb}, {name}", whole, verb, *words)
    print("failed" if check.failed else "all well")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
