#!/usr/bin/env python3
"""TIFFs of others, read by tegula and by libtiff: are the pixels the same?

    libtiff_samples.py TEGULA FOLDER... [--all]     --all: a line for every file

Each image and level that the command finds in a file is copied to .npy and compared with the pages that libtiff
decodes: strips and tiles by TIFFReadEncodedStrip and -Tile, taken apart here; where the file holds YCbCr that is no
JPEG, or old JPEG in colours, libtiff's RGBA. What libtiff says while it decodes counts as a complaint. A file is

    equal               every page that the command delivers, and there is no other
    differs             some pixels do
    refused             by the command, although libtiff reads it without a complaint
    refused, complains  by the command, and libtiff complains of it but gives pixels
    both refuse
    only tegula reads

Equal, and what both refuse, is as it should be. Each other file needs its line in EXPECTED, and a line there has to
be true. Needs numpy and libtiff; without them: skipped (77)."""
import ctypes
import ctypes.util
import fnmatch
import json
import os
import sys
import tempfile

from tool import Tool

try:
    import numpy as np
except ImportError:
    np = None
    SYSTEM = "/usr/bin/python3"  # where a package of the distribution has it
    if __name__ == "__main__" and os.path.realpath(sys.executable) != os.path.realpath(SYSTEM) and os.path.exists(SYSTEM):
        os.execv(SYSTEM, [SYSTEM, "-B"] + sys.argv)

# (name of the file, what it is, why). The names are those of the test suites that the files come from.
DAMAGED = "refused, complains"
EXPECTED = [
    # damaged: libtiff goes on with rows of its own making, and we never end well then
    ("*_127.tif", DAMAGED, "a row is too long"),
    ("*crash-0da013a1*", DAMAGED, "a run leaves its row"),
    ("*crash-74d2a784*", DAMAGED, "the same"),
    # a chain that returns: libtiff stops where it does, we cannot know what was to come
    ("*loop*.tif*", "refused", "the chain of directories returns"),
    ("*flower-ycbcr44*", "differs", "libtiff takes the rows of 4 x 4 units for shorter ones: the last units are green"),
    # fax rows without a mark between them, of which libtiff 4.5 makes none
    ("*G3_Premature_EOL*", "only tegula reads", "a clean page"),
    ("testfax3_bug*", "only tegula reads", "the pixels are those of libtiff's own o-testfax3_bug*"),
    ("test_images_testfax3_bug*", "only tegula reads", "the same"),
]
# What libtiff says of every file of the kind.
NO_COMPLAINT = ("Deprecated and troublesome", "Old-style LZW", "Subsampling tag is not set")

MOST_BYTES = 1 << 29
SKIPPED = 77
TAGS = dict(subfile=(254, 32, 0), width=(256, 32, 0), height=(257, 32, 0), bits=(258, 16, 1), compression=(259, 16, 1),
            photometric=(262, 16, 1), orientation=(274, 16, 1), samples=(277, 16, 1), planar=(284, 16, 1),
            tile_w=(322, 32, 0), tile_h=(323, 32, 0), rows=(278, 32, 0), format=(339, 16, 1))
OLD_JPEG, JPEG, YCBCR, JPEG_COLOUR_MODE, SUBIFDS = 6, 7, 6, 65538, 330


# ---- libtiff


