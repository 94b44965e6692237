"""What may include what: reads every #include line and fails on an edge that points upwards.

    cli  bench  tests
      tegula.h tegula_*.h
    engine: api > auto > verbs > estimate > job > inpaint > post > ends > out > exec > settings > device > plan > models > graph > draw
            > memory > base
    kernels (ops, cpu, cuda)      io
             engine/base

Foreign headers stay in one file each, the pair "pack" and "unpack" of a codec excepted.
"""
import os
import re
import sys

import tree

KERNEL_DOORS = {"kernels/op.h", "kernels/backend.h", "kernels/device.h", "kernels/reduce.h", "kernels/threads.h", "kernels/half.h", "kernels/pixels.h", "kernels/pixels_exact.h",
                "kernels/op_list.h", "kernels/granule.h"}

# Folders of engine/, lowest first: a file includes its own folder and those before it.
FLOORS = ("base", "memory", "draw", "graph", "models", "plan", "device", "settings", "exec", "out", "ends", "post", "inpaint", "job",
          "estimate", "verbs", "auto", "api")

# header pattern -> files that may include it (tests and benchmarks may include any)
FOREIGN = {
    r"tiff(io)?\.h": {"io/tiff_lib.h"},
    r"libxml/.*": {"io/ome_carry.c", "io/ome_xml.c"},
    r"j(peglib|error)\.h": {"io/jpeg_lib.h", "io/jpeg_lib.c"},
    r"lzma\.h": {"io/unpack_lzma.c"},
    r"webp/.*": {"io/unpack_webp.c"},
    r"cjson/.*": set(),  # the tests' second opinion
    r"png\.h": {"io/png_lib.h"},
    r"libdeflate\.h": {"io/unpack_zlib.c"},
    r"yaml\.h": {"io/yaml_tree.c"},
    r"zip\.h": {"io/zip_file.c"},
    r"zlib\.h": {"io/deflate.c", "io/unpack_zlib.c"},
    r"zstd(_errors)?\.h": {"io/zstd_codec.c", "io/unpack_zstd.c"},
    r"libav.*/.*": {"io/av/av_bytes.c", "io/av/av_decode.c", "io/av/av_encode.c", "io/av/av_film.c", "io/av/av_film.h", "io/av/av_form.c", "io/av/av_form.h", "io/av/av_frames.c",
                    "io/av/av_frames.h", "io/av/av_heard.c", "io/av/av_heard.h", "io/av/av_input.c", "io/av/av_input.h", "io/av/av_join.c", "io/av/av_join.h", "io/av/av_join_tracks.c", "io/av/av_look.c", "io/av/av_look.h", "io/av/av_palette.h", "io/av/av_plugin.c", "io/av/av_sums.c", "io/av/av_tell.c"},
    r"nvml\.h": set(),  # opened at run time, declared by us
    r"(cuda|cublas).*": {"kernels/cuda/"},
    r"immintrin\.h": {"kernels/cpu/", "engine/base/sha256.c", "io/predictor.c"},
    r"(onednn/)?dnnl\.h": set(),
    r"sanitizer/asan_interface\.h": {"engine/base/pool_blocks.c"},
}

STANDARD = set("""
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdalign
stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath threads time uchar
wchar wctype
dirent dlfcn fcntl fnmatch ftw glob langinfo libgen malloc poll pthread pwd regex sched semaphore
strings sys/auxv sys/file sys/ioctl sys/mman sys/prctl sys/random sys/resource sys/select sys/socket sys/stat
sys/statvfs sys/syscall sys/time sys/types sys/uio sys/un sys/utsname sys/vfs sys/wait sysexits
termios unistd linux/falloc linux/fs linux/magic cpuid execinfo ucontext pty
""".split())

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)


# A public function stands at the beginning of a line of engine/api/; its body begins on a line of its own.
PUBLIC = re.compile(r"^(?!static)\w[\w \*]*?\b(tg_[a-z]\w*)\([^;{}]*\)\n\{", re.M)

SEES_ALL = ("tests/", "bench/", "tools/")


def resolve(path, name):
    """Our file that a quoted name means: from the root, from include/, or beside the file."""
    for base in ("", "include", os.path.dirname(path)):
        candidate = os.path.normpath(os.path.join(base, name))
        if os.path.isfile(os.path.join(tree.ROOT, candidate)):
            return candidate
    return None


def floor(path):
    """Height inside engine/; None: in no folder of it."""
    folder = path.split("/")[1]
    return FLOORS.index(folder) if folder in FLOORS else None


def is_public(target):
    return target.startswith("include/tegula")


def allowed(path, target):
    if is_public(target) or target.startswith("engine/base/"):
        return path.startswith(("engine/", "kernels/", "io/") + SEES_ALL) or (
            is_public(target) and path.startswith("cli/"))
    if path.startswith(SEES_ALL):
        return not target.startswith("cli/")
    if path.startswith("cli/"):
        return target.startswith("cli/")
    if path.startswith("engine/base/"):
        return False
    if path.startswith("kernels/cpu/") or path.startswith("kernels/cuda/"):
        own = path.rsplit("/", 1)[0] + "/"
        if path.startswith("kernels/cuda/") and target.startswith("tests/cuda/"):
            return True  # the emulated device, in builds with TG_CUDA_EMULATED only
        return target.startswith((own, "kernels/ops/")) or target in KERNEL_DOORS
    if path.startswith("kernels/"):
        return target.startswith("kernels/") and not target.startswith("kernels/cuda/")
    if path.startswith("io/"):
        return target.startswith("io/")
    if path.startswith("engine/"):
        if target.startswith("io/"):
            return True
        if target.startswith("kernels/"):
            return target in KERNEL_DOORS or target.startswith("kernels/ops/op_attrs")
        own, other = floor(path), floor(target) if target.startswith("engine/") else None
        return own is not None and other is not None and other <= own
    return False


def foreign_problem(path, name):
    if path.startswith(SEES_ALL):
        return None
    for pattern, owners in FOREIGN.items():
        if re.fullmatch(pattern, name):
            if any(path == o or (o.endswith("/") and path.startswith(o)) for o in owners):
                return None
            where = ", ".join(sorted(owners)) or "tests and benchmarks"
            return f"<{name}> belongs to {where}"
    if name.endswith(".h") and name[:-2] in STANDARD:
        return None
    if path.startswith(("kernels/cuda/",)):
        return None
    return f"<{name}> is in no list of tests/lint/layers.py"


def problems_of(path):
    for bracket, name in INCLUDE.findall(tree.text(path)):
        if bracket == "<":
            if re.fullmatch(r"tegula(_\w+)?\.h", name):
                continue
            problem = foreign_problem(path, name)
            if problem:
                yield f"{path}: {problem}"
            continue
        target = resolve(path, name)
        if target is None:
            yield f'{path}: "{name}" is no file of this tree'
        elif not allowed(path, target):
            yield f"{path}: may not include {target}"


def public_elsewhere(path):
    if path.startswith(("engine/", "io/", "kernels/", "cli/")) and not path.startswith("engine/api/"):
        for name in PUBLIC.findall(tree.text(path)):
            yield f"{path}: {name} is a public name; public functions are in engine/api/"


def main():
    found = []
    files = tree.files(tree.C_ENDINGS)
    for path in files:
        found.extend(problems_of(path))
        found.extend(public_elsewhere(path))
    return tree.finish("layers", found, len(files))


if __name__ == "__main__":
    sys.exit(main())
