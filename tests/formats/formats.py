#!/usr/bin/env python3
"""docs/reference/formats.md: what is read, written and carried over, found by running the command.

    formats.py TEGULA SHARED [--write]     compare with docs/reference/formats.md, or write its tables

The page is prose with tables between two marker lines each; the tables come from here: small files of
every compression, depth and kind are made and tried, every sample file is copied and its pixels compared
with their published sum, every sample network computes its published answers. Of no index more than 2 %
may be refused, and each refusal has its reason in the table. Without SHARED the tables of samples are
not compared. Standard library alone."""
import os
import sys
import tempfile

import made
import samples
from tool import Tool

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
DOC = os.path.join(ROOT, "docs", "reference", "formats.md")
BEGIN, END = "<!-- made: %s -->\n", "<!-- end -->\n"


def replace(text, name, table):
    """`text` with the lines between the markers of `name` replaced."""
    begin = BEGIN % name
    head, found, rest = text.partition(begin)
    if not found:
        sys.exit("docs/reference/formats.md has no line " + begin)
    _, found, tail = rest.partition(END)
    if not found:
        sys.exit("docs/reference/formats.md: nothing ends " + begin)
    return head + begin + "\n" + table + "\n" + END + tail


def first_difference(now, want):
    for x, y in zip(now.splitlines(), want.splitlines()):
        if x != y:
            return "docs/reference/formats.md says\n  %s\nand it is\n  %s" % (x, y)
    return "docs/reference/formats.md has more or fewer lines than were found"


def main():
    tegula, shared = os.path.abspath(sys.argv[1]), sys.argv[2]
    with open(DOC, encoding="utf-8") as f:
        now = f.read()
    want = now
    there = all(os.path.exists(os.path.join(shared, "data", kind, "index.csv")) for kind in ("models", "tiff"))
    with tempfile.TemporaryDirectory(prefix="tegula-formats-") as folder:
        t = Tool(tegula, folder)
        parts = made.tables(t)
        if there:
            parts += samples.tables(t, os.path.join(shared, "data"))
        for name, table in parts:
            want = replace(want, name, table)
    if "--write" in sys.argv:
        with open(DOC, "w", encoding="utf-8") as f:
            f.write(want)
    elif t.lacks_codecs:
        print("a build without all codecs: docs/reference/formats.md is not compared")
    elif want != now:
        print(first_difference(now, want))
        print("docs/reference/formats.md is not current: run tests/formats/formats.py TEGULA SHARED --write")
        t.failed += 1
    print("%d tables, %d commands, %d failures" % (len(parts), t.commands, t.failed))
    if not there:
        print("skipped: the sample data is not there; the rest ran")
    return 1 if t.failed else 0 if there else 77


if __name__ == "__main__":
    sys.exit(main())
