"""Links of the pages lead somewhere, and files that docs/explanation names are there. Standard library only."""
import os
import re
import sys

ROOT = os.environ.get("TG_LINT_ROOT") or os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
NAMED = re.compile(r"`((?:engine|kernels|io|cli|include|tests|bench|scripts|configs)/[\w/.-]+\.(?:c|h|cu|cuh|py|json))`")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def pages():
    found = ["README.md", "CONTRIBUTING.md", os.path.join("bench", "README.md"), os.path.join("tools", "README.md")]
    for folder, _, names in os.walk(os.path.join(ROOT, "docs")):
        found += [os.path.relpath(os.path.join(folder, n), ROOT) for n in sorted(names) if n.endswith(".md")]
    return [p for p in found if os.path.isfile(os.path.join(ROOT, p))]


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return FENCED.sub("", f.read())


def anchors(path):
    """Of each heading: small letters, blanks to '-', no marks."""
    heads = re.findall(r"^#+ (.+)$", text(path), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", h).lower()).strip().replace(" ", "-") for h in heads}


def problem(page, link):
    if re.match(r"\w+:", link):
        return None
    name, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
    if not os.path.exists(os.path.join(ROOT, target)):
        return f"{target} is not there"
    if anchor and target.endswith(".md") and anchor not in anchors(target):
        return f"{target} has no heading #{anchor}"
    return None


def main():
    found, n = [], 0
    for page in pages():
        said = text(page)
        for link in LINK.findall(said):
            n += 1
            why = problem(page, link)
            if why:
                found.append(f"{page}: ({link}): {why}")
        if page.startswith(os.path.join("docs", "explanation")):
            for name in NAMED.findall(said):
                n += 1
                if not os.path.exists(os.path.join(ROOT, name)):
                    found.append(f"{page}: names {name}, which is not there")
    print("\n".join(found + [f"links: {n} looked at, {len(found)} lead nowhere"]))
    return 1 if found or not n else 0


if __name__ == "__main__":
    sys.exit(main())
