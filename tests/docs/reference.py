#!/usr/bin/env python3
"""docs/reference/options.md and docs/reference/api.md: what the program and the headers say, as pages.

    reference.py check TEGULA     both pages are what is said now, and every function has a comment
    reference.py write TEGULA     write them

The options come from `tegula help --man`, which the option table makes. The functions come from the
public headers: each section, and of each function and type the first sentence of its comment with a link
to its line. Standard library only."""
import os
import re
import subprocess
import sys

ROOT = os.environ.get("TG_LINT_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = os.path.join(ROOT, "docs", "reference")
HEADERS = ("tegula.h", "tegula_array.h", "tegula_memory.h", "tegula_preset.h", "tegula_estimate.h", "tegula_tracker.h", "tegula_pool.h",
           "tegula_trace.h")
RENEW = "python3 tests/docs/reference.py write BUILD/cli/tegula"


# ---- Options -------------------------------------------------------------------------------------

def plain(text):
    """A line of troff as text."""
    return text.replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")


def parts(manual):
    """{section: [(spelling, lines behind it)]} of the manual page."""
    found, section = {}, ""
    for line in manual.splitlines():
        word, _, rest = line.partition(" ")
        if word == ".SH":
            section = rest
        elif word == ".B":
            found.setdefault(section, []).append((plain(rest), []))
        elif not line.startswith(".") and found.get(section):
            found[section][-1][1].append(plain(line))
    return found


def marked(text):
    """Text as Markdown that shows it as it is."""
    return re.sub(r"([\\*_<|`])", r"\\\1", text)


def options_page(manual):
    said = parts(manual)
    rows = []  # (name, spelling, sentence, verbs)
    for spelling, lines in said["OPTIONS"]:
        name = re.search(r"--[\w-]+", spelling).group(0)
        rows.append((name, spelling, " ".join(lines[:-1]), re.fullmatch(r"Verbs: (.*)\.", lines[-1]).group(1).split()))
    text = ("# Options of every verb\n\n"
            f"Written by `tests/docs/reference.py` from `tegula help --man`; the test `docs_reference` fails when this page is not what\n"
            f"the program says. Renew it with `{RENEW}`.\n\n"
            "The long names, without the dashes, are also the keys of [job files](json.md#job-files) and of [presets](presets.md).\n"
            "A size has a unit (`1GiB`, `800MiB`), and so has a time (`500ms`, `2s`).\n\n## Verbs\n\n")
    synopses = {s.removeprefix("tegula "): " ".join(lines) for s, lines in said["SYNOPSIS"]}
    for verb, lines in said["DESCRIPTION"]:
        links = [f"[{name}](#{name})" for name, _, _, verbs in rows if verb in verbs]
        text += f"### tegula {verb}\n\n    tegula {verb} {synopses[verb]}".rstrip() + "\n\n" + marked(" ".join(lines)) + "\n\n"
        text += f"Options: {', '.join(links)}.\n\n" if links else ""
    text += "## Options\n\n"
    for name, spelling, sentence, verbs in rows:
        text += f"### {name}\n\n`{spelling}`: {marked(sentence)}\n\n*Verbs: {', '.join(verbs)}.*\n\n"
    return text.rstrip("\n") + "\n"


# ---- Functions -----------------------------------------------------------------------------------

SECTION = re.compile(r"^/\* ---- (.+?) -*( \*/)?$")
NAME = re.compile(r"^TG_API\b[^(;]*?\b(tg_\w+)\(|^typedef [^(;]*\(\*(tg_\w+)\)\(|^typedef (?:struct|enum) (\w+)\b|"
                  r"^static inline [^(;]*?\b(tg_\w+)\(|"
                  r"^#define (TG_\w+)\(")
FUNCTION = re.compile(r"^(TG_API|static inline)\b")


def sentence(comment):
    """The first sentence of a comment."""
    lines = [re.sub(r"^ ?\* ?", "", x).strip() for x in re.sub(r"^/\*\*?|\*/$", "", comment.strip()).strip().splitlines()]
    text = " ".join(lines).split("  ")[0]  # an empty line ends it, too
    return re.split(r"(?<=[\w)\]\"'`]\.) (?=[A-Z0-9\"`*(])|(?:^| )(?=@\w)", text)[0].strip().rstrip(".:")


def items(text):
    """(line number, "section" or name, first sentence, is a function) of a header, in order. A sentence says where only
    the comment calls the one thing experimental."""
    lines, i, comment = text.split("\n"), 0, ""
    while i < len(lines):
        line, at = lines[i], i + 1
        if line.startswith("TG_API") and "(" not in line:  # the name stands in the next line
            line += " " + lines[i + 1]
        if SECTION.match(line):
            yield at, "section", SECTION.match(line).group(1), False
            comment = ""
        elif line.startswith("/*"):
            begin = i
            while "*/" not in lines[i]:
                i += 1
            comment = "\n".join(lines[begin:i + 1]) if line.startswith("/**") else ""
        elif NAME.match(line):
            first = sentence(comment)
            first += " (experimental)" if first and "EXPERIMENTAL" in comment else ""
            yield at, next(g for g in NAME.match(line).groups() if g), first, bool(FUNCTION.match(line))
            comment = ""
        else:
            comment = ""
        i += 1


def header(name):
    with open(os.path.join(ROOT, "include", name), encoding="utf-8") as f:
        return f.read()


def api_page(problems):
    text = ("# The library, function by function\n\n"
            "Written by `tests/docs/reference.py` from the comments of the public headers; the test `docs_reference` fails when this page\n"
            f"is not what they say. Renew it with `{RENEW}`.\n\nEach name leads to its line, where arguments, units, ownership "
            "and errors stand. [A C program](../howto/c-program.md) shows the calls in their order.\n")
    for name in HEADERS:
        said = header(name)
        about = sentence(re.match(r"/\*\n( \*.*\n)", said).group(1))
        front = said.partition("*/")[0]
        text += f"\n## {name}\n\n" + about.partition(" - ")[2][:1].upper() + about.partition(" - ")[2][1:] + ".\n"
        text += "Experimental: it may change from version to version.\n" if "EXPERIMENTAL" in front else ""
        gap = "\n"
        for at, what, first, function in items(said):
            if what == "section":
                text += f"\n### {first}\n"
                gap = "\n"
                continue
            if function and not first:
                problems.append(f"include/{name}:{at}: {what} has no comment")
            if not first:
                continue
            text += f"{gap}* [`{what}`](../../include/{name}#L{at}): {first}\n"
            gap = ""
    return text


def main():
    problems = []
    manual = subprocess.run([sys.argv[2], "help", "--man"], capture_output=True, text=True, check=True).stdout
    pages = (("options.md", options_page(manual)), ("api.md", api_page(problems)))
    for name, text in pages:
        path = os.path.join(PAGES, name)
        if sys.argv[1] == "write":
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        else:
            with open(path, encoding="utf-8") as f:
                if f.read() != text:
                    problems.append(f"docs/reference/{name} is not current: {RENEW}")
    print("\n".join(problems + [f"{len(pages)} pages, {len(problems)} problems"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
