#!/usr/bin/env python3
"""The error gallery: golden errors that run, and the page made of them.

    gallery.py check                          read only: the rules below
    gallery.py run TEGULA FAKE [FILE.case]    run every case (of one file); --accept rewrites them
    gallery.py write                          write docs/reference/errors.md

A case, in the .case files of this folder and in tests/cli/errors.case:

    ## What the user was doing                a section; the cases below belong to it
    $ ARGUMENTS                               the command, shell words, in a folder of gallery_files
    given TEXT                                what one has to know of the files
    env NAME=VALUE                            for the command
    before WORDS                              done first, see `prepare`; tegula commands are shown
    signal NAME                               sent once the output is begun
    limit KIB                                 of address space (ulimit -v)
    device TEXT                               on the tests' own device, set up so (FAKE_DEVICE); left out without one
    needs WORD                                a processor with that (/proc/cpuinfo), else it is left out
    process small                             left out where a sanitizer's process does not fit
    by fake                                   by the test double: what only a bug brings about
    exit CODE STATUS
    err LINE                                  standard error; * stands for what differs
    cause TEXT, cure TEXT                     both must be there
    also GLOB                                 other messages of the same cause and cure

`check` fails when a case lacks its cause or cure, when a status that the sources return has no
case, when a message in docs/reference/hostile.md is of no kind shown here, and when docs/reference/errors.md is not
what the cases say."""
import fcntl
import fnmatch
import os
import re
import resource
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DEVICE = os.environ.get("FAKE_DEVICE_PLUGIN", "")
DOC = os.path.join(ROOT, "docs", "reference", "errors.md")
FILES = [os.path.join(HERE, f) for f in ("image", "model", "weights", "match", "memory", "output", "damage", "film", "inpaint", "resume", "machine")]
FILES = [os.path.join(ROOT, "tests", "cli", "errors.case")] + [f + ".case" for f in FILES]
ONE = ("exit", "given", "signal", "limit", "device", "needs", "process", "by", "out")
MANY = ("err", "env", "before", "cause", "cure", "also")


def read_cases(path):
    cases, section = [], ""
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "##":
                section = rest
            elif word == "$":
                cases.append({"at": f"{os.path.relpath(path, ROOT)}:{number}", "section": section, "args": rest,
                              **{k: "" for k in ONE}, **{k: [] for k in MANY}})
            elif word in MANY:
                cases[-1][word].append(rest)
            elif word in ONE:
                cases[-1][word] = rest
            elif word and not word.startswith("#"):
                sys.exit(f"{path}:{number}: what is \"{word}\"?")
    return cases


def all_cases():
    return [c for f in FILES for c in read_cases(f)]


def matches(want, got):
    return len(want) == len(got) and all(w == g or ("*" in w and glob(w, g)) for w, g in zip(want, got))


def glob(pattern, text):
    return fnmatch.fnmatchcase(text, pattern.replace("[", "[[]"))


# ---- Running -------------------------------------------------------------------------------------

def environment(words):
    env = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C", "TEGULA_CUDA_PLUGIN": "none"}
    for key in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "TEGULA_LEAKS"):
        if key in os.environ:
            env[key] = os.environ[key]
    env.update(w.split("=", 1) for w in words)
    return env


