"""The checks that guard one allocator, one monitor, one printer and one type of sizes, the search for leaks, what is said of GPUs
and how files begin can fail: each violation planted here in a tree of its own is found at its line, and nothing else is.
"""
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))

# file -> lines; a line that ends in the mark is a violation
MARK = "/* WRONG */"
PLANTED = {
    "engine/exec/second_pool.c": [
        "void *a = malloc(10); /* WRONG */",
        "/* malloc(10) in a remark */ const char *s = \"free(p)\";",
        "void *b = tgi_malloc(TGI_TAG_MISC, 10);",
        "x.free(at); p->alloc(u, 1);",
        "void *c = mmap(NULL, n, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); /* WRONG */",
        "void *d = mmap(NULL, n, PROT_READ, MAP_SHARED, fd, 0);",
    ],
    "kernels/ops/op_own.c": ["float *t = aligned_alloc(64, n); /* WRONG */"],
    "cli/cmd_own.c": ["char *t = strdup(s); /* WRONG */"],
    "io/line.c": ["while (getline(&line, &cap, f) > 0) /* WRONG */"],
    "engine/base/mem.c": ["void *p = malloc(size);"],
    "engine/plan/second_monitor.c": [
        "FILE *f = fopen(\"/proc/meminfo\", \"r\"); /* WRONG */",
        "/* \"/proc/meminfo\" in a remark */",
        "snprintf(path, n, \"%s/sys/fs/cgroup/%s\", root, group); /* WRONG */",
        "read_number(group, \"memory.max\"); /* WRONG */",
        "tgi_fail(err, st, \"raise memory.max of that group\");",
        "tgi_fail(err, st, \"/proc/meminfo: cannot be read\");",
        "tgi_system_word(root, \"/proc/sys/vm/overcommit_memory\", word, sizeof word);",
        "readlink(\"/proc/self/exe\", out, cap);",
        "long pages = sysconf(_SC_AVPHYS_PAGES); /* WRONG */",
        "getrlimit(RLIMIT_AS, &l); /* WRONG */",
        "struct mallinfo2 m = mallinfo2(); /* WRONG */",
    ],
    "cli/cmd_gpus.c": [
        "void *h = dlopen(name, RTLD_NOW); /* WRONG */",
        "nvmlDeviceGetMemoryInfo(device, &m); /* WRONG */",
    ],
    "engine/own_log.c": [
        "const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666); /* WRONG */",
        "FILE *f = fopen(path, \"w\"); /* WRONG */",
        "FILE *f = fopen(path, \"re\");",
        "FILE *f = fdopen(fd, \"w\");",
        "rename(partial, path); /* WRONG */",
        "tgi_file_rename(partial, path, 1, err);",
        "const int fd = open(path, O_RDONLY | O_CLOEXEC);",
    ],
    "io/file_ops.c": ["f = open(path, O_RDWR | O_CREAT, 0666);"],
    "bench/own_peak.c": ["return (size_t)u.ru_maxrss; /* WRONG */"],
    "engine/memory/monitor.c": ["slurp(root, \"/proc/meminfo\", text, sizeof text);"],
    "io/own_units.c": [
        "tgi_fail(err, st, \"needs %zu MiB\", n >> 20); /* WRONG */",
        "tgi_fail(err, st, \"needs %.1f GB\", n / 1e9); /* WRONG */",
        "tgi_fail(err, st, \"give --ram %lluMiB\", n >> 20);",
        "tgi_fail(err, st, \"max(512 MiB, 10 %%)\");",
        "printf(\"%.2f MiB\", x); /* \"%zu MiB\" */",
    ],
    "include/own.h": [
        "    size_t memory_bytes; /* WRONG */",
        "    uint64_t peak_bytes; /* size_t bytes, in a remark */",
        "    size_t n; int64_t left_bytes;",
        "int take(void *user, size_t bytes); /* WRONG */",
    ],
    "docs/gpu.md": [
        "| kernel | last commit verified, on which GPU | figure |",
        "|---|---|---|",
        "| a | unverified | |",
        "| b | 0123abc, GPU 5, seen.jsonl | 5 |",
        "| c | 0123abc, GPU 5 | 5 | /* WRONG */",
        "| d | 0123abc, GPU 5, unseen.jsonl | 5 | /* WRONG */",
        "| e | 4567def, GPU 5, seen.jsonl | 5 | /* WRONG */",
        "| f | verified | | /* WRONG */",
        "| g | | | /* WRONG */",
        "| h | 0123abc, GPU 6, seen.jsonl | 5 | /* WRONG */",
        "| i | 123abcd, GPU 5, seen.jsonl | 5 | /* WRONG */",
        "| j | 0000000, GPU 5, seen.jsonl | 5 | /* WRONG */",
        "| k | 0123abc, GPU 5, processor.jsonl | 5 | /* WRONG */",
        "| l | 0123abc, GPU 5, changed.jsonl | 5 | /* WRONG */",
        "| m | 0123abc, GPU 5, nowhere.jsonl | 5 | /* WRONG */",
        "| n | GPU 5, 0123abc.jsonl | 5 | /* WRONG */",
        "",
        "| some | other table |",
        "| with | anything |",
    ],
    "bench/results/seen.jsonl": [
        '{"record": "gpu-check", "commit": "4444444+", "device": "GPU 5"}',
        '{"record": "gpu-check", "commit": "0123abcdef", "device": "GPU 5"}',
        '{"record": "bench", "commit": "4567def", "device": "GPU 5", "seconds": 0.00000001}',
    ],
    "bench/results/processor.jsonl": ['{"commit": "0123abcdef", "device": "GPU 5", "op": "Conv"}'],
    "bench/results/changed.jsonl": ['{"record": "gpu-check", "commit": "0123abcdef+", "device": "GPU 5"}'],
    "bench/results/nowhere.jsonl": ['{"record": "gpu-check", "commit": "0123abcdef"}', "GPU 5", "[]"],
    "bench/results/0123abc.jsonl": ['{"record": "gpu-check", "commit": "0123abcdef", "device": "GPU 5"}'],
    "tests/unit/test_forgets.c": ["int main(void) { return 0; }"],
    "tests/unit/test_looks.c": ["int main(void) { return TEST_END(); }"],
    "tests/fuzz/fuzz_looks.c": ["int LLVMFuzzerTestOneInput(const uint8_t *d, size_t n)",
                                "{ fuzz_check_leaks(); }"],
}
OPENINGS = {
    "engine/plan/says.c": ["/* says.c - what it is. */", "int x;"],
    "engine/plan/silent.c": ["#include \"a.h\" /* WRONG */", "/* silent.c - too late. */"],
    "kernels/other.c": ["/* says.c - another file. */ /* WRONG */"],
    "tests/unit/test_any.h": ["/* What it is, without a name. */"],
    "tests/unit/test_none.h": ["/* WRONG */"],
    "tests/unit/test_none.cc": ["int x; /* WRONG */"],
    "engine/plan/CMakeLists.txt": ["# What is built here.", "target_sources(a)"],
    "engine/exec/CMakeLists.txt": ["target_sources(a) /* WRONG */", "# Too late."],
    "cmake/silent.cmake": ["/* WRONG */"],
}
WHOLE_FILES = {"tests/unit/test_forgets.c"}  # found as a whole, without a line


