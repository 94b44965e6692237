#!/usr/bin/env python3
"""OME-XML that takes many times of itself to be read: a small --ram refuses it (71), or holds it.

    long_texts.py TEGULA

What counts against --ram is looked at while the command runs, as fast as can be."""
import os
import struct
import subprocess
import sys
import tempfile

COUNTS = ("RssAnon", "RssShmem", "VmSwap", "VmPTE")
HEAD = b'<OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" ' \
       b'Type="uint8" SizeX="4" SizeY="4" SizeC="1" SizeZ="1" SizeT="1">'
TAIL = b"</Pixels></Image></OME>"
TEXTS = {
    "one comment": HEAD + b"<TiffData/><!--" + b"y" * (2 << 20) + b"-->" + TAIL,
    "one attribute": HEAD + b"<TiffData/></Pixels></Image><StructuredAnnotations><XMLAnnotation><Value a='" + b"y" * (2 << 20)
                     + b"'/></XMLAnnotation></StructuredAnnotations></OME>",
    "channels": HEAD + b'<Channel a=""/>' * 65000 + b"<TiffData/>" + TAIL,
    "points": HEAD + b'<TiffData/></Pixels></Image><ROI ID="R"><Union><Polygon Points="' + b"1,1 " * 500000 + b'"/></Union></ROI></OME>',
    "TiffData": HEAD + b"<TiffData/>" * 200000 + TAIL,
}


def tiff(text):
    text += b"\0"
    pixels, said = 8, 24
    at = said + len(text) + len(text) % 2
    tags = [(256, 4, 1, 4), (257, 4, 1, 4), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (270, 2, len(text), said), (273, 4, 1, pixels),
            (277, 3, 1, 1), (278, 4, 1, 4), (279, 4, 1, 16)]
    return struct.pack("<2sHI", b"II", 42, at) + bytes(16) + text.ljust(at - said, b"\0") + struct.pack("<H", len(tags)) \
        + b"".join(struct.pack("<HHII", *t) for t in tags) + bytes(4)


def held(pid):
    """Bytes that count against the budget; 0: the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return sum(int(v.split()[0]) << 10 for k, _, v in (line.partition(":") for line in f) if k in COUNTS)
    except (OSError, ValueError):
        return 0


def main(tegula):
    env = {k: v for k, v in os.environ.items() if not k.startswith("TEGULA_")}
    bad, held_by_all = [], 0
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "a.ome.tif"), os.path.join(folder, "out.ome.tif")
        for name, text in TEXTS.items():
            with open(path, "wb") as f:
                f.write(tiff(text))
            for ram in (8, 24):
                p = subprocess.Popen([tegula, "copy", path, "-o", out, "-y", "--ram", f"{ram}MiB"], env=env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                most = 0
                while p.poll() is None:
                    most = max(most, held(p.pid))
                held_by_all += p.returncode == 0
                print(f"{name}, --ram {ram}MiB: exit {p.returncode}, {most / (1 << 20):.1f} MiB")
                if p.returncode not in (0, 65, 71) or most > ram << 20:
                    bad.append(name)
    if not held_by_all:
        bad.append("nothing was copied")
    print("FAILED: " + ", ".join(bad) if bad else "ok")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