class Runner:
    def __init__(self, tegula, fake):
        import gallery_files
        self.tegula, self.fake, self.held = os.path.abspath(tegula), os.path.abspath(fake), []
        self.made = tempfile.TemporaryDirectory()
        self.files = self.made.name
        gallery_files.make(self.files)

    def prepare(self, words, folder):
        """tegula ..., with NAME=VALUE in front; flip FILE AT; cut FILE BYTES; copy FROM TO; remove FILE;
        fill FILE AT BYTES; folder NAME; hold OUTPUT (as another run does)."""
        env = [w for w in words if re.fullmatch(r"[A-Z_]+=.*", w)]
        words = words[len(env):]
        path = os.path.join(folder, words[1]) if len(words) > 1 else ""
        if words[0] == "tegula":
            subprocess.run([self.tegula] + words[1:], cwd=folder, env=environment(env), stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=60)
        elif words[0] in ("flip", "fill"):
            with open(path, "r+b") as f:
                at = int(words[2])
                f.seek(at)
                old = f.read(1) if words[0] == "flip" else b""
                f.seek(at)
                f.write(bytes([old[0] ^ 1]) if old else b"\xff" * int(words[3]))
        elif words[0] == "cut":
            os.truncate(path, os.path.getsize(path) - int(words[2]))
        elif words[0] == "copy":
            shutil.copy(path, os.path.join(folder, words[2]))
        elif words[0] == "remove":
            os.remove(path)
        elif words[0] == "folder":
            os.mkdir(path)
        elif words[0] == "hold":
            f = open(path + ".journal", "w+b")
            fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))  # F_OFD_SETLK
            self.held.append(f)
        else:
            sys.exit(f"what is \"before {' '.join(words)}\"?")

    def command(self, case, folder, as_json):
        words = shlex.split(case["args"])
        if as_json:
            at = 2 if words[0] == "estimate" else 1  # behind what it is to estimate
            words = words[:at] + ["--json"] + words[at:]
        kib = int(case["limit"] or 0) << 10

        def limits():
            if kib:
                resource.setrlimit(resource.RLIMIT_AS, (kib, kib))
        program = self.fake if case["by"] == "fake" else self.tegula
        device = [f"TEGULA_CUDA_PLUGIN={DEVICE}", f"FAKE_DEVICE={case['device']}"] if case["device"] else []
        p = subprocess.Popen([program] + words, cwd=folder, env=environment(case["env"] + device), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=limits)
        if case["signal"]:
            begun = os.path.join(folder, words[words.index("-o") + 1] + ".partial")
            end = time.monotonic() + 30
            while not os.path.exists(begun) and p.poll() is None and time.monotonic() < end:
                time.sleep(0.002)
            p.send_signal(getattr(signal, "SIG" + case["signal"]))
        out, err = p.communicate(timeout=60)
        lines = [x.rstrip() for x in err.decode("utf-8", "replace").splitlines()]
        # what tells of progress is no part of an error
        return p.returncode, out, [x for x in lines if x.startswith("tegula:")]

    def case(self, case):
        """What the command did: (exit and status, lines of stderr)."""
        words = shlex.split(case["args"])
        as_json = len(words) > 1 and words[0] in ("info", "plan", "run", "preview", "verify", "copy", "inpaint", "version", "estimate")
        with tempfile.TemporaryDirectory() as tmp:
            folder = shutil.copytree(self.files, os.path.join(tmp, "files"))
            for b in case["before"]:
                self.prepare(shlex.split(b), folder)
            code, out, err = self.command(case, folder, as_json)
        for f in self.held:
            f.close()
        self.held = []
        status = re.findall(rb'"event":"error","status":"(\w+)"', out)
        return f"{code} {status[-1].decode() if status else 'TG_E_ARG'}", err


def accept(path, results):
    """Rewrite the exit and err lines where they are not what was found."""
    out, skip, it = [], False, iter(results)
    with open(path, encoding="utf-8") as f:
        for line in f.read().splitlines():
            word = line.partition(" ")[0]
            if word in ("exit", "err") and skip:
                continue
            if word == "$":
                case, code, err = next(it)
                keep = matches(case["err"], err)
                skip = True
                out += [line] + [f"exit {code}"] + [f"err {x}" for x in (case["err"] if keep else err)]
                continue
            out.append(line)
    with open(path, "w", encoding="utf-8") as f:
        f.write("\n".join(out) + "\n")


def cannot(case):
    """Why the case cannot be run here, or nothing."""
    if case["limit"] and "ASAN_OPTIONS" in os.environ:
        return "a sanitizer needs all of the address space"
    if case["device"] and not DEVICE:
        return "the tests' own device is not built"
    if case["process"] and "ASAN_OPTIONS" in os.environ:
        return "a sanitizer's process does not fit"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        return case["needs"] and case["needs"] not in f.read().split() and "another processor"