def plant(root, planted):
    """Write the files; the places of the violations."""
    places = set()
    for path, lines in planted.items():
        os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as f:
            for i, line in enumerate(lines, 1):
                if line.endswith(MARK):
                    places.add(f"{path}:{i}")
                    line = line.removesuffix(MARK)
                f.write(line + "\n")
    return places


def as_planted(planted, whole_files, *checks):
    """Do these checks find these violations, and nothing else?"""
    with tempfile.TemporaryDirectory() as root:
        wanted = plant(root, planted) | whole_files
        done = subprocess.run([sys.executable, "-B", os.path.join(HERE, "house.py"), *checks], capture_output=True,
                              text=True, check=False, env={**os.environ, "TG_LINT_ROOT": root})
    found = {line.split(": ")[0] for line in done.stdout.splitlines() if "checked" not in line}
    for what, where in (("not found", wanted - found), ("found, and is right", found - wanted)):
        for w in sorted(where):
            print(f"{w}: {what}")
    print(f"{len(wanted)} violations planted, exit {done.returncode}")
    return found == wanted and done.returncode == 1


def main():
    good = as_planted(PLANTED, WHOLE_FILES, "allocators", "makers", "readers", "leaks", "sizes", "byte_types", "gpu_rows")
    return 0 if as_planted(OPENINGS, set(), "openings") and good else 1


if __name__ == "__main__":
    sys.exit(main())
