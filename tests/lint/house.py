"""Small rules of the house: base names are unique, every operator has cases, nothing grows
without end, no file knows the machine it was written on, nobody but the pool asks the system for
memory, nobody but the monitor asks it about memory, every test program looks for leaks, sizes have one printer
and, in the API, one type, what docs/gpu.md says was seen on a GPU has its results, every file of C and of CMake begins by saying what it is.

A function longer than 100 lines or a file longer than 800 is reported; 150 and 900 fail.
"""
import json
import os
import re
import sys

import tree

FUNCTION_WARN, FUNCTION_FAIL = 100, 150
FILE_WARN, FILE_FAIL = 800, 900
CODE = ("engine/", "kernels/", "io/", "cli/", "include/", "tests/", "bench/", "tools/")
REPEATED_NAMES = {"CMakeLists.txt", "README.md", "__init__.py"}

# Split words, so that this file does not find itself.
PLACES = [r"(?<![\w.])/ro" + r"ot/", r"(?<![\w.])/ho" + r"me/", r"(?<![\w./])/wo" + r"rk/",
          r"/tmp/(ve" + r"nv|bu" + r"ild)", r"\bpy" + r"pi\.", r"python" + r"hosted",
          r"deb\.deb" + r"ian", r"archive\.ubu" + r"ntu", r"registry\.np" + r"mjs",
          r"conda\.an" + r"aconda", r"proxy\.gol" + r"ang", r"\bcrates" + r"\.io"]
TEXT = (".c", ".h", ".cu", ".cuh", ".cc", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".in", ".case",
        ".1")


def names():
    seen = {}
    for path in tree.files():
        name = os.path.basename(path)
        if not path.startswith(CODE) or name in REPEATED_NAMES or name.startswith("."):
            continue
        if re.match(r"tests/abi/[0-9a-f]{7}/", path):  # the headers of before
            continue
        if path.endswith(tree.C_ENDINGS + (".py",)):
            seen.setdefault(name, []).append(path)
    return [f"same base name: {', '.join(p)}" for p in seen.values() if len(p) > 1], len(seen)


def cases():
    ops = re.findall(r"^TG_OP\((\w+)\)", tree.text("kernels/op_list.h"), flags=re.M)
    found = [f"operator {op} has no tests/cases/{op}.case" for op in ops
             if not os.path.isfile(os.path.join(tree.ROOT, "tests", "cases", f"{op}.case"))]
    if ops != sorted(ops):
        found.append("kernels/op_list.h is not in alphabetical order")
    return found, len(ops)


def functions(lines):
    """(name, length) of each function: its braces stand alone at the left margin."""
    start = None
    for i, line in enumerate(lines):
        if line == "{":
            start = i
        elif line == "}" and start is not None:
            head = " ".join(lines[max(0, start - 6):start])
            words = re.findall(r"(\w+)\s*\(", head.split(";")[-1].split("}")[-1])
            yield (words[0] if words else "?"), i - start + 1
            start = None


# Every file of C or CMake begins with a comment that says what it is; C of the product, by its own name.
def openings():
    found, n = [], 0
    for path in tree.files(tree.C_ENDINGS):
        n += 1
        text, name = tree.text(path), os.path.basename(path)
        begin = text.split("*/", 1)[0]
        if not text.startswith("/*"):
            found.append(f"{path}:1: does not begin with a comment that says what it is")
        elif path.startswith(PRODUCT) and name not in begin:
            found.append(f"{path}:1: its first comment does not name {name}")
    for path in tree.files(("CMakeLists.txt", ".cmake")):
        n += 1
        if not re.match(r"# \S", tree.text(path)):
            found.append(f"{path}:1: does not begin with a comment that says what is built there")
    return found, n


def lengths():
    found, n = [], 0
    for path in tree.files(tree.C_ENDINGS):
        lines = tree.text(path).split("\n")
        sizes = [(f"{path}: {name}()", size, FUNCTION_WARN, FUNCTION_FAIL)
                 for name, size in functions(lines)]
        sizes.append((path, len(lines) - 1, FILE_WARN, FILE_FAIL))
        n += len(sizes)
        for what, size, warn, fail in sizes:
            if size > fail:
                found.append(f"{what} has {size} lines, the end is {fail}")
            elif size > warn:
                print(f"note: {what} has {size} lines")
    return found, n


def places():
    found, n = [], 0
    pattern = re.compile("|".join(PLACES), re.I)
    for path in tree.files():
        if not path.endswith(TEXT) and "." in os.path.basename(path)[1:]:
            continue
        n += 1
        for i, line in enumerate(tree.text(path).split("\n"), 1):
            hit = pattern.search(line)
            if hit:
                found.append(f"{path}:{i}: names a place: {hit.group(0)}")
    return found, n


