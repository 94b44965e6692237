"""plan --why: each plan that lost stands there once, in rounded numbers, and of a plan that is refused what was tried.

    why.py TEGULA SOURCE_DIR"""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "crash"))
from crashlib import check, main, picture  # noqa: E402

ROW = r"^  \d+x\d+ +\d+ +[\d.]+ \w+ .*(?:slower|does not fit)$"


def rows(text):
    return re.findall(ROW, text.partition("\nrejected ")[2] or text, re.M)


def check_rejected(what, told):
    plans = [(tuple(p["tile"]), p["band"]) for p in told]
    check(plans and len(set(plans)) == len(plans), "%s: none, or one twice: %s" % (what, plans))
    return len(plans)


def test(lab, rest):
    args = ["plan", "-m", lab.denoiser, picture(lab.path("image.tif"), 1300, 1100), "--threads", "2", "--why"]
    for ram, code in (("64MiB", 0), ("4MiB", 71)):
        text = lab.run(args + ["--ram", ram])
        events = [json.loads(x) for x in lab.run(args + ["--ram", ram, "--json"]).out.splitlines()]
        check(text.code == code, "%s: %s" % (ram, text))
        check([e["event"] for e in events] == (["rejected", "error"] if code else ["plan"]), "%s: %s" % (ram, events))
        n = check_rejected(ram, events[0]["rejected"])
        check(len(rows(text.out)) == n, "%s: %d rows of %d: %s" % (ram, len(rows(text.out)), n, text.out))
        check(not re.search(r"\.\d{4}", text.out), "%s: not rounded: %s" % (ram, text.out))
        print("%s: %d plans" % (ram, n))
    refused = lab.run([a for a in args if a != "--why"] + ["--ram", "4MiB"])
    check(refused.code == 71 and not refused.out, "without --why: %s %s" % (refused, refused.out))


if __name__ == "__main__":
    main(test, sys.argv, in_memory=True)
