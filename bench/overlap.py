"""How busy the network keeps the processor while files are read and written: the family `overlap`.

The command runs over an image that the page cache does not hold, uncompressed and zstd, into an
output of the same kind and type; its done event says where the bands' time went. `busy` is the
share of kernels in it; what it waited for and what it converted are kept as shares of the same time.
Codecs, checksums and the system's copies share the processors with the kernels, so `busy` ends where
they begin; `processors` is the share of all processors' time that anything of the command used: at 1
nothing but less work would be faster.
Networks: a U-Net, and two so small that the disk and the conversion of numbers show."""
import os
import struct

import lab

GRAY, RGB = ("unet2d_nuclei_broad", "fsrcnn_x2"), ("sci_low_light",)
CAUSES = {"reading": "stall_read_seconds", "writing": "stall_write_seconds", "converting": "convert_seconds"}


def chill(path):
    """Out of the page cache."""
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def copied(bench, source, target, kind):
    code, _, _, _, err = lab.run_process(
        [bench.program("cli/tegula"), "copy", source, "-o", target, "--compress", kind, "--yes"])
    if code != 0:
        raise lab.Failure(f"copy ended with {code}: {lab.last_words(err)}")


def write_rgb(gray_npy, target, side):
    """An uncompressed TIFF of three 8-bit samples, made of the bytes of 16-bit gray pixels."""
    with open(gray_npy, "rb") as f:
        data = f.read()[-2 * side * side:]
    pixels = bytearray(3 * side * side)
    pixels[0::3], pixels[1::3], pixels[2::3] = data[0::2], data[1::2], data[0::2]
    tags = [(256, 4, 1, side), (257, 4, 1, side), (258, 3, 3, 8), (259, 3, 1, 1), (262, 3, 1, 2), (273, 4, 1, 256),
            (277, 3, 1, 3), (278, 4, 1, side), (279, 4, 1, len(pixels))]
    bits = 8 + 2 + 12 * len(tags) + 4
    head = struct.pack("<2sHIH", b"II", 42, 8, len(tags))
    for tag, kind, count, value in tags:
        head += struct.pack("<HHII", tag, kind, count, bits if tag == 258 else value)
    head += struct.pack("<I3H", 0, 8, 8, 8)
    with open(target, "wb") as f:
        f.write(head.ljust(256, b"\0") + pixels)


def images(bench, gray):
    """(gray or rgb, none or zstd) -> path."""
    found = {}
    for kind in ("none", "zstd"):
        found["gray", kind] = bench.file(f"gray_{kind}.tif")
        if not os.path.exists(found["gray", kind]):
            copied(bench, gray, found["gray", kind], kind)
    found["rgb", "none"], found["rgb", "zstd"] = bench.file("rgb_none.tif"), bench.file("rgb_zstd.tif")
    if not os.path.exists(found["rgb", "zstd"]):
        array = bench.file("gray.npy")
        copied(bench, gray, array, "none")
        write_rgb(array, found["rgb", "none"], bench.args.side)
        lab.remove(array)
        copied(bench, found["rgb", "none"], found["rgb", "zstd"], "zstd")
    return found


def cold_run(bench, model, image, kind):
    """The done event."""
    out = bench.file("overlap_out.tif")
    lab.remove(out)
    chill(image)
    code, _, _, text, err = lab.run_process(
        [bench.program("cli/tegula"), "run", "-m", model, image, "-o", out, *bench.common(), "--json", "--yes",
         "--compress", kind, "--dtype", "same", "--normalize", "scale:1/65535"])
    lab.remove(out)
    if code != 0:
        raise lab.Failure(f"tegula ended with {code}: {lab.last_words(err)}")
    return lab.json_lines(text)[-1]


def row_of(bench, name, kind, runs):
    share = {cause: sum(r[key] for r in runs) / sum(r["bands_seconds"] for r in runs) for cause, key in CAUSES.items()}
    return {"family": "overlap", "case": f"{name}, {kind} in and out", "config": bench.config(),
            "tegula": {"busy": lab.summary([r["compute_seconds"] / r["bands_seconds"] for r in runs]),
                       "processors": lab.summary([r["processor_seconds"] / r["bands_seconds"] / bench.cores()
                                                  for r in runs]),
                       "share": share, "peak_rss_bytes": max(r["measured_peak_bytes"] for r in runs),
                       "megapixels_per_second": lab.summary([r["megapixels_per_second"] for r in runs])}}


def overlap(bench, gray, networks):
    """Rows; `gray` is the drawn image, `networks` names and paths."""
    paths = dict(networks)
    found = images(bench, gray)
    for name in GRAY + RGB:
        for kind in ("none", "zstd"):
            if name in paths and bench.wanted(name):
                image = found["rgb" if name in RGB else "gray", kind]
                yield row_of(bench, name, kind,
                             [cold_run(bench, paths[name], image, kind) for _ in range(bench.few_rounds())])
