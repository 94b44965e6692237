"""The tiles of an output file: what --tile leaves of them, and that a refusal names the largest --tile that fits.

    file_tiles.py TEGULA SOURCE_DIR

Cells end on tiles of the file. So the side of these divides the side of a cell, and the file of --tile 1000 must not be
one of 16x16 pixels. Where no other side divides the cell, plan and run say so."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crash"))
from crashlib import check, main, picture  # noqa: E402

SAID = "16x16 pixels, slow to read: the cells of --tile, 976x976, end on tiles of the file"


def tile_of(lab, args, out):
    r = lab.run(["run"] + args + ["-o", out, "-y"])
    check(r.code == 0, "%s: %s" % (args, r))
    info = json.loads(lab.run(["info", out, "--json"]).out.splitlines()[0])
    pixels = out + ".npy"
    check(lab.run(["copy", out, "-o", pixels, "-y"]).code == 0, "no copy")
    with open(pixels, "rb") as f:
        return (info["block_height"], info["block_width"]), r.err, f.read()


def test_sides(lab, args):
    _, _, want = tile_of(lab, args, lab.path("auto.tif"))
    for asked, tile, small in (("512", (256, 256), False), ("1000", (144, 144), False), ("304", (304, 304), False),
                               ("1000x300", (144, 304), False), ("2000", (256, 256), False), ("976", (16, 16), True)):
        got, err, pixels = tile_of(lab, args + ["--tile", asked], lab.path("out.tif"))
        check(got == tile, "--tile %s: tiles of %s, not %s" % (asked, got, tile))
        check((SAID in err) == small, "--tile %s says: %s" % (asked, err))
        check(pixels == want, "--tile %s has other pixels" % asked)
    plan = lab.run(["plan"] + args + ["--tile", "976"]).out
    check(SAID in plan, "the plan: %s" % plan)


def test_largest(lab, args):
    """It is taken, and the next is not, also where the next has larger tiles of the file."""
    for ram in ("9MiB", "10MiB", "12MiB"):
        told = re.search(r"is --tile (\d+)", lab.run(["plan"] + args + ["--ram", ram, "--tile", "2048"]).err)
        check(told, "no tile is named with %s" % ram)
        side = int(told.group(1))
        codes = [lab.run(["plan"] + args + ["--ram", ram, "--tile", str(side + more)]).code for more in range(0, 160, 16)]
        check(codes == [0] + 9 * [71], "%s, --tile %d and more: %s" % (ram, side, codes))


def test_goes_on(lab, args):
    """What was begun in other tiles goes on in these."""
    out = lab.path("begun.tif")
    r = lab.run(["run"] + args + ["-o", out, "--tile", "256"], {"TEGULA_FAIL_IO": "40:kill"})
    check(r.code == -9 and os.path.exists(out + ".journal"), "not stopped: %s" % r)
    got, err, _ = tile_of(lab, args + ["--tile", "976"], out)
    check(got == (256, 256) and SAID not in err, "goes on in tiles of %s: %s" % (got, err))


def test(lab, rest):
    args = ["-m", lab.denoiser, picture(lab.path("image.tif"), 1300, 1100), "--threads", "2", "--exact"]
    test_sides(lab, args + ["--ram", "1GiB"])
    test_largest(lab, args)
    test_goes_on(lab, args + ["--ram", "1GiB"])


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