def run(runner, files, rewrite):
    failed = n = 0
    for path in files:
        results = []
        for case in read_cases(path):
            why = cannot(case)
            if why:
                print(f"{case['at']}: left out: {why}")
            exit_found, err = (case["exit"], case["err"]) if why else runner.case(case)
            results.append((case, exit_found, err))
            n += 1
            if not rewrite and (exit_found != case["exit"] or not matches(case["err"], err)):
                failed += 1
                print(f"{case['at']}: {case['args']}\n  exit {exit_found}, expected {case['exit']}")
                print("".join(f"  found    {x}\n" for x in err) + "".join(f"  expected {x}\n" for x in case["err"]), end="")
        if rewrite:
            accept(path, results)
    print(f"{n} cases, {failed} failed")
    return 1 if failed or not n else 0


# ---- The page ------------------------------------------------------------------------------------

HEAD = """# Errors: what they say, why, and what to do

Written from the cases in `tests/gallery/` and `tests/cli/errors.case` by `tests/gallery/gallery.py write`.
The test `gallery` runs each of them, so messages and exit codes are those of this version; `lint_gallery`
fails when this page is not what the cases say. \u2026 stands for what differs from machine to machine. The files
are made by the test; what matters of them is said. [exit-codes.md](exit-codes.md) has the codes alone,
[hostile.md](hostile.md) what some 130 damaged and malicious files are answered.

An error is one line on standard error that begins with `tegula:`, names the file and says what is wrong;
with `--json` also an `error` event on standard output. Lines with `warning` are no errors.

"""


def sentence(lines):
    return " ".join(lines)


def shell(case):
    lines = []
    for b in case["before"]:
        words = shlex.split(b)
        plain = [w for w in words if not w.startswith(("TEGULA_FAIL_", "TEGULA_SYNC_"))]
        if "tegula" in words:
            lines.append(f"$ {shlex.join(plain)}" + ("      # interrupted" if plain != words else ""))
    if case["limit"]:
        lines.append(f"$ ulimit -v {case['limit']}")
    env = [e for e in case["env"] if not e.startswith("TEGULA_FAIL_")]
    lines.append("$ " + " ".join(env + ["tegula", case["args"]]))
    return lines


def entry(case):
    code, status = case["exit"].split(" ")
    text = shell(case) + [x.replace("*", "\u2026") for x in case["err"]]
    out = "".join(f"    {x}\n" for x in text) + f"    (exit {code}, {status})\n\n"
    if case["given"]:
        out += f"*{case['given']}*\n\n"
    out += f"**Cause.** {sentence(case['cause'])}\n**Cure.** {sentence(case['cure'])}\n\n"
    if case["also"]:
        out += "Also: " + ", ".join("`" + x.replace("*", "\u2026") + "`" for x in case["also"]) + ".\n\n"
    return out


def readers():
    """Of every format and codec: (name, it was fuzzed at length, what its data end in: "sealed", "marked" or "")."""
    for text in sources(("io",)):
        for kind, body in re.findall(r"const (tgi_codec|tgi_source_ops) \w+ = \{([^;]*?)\};", text):
            name = re.search(r"\.(?:name|format) = \"(\w[^\"]*)\"", body)
            if name and name.group(1) not in ("stack", "frames"):  # what its files' readers are
                end = re.search(r"\.(sealed|marked) = true", body)
                yield name.group(1), "TGI_FUZZED," in body, end.group(1) if end else "", kind == "tgi_codec"


def by_libtiff():
    """Names of the codecs that the table of unpack_tiff.c makes."""
    with open(os.path.join(ROOT, "io", "unpack_tiff.c"), encoding="utf-8") as f:
        return re.findall(r"^BLOCKS\(\w+, \"([^\"]+)\"", f.read(), re.M)


def words(names):
    return ", ".join(sorted(set(names), key=str.lower))


def fuzzed_list():
    rows = [(n + " in TIFF" if codec else n, f, s, codec) for n, f, s, codec in readers()]
    fuzzed = {n for n, f, _, _ in rows if f}
    refused = {n for n, _, _, _ in rows if n not in fuzzed} | {n + " in TIFF" for n in by_libtiff()} | {"headers of videos"}
    return ("Read: " + words(fuzzed) + ". Refused: " + words(refused) + ". (As the sources of the readers say it.)\n\n")


