#!/usr/bin/env python3
"""What a file says of itself is read before anything is planned: a long text, too, stays inside --ram, or is refused before it is read.

    texts.py TEGULA"""
import os
import re
import struct
import sys
import tempfile

import watch

W, H = 40, 48
ROI = ('<ROI ID="ROI:%d"><Union><Rectangle ID="Shape:%d" X="%d" Y="3" Width="4" Height="5"/></Union></ROI>')


def ome(path, regions):
    """An OME-TIFF of one plane with so many regions of interest; the bytes of its text."""
    text = ('<?xml version="1.0" encoding="UTF-8"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06"><Image ID="Image:0"><Pixels ID="Pixels:0" '
            'DimensionOrder="XYCZT" Type="uint8" SizeX="%d" SizeY="%d" SizeC="1" SizeZ="1" SizeT="1"><Channel ID="Channel:0:0"/><TiffData/></Pixels>%s</Image>%s</OME>'
            % (W, H, "".join('<ROIRef ID="ROI:%d"/>' % i for i in range(regions)), "".join(ROI % (i, i, i % 30) for i in range(regions)))).encode() + b"\0"
    entries = [(256, 3, 1, W), (257, 3, 1, H), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (270, 2, len(text), 8), (273, 4, 1, 8 + len(text)),
               (277, 3, 1, 1), (278, 3, 1, H), (279, 4, 1, W * H)]
    with open(path, "wb") as f:
        f.write(struct.pack("<2sHI", b"II", 42, 8 + len(text) + W * H) + text + bytes(range(W)) * H)
        f.write(struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *e) for e in entries) + bytes(4))
    return len(text)


def main():
    tegula, wrong, refused, done = sys.argv[1], 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "in.ome.tif"), os.path.join(folder, "out.ome.tif")
        n = ome(path, 60000)
        for mib in (4, 8, 12, 16, 24, 32, 48, 64):
            r = watch.run([tegula, "copy", path, "-o", out, "-y", "--ram", f"{mib}MiB"])
            print(f"{n / 2**20:.1f} MiB of text in {mib} MiB: exit {r.code}, {r.peak / 2**20:.1f} MiB from outside")
            refused += r.code == 71
            done += r.code == 0
            wrong += r.code not in (0, 71) or r.peak > mib << 20 or (r.code == 71 and not re.search("--ram", r.stderr))
    wrong += not refused or not done
    print(f"{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