class Libtiff:
    """The functions of libtiff, and what it said since `said` was emptied."""

    def __init__(self):
        self.lib = ctypes.CDLL(ctypes.util.find_library("tiff") or "libtiff.so.6")
        pointer, size = ctypes.c_void_p, ctypes.c_ssize_t
        for name, result, words in (
                ("TIFFOpen", pointer, [ctypes.c_char_p, ctypes.c_char_p]),
                ("TIFFClose", None, [pointer]),
                ("TIFFReadDirectory", ctypes.c_int, [pointer]),
                ("TIFFSetSubDirectory", ctypes.c_int, [pointer, ctypes.c_uint64]),
                ("TIFFCurrentDirOffset", ctypes.c_uint64, [pointer]),
                ("TIFFNumberOfStrips", ctypes.c_uint32, [pointer]),
                ("TIFFNumberOfTiles", ctypes.c_uint32, [pointer]),
                ("TIFFStripSize64", ctypes.c_uint64, [pointer]),
                ("TIFFTileSize64", ctypes.c_uint64, [pointer]),
                ("TIFFVStripSize64", ctypes.c_uint64, [pointer, ctypes.c_uint32]),
                ("TIFFReadEncodedStrip", size, [pointer, ctypes.c_uint32, pointer, size]),
                ("TIFFReadEncodedTile", size, [pointer, ctypes.c_uint32, pointer, size]),
                ("TIFFReadRGBAImageOriented", ctypes.c_int,
                 [pointer, ctypes.c_uint32, ctypes.c_uint32, pointer, ctypes.c_int, ctypes.c_int])):
            function = getattr(self.lib, name)
            function.restype, function.argtypes = result, words
        self.said = []
        told = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, pointer)
        self.handler = told(self.hear)
        self.lib.TIFFSetErrorHandler(self.handler)
        self.lib.TIFFSetWarningHandler(self.handler)

    def hear(self, _, text, words):
        line = ctypes.create_string_buffer(300)
        ctypes.CDLL(None).vsnprintf(line, ctypes.c_size_t(len(line)), text, ctypes.c_void_p(words))
        if not line.value.decode("latin-1").startswith(NO_COMPLAINT):
            self.said.append(line.value.decode("latin-1"))


