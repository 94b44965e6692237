"""What every family of run.py needs: the machine, the peers' Python, processes that take turns,
and figures with their spread. Standard library only."""
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PEERS = ("numpy", "onnxruntime", "tifffile")
PAUSE = 0.03  # between turns: a peer's workers spin for a while after their last loop


class Failure(Exception):
    """A measurement that cannot be: the row is left out and the script ends with 1."""


# ---- Where and what ------------------------------------------------------------------------

def git(*args):
    try:
        return subprocess.run(["git", "-C", ROOT, *args], capture_output=True, text=True).stdout.strip()
    except OSError:
        return ""


def commit():
    """Short name of the commit, with '+' when the tree has changes; '' outside a checkout."""
    name = git("rev-parse", "--short=10", "HEAD")
    return name + "+" if name and git("status", "--porcelain", "-uno") else name


def cpu_facts():
    model, flags = platform.machine(), set()
    with open("/proc/cpuinfo") as f:
        for line in f:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = set(value.split())
    return model, [i for i in ("avx2", "avx512f", "avx512_bf16") if i in flags]


def machine():
    model, isa = cpu_facts()
    gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30)
    return {"cpu": model, "cores": os.cpu_count(), "isa": isa, "ram_gib": round(gib, 1),
            "system": f"{platform.system()} {platform.release()}"}


def machine_name():
    """Short, for a file name, and no host's name: processor and cores."""
    model = cpu_facts()[0].lower().replace("(r)", "").replace("(tm)", "")
    words = "".join(c if c.isalnum() else " " for c in model).split()
    return "-".join(words[:3]) + f"-{os.cpu_count()}c"


def pin(threads):
    """Keep this process and its children on the first `threads` processors that it may use."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) > threads:
        os.sched_setaffinity(0, allowed[:threads])
    return len(os.sched_getaffinity(0))


def load_average():
    return os.getloadavg()[0]


# ---- The peers' Python ---------------------------------------------------------------------

def has_peers(python):
    command = [python, "-c", "import " + ", ".join(PEERS)]
    try:
        return subprocess.run(command, capture_output=True, timeout=120).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def peer_python(build, say):
    """A Python with the peers: TG_PEER_PYTHON, or a virtual environment in the build folder, made
    and filled when it is not there. None when it cannot be had: the peers' columns stay empty."""
    given = os.environ.get("TG_PEER_PYTHON")
    if given:
        if has_peers(given):
            return given
        say(f"TG_PEER_PYTHON={given} lacks one of {', '.join(PEERS)}")
        return None
    venv = os.path.join(build, "bench-peers")
    python = os.path.join(venv, "bin", "python")
    if has_peers(python):
        return python
    say(f"installing {', '.join(PEERS)} into {venv}")
    for command in (["python3", "-m", "venv", "--clear", venv],
                    [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEERS]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        except (OSError, subprocess.TimeoutExpired) as e:
            say(f"no peers: {e}")
            return None
        if done.returncode != 0:
            say(f"no peers: {last_words(done.stderr or done.stdout)}")
            return None
    return python if has_peers(python) else None


# ---- Turns ---------------------------------------------------------------------------------

class Served:
    """A program that runs one turn for each line on its stdin and answers in JSON lines."""

    def __init__(self, command):
        self.command, self.errors = command, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True)
        self.ready = self.answer()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        self.errors.seek(0)
        words = last_words(self.errors.read())
        self.close()
        raise Failure(f"{os.path.basename(self.command[0])}: {words}")

    def turn(self):
        self.process.stdin.write("turn\n")
        self.process.stdin.flush()
        return self.answer()["seconds"][0]

    def end(self):
        self.process.stdin.close()
        last = self.answer()
        self.close()
        return last

    def close(self):
        """Ends the program if it has not ended by itself; safe to call again."""
        if self.process.poll() is None and not self.process.stdin.closed:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            stream.close()


def take_turns(turns, rounds):
    """`turns`: name -> function that returns seconds. A-B-A-B..., `rounds` times."""
    seconds = {name: [] for name in turns}
    for _ in range(rounds):
        for name, turn in turns.items():
            seconds[name].append(turn())
            time.sleep(PAUSE)
    return seconds


def limit_memory(limit):
    """For preexec_fn: what the system cannot give is refused politely instead of killed late."""
    return (lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))) if limit else None


def available_bytes():
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("MemAvailable"))


def run_process(command, limit=0):
    """(exit code, seconds, peak RSS, stdout, stderr) of a whole process. The peak is ru_maxrss of
    wait4: all resident pages, those of mapped files too. It cannot fall below what this script
    holds itself (some 20 MB)."""
    with tempfile.TemporaryFile("w+") as errors:
        start = time.perf_counter()
        p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True,
                             preexec_fn=limit_memory(limit))
        out = p.stdout.read()
        _, status, usage = os.wait4(p.pid, 0)
        seconds = time.perf_counter() - start
        p.returncode = os.waitstatus_to_exitcode(status)
        p.stdout.close()
        errors.seek(0)
        return p.returncode, seconds, usage.ru_maxrss * 1024, out, errors.read()


def last_words(text):
    return " | ".join(text.strip().splitlines()[-2:]) or "no message"


def json_lines(text):
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


# ---- Figures -------------------------------------------------------------------------------

def summary(values):
    middle = statistics.median(values)
    return {"median": middle, "min": min(values), "max": max(values),
            "mad": statistics.median(abs(v - middle) for v in values), "rounds": len(values)}


def ratios(theirs, ours):
    """Of each round, so that a machine that slows down for a while counts on both sides."""
    r = [b / a for a, b in zip(ours, theirs)]
    return {"ratio": statistics.median(r), "ratio_min": min(r), "ratio_max": max(r)}


def remove(*paths):
    for path in paths:
        for name in (path, path + ".journal", path + ".partial", path + ".tegula.json"):
            if os.path.isdir(name):
                shutil.rmtree(name)
            elif os.path.exists(name):
                os.remove(name)