# One allocator: who may ask the system for memory, and for what.
ALLOCATES = re.compile(r"(?<![\w.>])(malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|"
                       r"memalign|strdup|strndup|asprintf|vasprintf|getline|sbrk|brk|mremap)\s*\(|"
                       r"\bMAP_ANON(YMOUS)?\b|(?<![\w.>])alloca\s*\(")
ALLOCATORS = {
    "engine/base/mem.c",        # small blocks of the pool "engine"
    "engine/base/raw_pages.c",  # pages for pools, and the pools' own books
}
COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.S)


def blank(m):
    return re.sub(r"[^\n]", " ", m.group(0))


def sweep(folders, excepted, readable, pattern, complaint, unless=()):
    """Lines of C below `folders` that `pattern` is found in, but for excepted files and lines.
    `readable` says what of comments and strings is looked at."""
    found, n = [], 0
    for path in tree.files(tree.C_ENDINGS):
        if not path.startswith(folders):
            continue
        n += 1
        if path in excepted:
            continue
        for i, line in enumerate(COMMENTS.sub(readable, tree.text(path)).split("\n"), 1):
            hit = pattern.search(line)
            if hit and not any(re.search(p, line) for p in unless):
                found.append(f"{path}:{i}: {hit.group(0).strip()}: {complaint}")
    return found, n


PRODUCT = ("engine/", "kernels/", "io/", "include/", "cli/")


def allocators():
    return sweep(PRODUCT, ALLOCATORS, blank, ALLOCATES, "memory comes from tgi_malloc or a pool")


# One monitor: who may read what the system knows about memory. Paths are strings, so these stay.
READS = re.compile(r"\"(%s)?(/proc/|/sys/fs/cgroup|/sys/devices/system/)[^ \"\n]*\"|"
                   r"\"memory\.(max|high|current|stat|usage_in_bytes|limit_in_bytes)\"|libnvidia-ml|"
                   r"\bnvml[A-Z]\w*|\b(sysinfo|mallinfo2?|malloc_info|dlopen)\s*\(|\bru_maxrss\b|"
                   r"\bRLIMIT_(AS|DATA)\b|\b_SC_(AV)?PHYS_PAGES\b")
MONITOR = {
    "engine/memory/monitor.c",          # what changes: this process, the machine, groups, limits
    "engine/memory/monitor_machine.c",  # what does not: processors, caches, filesystems
    "engine/memory/monitor_nvml.c",     # GPUs
    "engine/device/plugin.c",           # opens plugins, reads nothing
    "io/av/av_open.c",                  # opens the plugin for films, reads nothing
    "io/zip_file.c",                    # opens libzip, reads nothing
    "kernels/cuda/cu_library.cu",       # opens cuBLASLt, reads nothing
    "kernels/cuda/cu_modules.cu",       # asks for the driver's library, which is open
}
# Lines that name such a path and read nothing about memory themselves, with the reason.
NO_READERS = (r"\btgi_system_word\s*\(",  # the monitor reads it
              r"\"/proc/self/exe\"",     # where the program lies
              r"\"/proc/self/fd/\"")     # descriptors by name


# One gate: who may make, empty or replace a file. Everything else asks these (engine/out/gate.h).
MAKES = re.compile(r"\bO_(CREAT|TRUNC|TMPFILE)\b|\b(creat|mkostemps?|mkstemps?|link|linkat|symlink|freopen)\s*\(|"
                   r"(?<![\w.>])fopen\s*\([^;]*\"[wa]|(?<![\w.>])rename(at2?)?\s*\(")
MAKERS = {
    "io/file_ops.c",                      # files that take another's place: no links, no devices
    "io/side_file.c",                     # what is written through: logs, traces, pipes
    "engine/verbs/calibrate_pipeline.c",  # inside a folder that it has made for itself
    "engine/ends/tensor_out.c",           # arrays, in OUT.partial
    "engine/job/copy_npy.c",            # the same
    "io/npy.c",                           # the same
}


def makers():
    return sweep(("engine/", "io/", "cli/"), MAKERS, keep_strings, MAKES,
                 "files are made by io/file_ops.h and io/side_file.h, behind the gate (engine/out/gate.h)")


def keep_strings(m):
    return m.group(0) if m.group(0)[0] == '"' else blank(m)


def readers():
    return sweep(PRODUCT + ("bench/", "tools/"), MONITOR, keep_strings, READS,
                 "what the system knows about memory, the monitor says (engine/memory/monitor.h)", NO_READERS)


# Every test program ends by listing blocks in use (TEST_END), every fuzz target each input.
ENDS = re.compile(r"\bTEST_END\(\)|\bfuzz_check_leaks\(\)|\bfuzz_image\.h|"
                  r"\bmem\.live_blocks\b")