class Page:
    """Tags of the directory that a handle of libtiff stands at."""

    def __init__(self, tiff, handle):
        self.tiff, self.handle = tiff, handle
        for name, (tag, bits, default) in TAGS.items():
            value = (ctypes.c_uint16 if bits == 16 else ctypes.c_uint32)(default)
            tiff.lib.TIFFGetField(ctypes.c_void_p(handle), ctypes.c_uint32(tag), ctypes.byref(value))
            setattr(self, name, value.value)
        self.rgba = self.compression != JPEG and (
            self.photometric == YCBCR or (self.compression == OLD_JPEG and self.samples == 3))
        self.planar = self.planar == 2 and self.samples > 1 and not self.rgba
        self.offset = tiff.lib.TIFFCurrentDirOffset(handle)

    def subifds(self):
        count, places = ctypes.c_uint16(0), ctypes.POINTER(ctypes.c_uint64)()
        found = self.tiff.lib.TIFFGetField(ctypes.c_void_p(self.handle), ctypes.c_uint32(SUBIFDS),
                                           ctypes.byref(count), ctypes.byref(places))
        return [places[i] for i in range(count.value)] if found else []

    def kind(self):
        return self.width, self.height, self.bits, self.format, self.samples, self.planar, self.subfile & 5

    def pixels(self):
        """(array, complaints); the array is None where libtiff gives no pixels."""
        self.tiff.said.clear()
        if self.width * self.height * self.samples * max(self.bits, 8) // 8 > MOST_BYTES:
            return None, ["too large to be compared"]
        if self.compression == JPEG and self.photometric == YCBCR:
            self.tiff.lib.TIFFSetField(ctypes.c_void_p(self.handle), ctypes.c_uint32(JPEG_COLOUR_MODE), ctypes.c_int(1))
        a = self.rgb() if self.rgba else self.raw()
        return a, list(self.tiff.said)

    def rgb(self):
        words = np.zeros((self.height, self.width), np.uint32)
        done = self.tiff.lib.TIFFReadRGBAImageOriented(self.handle, self.width, self.height, words.ctypes.data,
                                                       self.orientation, 1)
        return np.stack([words >> s & 255 for s in (0, 8, 16)], -1).astype(np.uint8) if done else None

    def raw(self):
        """Samples as they are stored: planes, rows, columns, interleaved samples."""
        lib, t = self.tiff.lib, self.handle
        inner = 1 if self.planar else self.samples
        w = self.tile_w or self.width
        h = self.tile_h or min(self.rows or self.height, self.height)
        if not w or not h:
            return None
        across, down = -(-self.width // w), -(-self.height // h)
        n = lib.TIFFNumberOfTiles(t) if self.tile_w else lib.TIFFNumberOfStrips(t)
        planes = self.samples if self.planar else 1
        if n != across * down * planes:
            return None
        kind = type_of(self.format, self.bits)
        if kind is None:
            return None
        out = np.zeros((planes, self.height, self.width, inner), kind)
        for i in range(n):
            plane, y, x = i // (across * down), i // across % down * h, i % across * w
            rows = h if self.tile_w else min(h, self.height - y)
            size = lib.TIFFTileSize64(t) if self.tile_w else lib.TIFFVStripSize64(t, rows)
            if not 0 < size <= MOST_BYTES:
                return None
            block = np.zeros(size, np.uint8)
            read = lib.TIFFReadEncodedTile if self.tile_w else lib.TIFFReadEncodedStrip
            if read(t, i, block.ctypes.data, size) != size:
                return None
            part = samples_of(block, rows, w * inner, self.bits, self.format).reshape(rows, w, inner)
            part = part[:self.height - y, :self.width - x]
            out[plane, y:y + part.shape[0], x:x + part.shape[1]] = part
        return out


def type_of(number, bits):
    """As docs/reference/formats.md has it: the smallest type that holds the samples."""
    size = next((s for s in (8, 16, 32, 64) if bits <= s), None)
    if number == 3:
        return {16: np.float16, 24: np.float32, 32: np.float32, 64: np.float64}.get(bits)
    return size and np.dtype("%s%d" % ("int" if number == 2 else "uint", size))


def float24(v):
    """A sign, 7 bits of exponent, 16 of fraction (TIFF Technical Note 3)."""
    sign, exponent, fraction = v >> 23, (v >> 16 & 127).astype(np.int64), (v & 0xffff).astype(np.float64)
    normal = np.ldexp(1 + fraction / 65536, exponent - 63)
    value = np.where(exponent == 0, np.ldexp(fraction / 65536, -62), normal)
    value = np.where(exponent == 127, np.where(fraction == 0, np.inf, np.nan), value)
    return np.where(sign == 1, -value, value).astype(np.float32)


def samples_of(block, rows, per_row, bits, number):
    if bits in (8, 16, 32, 64):
        return block.view(type_of(number, bits)).reshape(rows, per_row)
    if bits == 24:
        b = block.reshape(-1, 3).astype(np.uint32)
        v = b[:, 0] | b[:, 1] << 8 | b[:, 2] << 16 if sys.byteorder == "little" else b[:, 2] | b[:, 1] << 8 | b[:, 0] << 16
        if number == 3:
            return float24(v)
    else:
        flags = np.unpackbits(block.reshape(rows, -1), axis=1)[:, :per_row * bits].reshape(-1, bits)
        v = np.zeros(len(flags), np.uint64)
        for k in range(bits):
            v = v << np.uint64(1) | flags[:, k]
    if number == 2:
        v = (v.astype(np.int64) ^ (1 << bits - 1)) - (1 << bits - 1)
    return v.astype(type_of(number, bits))


def pages_of(tiff, path):
    """Pages in the order of the file, each with its SubIFDs behind it; ([], complaints) where libtiff opens nothing.
    Yields (page, chain): decode before the next one is asked for."""
    handle = tiff.lib.TIFFOpen(os.fsencode(path), b"r")
    if not handle:
        return
    seen = set()
    try:
        while True:
            page = Page(tiff, handle)
            if page.offset in seen:
                break
            seen.add(page.offset)
            yield page
            subs = page.subifds()
            for place in subs:
                if tiff.lib.TIFFSetSubDirectory(handle, place):
                    yield Page(tiff, handle)
            if subs and not tiff.lib.TIFFSetSubDirectory(handle, page.offset):
                break
            if not tiff.lib.TIFFReadDirectory(handle):
                break
    finally:
        tiff.lib.TIFFClose(handle)


def groups_of(tiff, path):
    """[(kind, [arrays], complaints)] in order of appearance; None for a page without pixels."""
    groups = {}
    for page in pages_of(tiff, path):
        a, said = page.pixels()
        kept = groups.setdefault(page.kind(), ([], []))
        kept[0].append(a)
        kept[1].extend(said)
    return groups


# ---- tegula


def images_of(t, path, info):
    """The array of each image and level that the command delivers; a text where it refuses one."""
    counts = [x["levels"] for x in info.get("series_list", [])] or [len(info["levels"])]
    for series, level in ((s, n) for s, count in enumerate(counts) for n in range(count)):
        code, _, line = t.run("copy", path, "-o", "pixels.npy", "-q", "-y", "--series", str(series), "--level", str(level))
        yield line or t.errors.strip() if code else np.load(os.path.join(t.folder, "pixels.npy"))
        t.drop("pixels.npy")


def is_of(kind, shape):
    """Pages of this kind can be an array of that shape: axes ...YX, or ...YXS."""
    width, height, _, _, samples, planar, _ = kind
    if samples > 1 and not planar:
        return shape[-3:] == (height, width, samples)
    return shape[-2:] == (height, width)


def same(a, b):
    """a: what the command delivers, b: pages of libtiff."""
    if b.dtype.kind == "f":
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True)
    return (a.dtype == b.dtype or a.dtype == bool) and np.array_equal(a, b)


