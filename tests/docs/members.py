#!/usr/bin/env python3
"""Each member that `tegula info --json` writes stands in docs/reference/json.md, in its section `info`.

    members.py [DESCRIBE.c JSON.md]      without them the files of the house

The members are the literals in the calls that write JSON in engine/verbs/describe*.c. A call whose name is neither a
literal nor known here fails, so no member is left out unseen."""
import os
import re
import sys

ROOT = os.environ.get("TG_LINT_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SOURCES = [os.path.join(ROOT, "engine", "verbs", n) for n in ("describe.c", "describe_film.c", "describe_weights.c")]
PAGE = os.path.join(ROOT, "docs", "reference", "json.md")
CALL = r"\b(?:tgi_jw_(?:begin|bool|int|uint|num|str)|put_ints|put_list|put_point|put_ports|put_text|put_ratio|put_word)\(&?w, (\"\w+\"|[^,;)]+)"
NAMED = {"NULL": (),  # an element of an array
         "word.key": (),  # what a film's author wrote
         "key": (),  # handed through by put_ints and the like
         "g->plain[i]->name": (),  # an operator of the model
         "axis[i]": ("z", "y", "x"),
         "point[k]": ("red", "green", "blue", "white")}
ELSEWHERE = ("whole_image_only", "whole_image_only_operators", "stages", "stage_cuts")  # engine/plan/stage.c writes them


def members(source):
    """(names, problems) of a file in C."""
    names, problems = set(ELSEWHERE), []
    body = re.sub(r"static void put_(?:ints|list|point|ports|text|ratio|word)\([^)]*\)", "", source)
    for said in re.findall(CALL, body):
        if said.startswith('"'):
            names.add(said.strip('"'))
        elif said in NAMED:
            names.update(NAMED[said])
        else:
            problems.append(f"a member is named by {said}: say in tests/docs/members.py which")
    return names, problems


def section(page):
    return re.search(r"^### info\n(.*?)^##", page, re.S | re.M).group(1)


def main():
    sources, page = ([sys.argv[1]], sys.argv[2]) if len(sys.argv) > 2 else (SOURCES, PAGE)
    names, problems = set(), []
    for source in sources:
        with open(source, encoding="utf-8") as f:
            found, more = members(f.read())
        names |= found
        problems += more
    with open(page, encoding="utf-8") as f:
        told = set(re.findall(r"`(\w+)`", section(f.read())))
    if not {"kind", "series_list", "halo", "number"} <= names or len(names) < 50:
        problems.append(f"only {len(names)} members were found in {sources}")
    problems += [f"docs/reference/json.md, info: `{n}` is missing" for n in sorted(names - told)]
    problems += [f"docs/reference/json.md, info: `{n}` is written by nothing" for n in sorted(told - names - {"plan"})]
    print("\n".join(problems + [f"members: {len(names)} checked, {len(problems)} problems"]))
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