NO_BLOCKS = {
    "tests/fuzz/replay.c",     # its targets look after each input
    "tests/cli/fake_engine.c", # no program of its own
    "tests/unit/fake_nvml.c", "tests/unit/fake_plugin.c",
    "tests/abi/program.c", "tests/abi/shapes.c",  # built with the public headers alone
    "tests/film/canvas_masks.c",  # it takes none
    "tests/film/film_raw.c",   # its output is frames, its plugin has an allocator of its own
}


def leaks():
    found, n = [], 0
    for path in tree.files((".c",)):
        text = tree.text(path)
        if not path.startswith("tests/") or path in NO_BLOCKS or \
                not re.search(r"^int (main|LLVMFuzzerTestOneInput)\(", text, re.M):
            continue
        n += 1
        if not ENDS.search(text):
            found.append(f"{path}: does not look for leaks: end main with return TEST_END()")
    return found, n


# One printer of sizes (tg_size_text): two decimals, units of 1024. Without a space it is an option's value.
BY_HAND = re.compile(r"%(?!\.2f)[-0-9.*]*(?:hh|h|ll|l|z|j)?[diufgeE] [KMGT]i?B\b")
SIZES = {"engine/base/size.c", "engine/estimate/gpu_choice.c"}  # the printer; sizes that memory is sold in


def sizes():
    found, n = [], 0
    for path in tree.files(tree.C_ENDINGS):
        if not path.startswith(("engine/", "kernels/", "io/", "include/", "cli/")) or path in SIZES:
            continue
        n += 1
        for i, line in enumerate(COMMENTS.sub(keep_strings, tree.text(path)).split("\n"), 1):
            hit = BY_HAND.search(line)
            if hit:
                found.append(f"{path}:{i}: {hit.group(0)}: sizes are printed by tg_size_text")
    return found, n


# Bytes are uint64_t in the public headers (include/tegula.h, RULES).
OF_BYTES = re.compile(r"\b(size_t|u?int|long|unsigned|uint32_t)\s+\**\w*bytes\b")


def byte_types():
    return sweep(("include/",), set(), blank, OF_BYTES, "sizes of the API are uint64_t")


# What was seen on a GPU (docs/gpu.md): whoever says so names commit, GPU and results, and scripts/gpu-check wrote
# those: of that commit with nothing changed beside it ("+"), on that GPU.
RESULTS_NAME = re.compile(r"\b[\w.-]+\.jsonl\b")
COMMIT = re.compile(r"\b[0-9a-f]{7,40}\b")


def gpu_checks(path):
    """Commit and device of what scripts/gpu-check began in a results file."""
    for line in tree.text(path).splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict) and row.get("record") == "gpu-check":
            yield str(row.get("commit", "")), str(row.get("device", ""))


def gpu_row_problem(cell):
    """Why the cell "last commit verified, on which GPU" may not stand; None when it may."""
    if cell == "unverified":
        return None
    name = RESULTS_NAME.search(cell)
    commit = COMMIT.search(RESULTS_NAME.sub(" ", cell))
    if not name or not commit:
        return "names no commit and results file (or say: unverified)"
    path = os.path.join("bench", "results", name.group(0))
    if not os.path.isfile(os.path.join(tree.ROOT, path)):
        return f"{path} is not there"
    for of, device in gpu_checks(path):
        if of.startswith(commit.group(0)) and not of.endswith("+") and device and device in cell:
            return None
    return f"{path} has no gpu-check of {commit.group(0)}, unchanged, on the GPU named here"


def gpu_rows():
    found, n, column = [], 0, None
    if not os.path.isfile(os.path.join(tree.ROOT, "docs", "gpu.md")):
        return ["docs/gpu.md is not there"], 1
    for i, line in enumerate(tree.text("docs/gpu.md").split("\n"), 1):
        cells = [c.strip() for c in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            column = None
        elif "verified" in line and column is None and len(cells) > 1:
            column = next(k for k, c in enumerate(cells) if "verified" in c)
        elif column is not None and set(line) - set("|-: "):
            n += 1
            problem = gpu_row_problem(cells[column] if column < len(cells) else "")
            if problem:
                found.append(f"docs/gpu.md:{i}: {cells[0][:60]}: {problem}")
    return found, n


CHECKS = {"names": names, "cases": cases, "openings": openings, "lengths": lengths, "places": places,
          "allocators": allocators, "makers": makers, "readers": readers, "leaks": leaks,
          "sizes": sizes, "byte_types": byte_types, "gpu_rows": gpu_rows}


def main():
    worst = 0
    for name in sys.argv[1:] or CHECKS:
        found, checked = CHECKS[name]()
        worst |= tree.finish(name, found, checked)
    return worst


if __name__ == "__main__":
    sys.exit(main())