def difference(got, pages, ordered):
    """"" where they are the same."""
    size = pages[0].size
    if got.size % size or (got.size < size * len(pages)):
        return "%d samples, libtiff has %d in each of %d pages" % (got.size, size, len(pages))
    planes = got.reshape(-1, size)
    wrong = [i for i, page in enumerate(pages) if not same(planes[i], page.reshape(-1))]
    if wrong and not ordered:  # OME-XML says which page is which
        wrong = [i for i, page in enumerate(pages) if not any(same(p, page.reshape(-1)) for p in planes)]
    if not wrong:
        return ""
    a, b = planes[wrong[0]], pages[wrong[0]].reshape(-1)
    if a.dtype != b.dtype and a.dtype != bool:
        return "%s, libtiff %s" % (a.dtype, b.dtype)
    far = np.abs(a.astype(np.float64) - b.astype(np.float64))
    return "page %d: %d of %d samples, by %g at most" % (wrong[0], np.count_nonzero(far), far.size, far.max())


# ---- One file


def compare(t, tiff, path):
    """(state, what there is to say)."""
    groups = groups_of(tiff, path)
    readable = bool(groups) and all(a is not None for arrays, _ in groups.values() for a in arrays)
    first = next(iter(groups.values()))[0][0] is not None if groups else False
    said = [s for _, complaints in groups.values() for s in complaints]
    info = t.info(path)
    got = list(images_of(t, path, info)) if info else [t.reason(path)]
    refusals = [line for line in got if isinstance(line, str)]
    if refusals:
        why = refusals[0].replace(path + ": ", "")
        if not first:
            return "both refuse", why
        return ("refused" if readable and not said else "refused, complains"), why
    ordered, found = info["flavor"] not in ("ome", "OME"), 0
    for image in got:
        kinds = [k for k in groups if is_of(k, image.shape)]
        if not kinds:
            return "differs", "an image of %s that libtiff has not" % (image.shape,)
        arrays, complaints = groups.pop(kinds[0])
        found += 1
        if any(a is None for a in arrays):
            return "only tegula reads", (complaints + [""])[0]
        text = difference(image, arrays, ordered)
        if text:
            return "differs", text + (" (libtiff: %s)" % complaints[0] if complaints else "")
    if groups:
        return "differs", "left out: %s" % ", ".join("%d x %d" % k[:2] for k in groups)
    return "equal", "%d images" % found


def expected(path, state):
    """(as it should be, reason)."""
    for pattern, what, why in EXPECTED:
        if fnmatch.fnmatch(os.path.basename(path), pattern):
            return what == state, why if what == state else "EXPECTED says: %s" % what
    return state in ("equal", "both refuse"), ""


def files_in(folders):
    return [os.path.join(folder, name) for folder in folders for name in sorted(os.listdir(folder))
            if name.lower().endswith((".tif", ".tiff", ".svs"))]


def main():
    words = [w for w in sys.argv[1:] if w != "--all"]
    folders = [os.path.abspath(f) for f in words[1:] if os.path.isdir(f)]
    if np is None or not folders:
        print("skipped: %s" % ("no numpy" if np is None else "none of the folders is there"))
        return SKIPPED
    try:
        tiff = Libtiff()
    except OSError as e:
        print("skipped: %s" % e)
        return SKIPPED
    counts, wrong = {}, 0
    with tempfile.TemporaryDirectory(prefix="tegula-libtiff-") as folder:
        t = Tool(os.path.abspath(words[0]), folder)
        for path in files_in(folders):
            state, text = compare(t, tiff, path)
            good, why = expected(path, state)
            counts[state] = counts.get(state, 0) + 1
            wrong += not good
            if not good or "--all" in sys.argv:
                print("%s %s: %s: %s%s" % ("   " if good else "NOT", os.path.basename(path), state, text,
                                           " [%s]" % why if why else ""))
    print("%d files: %s; %d not as expected" % (sum(counts.values()), ", ".join(
        "%d %s" % (n, state) for state, n in sorted(counts.items(), key=lambda x: -x[1])), wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