def checksum_list():
    codecs = [(n, s) for n, _, s, codec in readers() if codec]
    sealed, marked = ({n for n, s in codecs if s == end} for end in ("sealed", "marked"))
    return ("Damage inside of pixels is seen where the compressed data end in a mark or a checksum: " + words(sealed) +
            ". Deflate has a checksum of its pixels always, zstd and LZMA where the writer put one: zstd that tegula writes has "
            "it, zstd and LZMA by libtiff have none, and a changed byte in them may go unseen. No row of a block counts before "
            "that mark: `--roi` and a small `--ram` see what reading all of it sees. The same holds for " + words(marked) +
            " where a changed byte makes a block longer or shorter than its pixels, as a third of them or more do; where it keeps the length, it goes unseen. Of the others, " +
            words(n for n, s in codecs if not s) + ", a changed byte may be a changed "
            "pixel and nothing else: no reader can tell. Keep checksums of such files beside them.\n\n")


BEHIND = {"Refusing what was fuzzed too little": fuzzed_list, "Reading damaged pixels": checksum_list}


def anchor(title):
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def document(cases):
    sections = list(dict.fromkeys(c["section"] for c in cases))
    text = HEAD + "".join(f"* [{s}](#{anchor(s)})\n" for s in sections) + "\n"
    for s in sections:
        text += f"## {s}\n\n" + "".join(entry(c) for c in cases if c["section"] == s)
        text += BEHIND.get(s, str)()
    return text.rstrip("\n") + "\n"


# ---- Rules ---------------------------------------------------------------------------------------

def sources(tops=("engine", "kernels", "io", "cli")):
    for top in tops:
        for folder, _, names in os.walk(os.path.join(ROOT, top)):
            for name in sorted(n for n in names if n.endswith(".c")):
                with open(os.path.join(folder, name), encoding="utf-8") as f:
                    yield f.read()


def statuses_returned():
    found = set()
    for text in sources():
        found.update(re.findall(r"(?:tgi|cli)_fail\(\s*[^;]*?\b(TG_E_[A-Z_]+)", text))
    return found


def hostile_messages():
    """(file, message) of every row of docs/reference/hostile.md that is refused."""
    with open(os.path.join(ROOT, "docs", "reference", "hostile.md"), encoding="utf-8") as f:
        for line in f:
            row = [x.strip() for x in re.split(r"(?<!\\)\|", line)][1:-1]
            if len(row) == 4 and re.match(r"[\d ]+$", row[2]):
                yield row[0], row[3].replace("\\|", "|")


def kinds(cases):
    """Globs of all messages that the gallery shows or names; file names do not matter."""
    shown = [x[len("tegula: "):] for c in cases for x in c["err"] if not x.startswith("tegula: see")]
    return [re.sub(r"\d+", "*", re.sub(r"^[\w./-]+: ", "*: ", x)) for x in shown] + [g for c in cases for g in c["also"]]


def check():
    cases, wrong = all_cases(), []
    for c in cases:
        wrong += [f"{c['at']}: no {k}" for k in ("section", "exit", "err", "cause", "cure") if not c[k]]
        wrong += [f"{c['at']}: exit {c['exit']}: a code and a status" for _ in [0] if not re.fullmatch(r"\d+ TG_E_\w+", c["exit"])]
    have = {c["exit"].split(" ")[-1] for c in cases}
    wrong += [f"no case ends in {s}" for s in sorted(statuses_returned() - have)]
    globs = kinds(cases)
    wrong += [f"docs/reference/hostile.md: {name}: no kind shown in the gallery: {text}" for name, text in hostile_messages()
              if not any(glob(g, text) for g in globs)]
    if not wrong:
        with open(DOC, encoding="utf-8") as f:
            if f.read() != document(cases):
                wrong.append("docs/reference/errors.md is not current: python3 tests/gallery/gallery.py write")
    print("\n".join(wrong + [f"{len(cases)} cases, {len(have)} statuses, {len(wrong)} problems"]))
    return 1 if wrong or not cases else 0


def main():
    words = [w for w in sys.argv[1:] if w != "--accept"]
    sys.path.insert(0, HERE)
    sys.dont_write_bytecode = True
    if words[0] == "check":
        return check()
    if words[0] == "write":
        with open(DOC, "w", encoding="utf-8") as f:
            f.write(document(all_cases()))
        return 0
    return run(Runner(words[1], words[2]), words[3:] or FILES, "--accept" in sys.argv)


if __name__ == "__main__":
    sys.exit(main())
