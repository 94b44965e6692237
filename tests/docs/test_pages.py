"""pages.py finds what is wrong with a page: a command that fails, a line that does not come. page_links.py finds links
that lead nowhere. reference.py takes what the headers and the manual say."""
import io
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stdout
from unittest.mock import patch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import page_links
import pages
import reference


def page(*lines):
    return "\n".join(["Text.", "", "```console", *lines, "```", ""])


class Pages(unittest.TestCase):
    def follow(self, text):
        with tempfile.TemporaryDirectory() as folder:
            return pages.follow(text, dict(os.environ), folder)

    def wrong(self, text, words):
        with self.assertRaises(pages.Wrong) as caught:
            self.follow(text)
        self.assertIn(words, str(caught.exception))

    def test_commands_run_in_order_in_one_folder(self):
        self.assertEqual(self.follow(page("$ echo a > f", "$ cat f", "a") + page("$ cat \\", "  f", "a")), 3)

    def test_a_command_that_fails_is_found_also_as_the_last(self):
        self.wrong(page("$ false", "$ true"), "false: ended in 1")
        self.wrong(page("$ false"), "false: ended in 1")
        self.wrong("<!-- setup: false -->\n" + page("$ true"), "false: ended in 1")

    def test_a_code_that_is_asked_for_must_be_the_stated_one(self):
        self.assertEqual(self.follow(page("$ (exit 71)", "$ echo $?", "71")), 2)
        self.wrong(page("$ (exit 70)", "$ echo $?", "71"), "where the page says")

    def test_a_stated_line_that_does_not_come_is_found(self):
        self.wrong(page("$ echo one", "two"), "two")
        self.wrong(page("$ printf '1\\n2\\n3\\n'", "1", "3"), "3")
        self.wrong(page("$ printf '1\\n2\\n'", "...", "2", "1"), "1")

    def test_a_line_that_is_not_stated_is_found(self):
        self.wrong(page("$ printf '1\\n2\\n'", "1"), "the end")
        self.follow(page("$ printf '1\\n2\\n'", "1", "..."))

    def test_figures_are_of_their_kind(self):
        self.follow(page("$ echo peak 3.25 GiB in 1 min 3 s, 12 tiles", "peak ‹28 MiB› in ‹1.6 s›, ‹4› tiles"))
        self.wrong(page("$ echo peak 3.25 in 2 s", "peak ‹28 MiB› in ‹1.6 s›"), "peak")
        self.wrong(page("$ echo 4 tiles", "‹4 s› tiles"), "tiles")

    def test_commands_that_nothing_runs_give_a_reason(self):
        block = "```sh\nmake\n```\n"
        self.wrong(block + page("$ true"), "no reason")
        self.assertEqual(self.follow("<!-- not run: it installs -->\n" + block + page("$ true")), 1)


class Links(unittest.TestCase):
    def said(self, explanation):
        with tempfile.TemporaryDirectory() as root, redirect_stdout(io.StringIO()) as out:
            os.makedirs(os.path.join(root, "docs", "explanation"))
            for name, text in (("README.md", "[a](docs/a.md#the-plan-c-and-you)\n"), ("docs/a.md", "# The `plan`, C and you\n"),
                               ("docs/explanation/b.md", explanation)):
                with open(os.path.join(root, name), "w", encoding="utf-8") as f:
                    f.write(text)
            page_links.ROOT = root
            return page_links.main(), out.getvalue()

    def test_what_leads_somewhere_passes(self):
        self.assertEqual(self.said("# B\n[up](../a.md) [here](#b) [far](https://a.b)\n"),
                         (0, "links: 4 looked at, 0 lead nowhere\n"))

    def test_what_leads_nowhere_is_found(self):
        for text, words in (("[x](a.md)", "docs/explanation/a.md is not there"), ("[x](../a.md#b)", "no heading #b"),
                            ("`engine/plan/gone.c`", "names engine/plan/gone.c")):
            code, out = self.said(text + "\n")
            self.assertEqual(code, 1)
            self.assertIn(words, out)


HEADER = """/*
 * tegula.h - a header.
 */
/* ---- Jobs -------- */

/** Open it. More is said later. @param x one. */
TG_API int tg_open(int x);
/** A thing, "a.b" or 1.5 of it; view. */
typedef struct tg_thing {
    int x; /* not this */
} tg_thing;
%sTG_API int
tg_close(int x);
"""


class Reference(unittest.TestCase):
    def said(self, comment):
        return [(name, first) for _, name, first, _ in reference.items(HEADER % comment)]

    def test_the_first_sentence_of_each_comment_is_taken(self):
        self.assertEqual(self.said("/** Close it:\n *\n * and so on. */\n"),
                         [("section", "Jobs"), ("tg_open", "Open it"), ("tg_thing", 'A thing, "a.b" or 1.5 of it; view'),
                          ("tg_close", "Close it")])

    def test_a_function_without_a_comment_is_found(self):
        for comment in ("", "/* not for the page */\n", "/** Of something else. */\n\n"):
            with patch.object(reference, "header", lambda _: HEADER % comment):
                problems = []
                reference.api_page(problems)
            self.assertEqual(len(problems), len(reference.HEADERS), comment)
            self.assertIn("tg_close has no comment", problems[0])

    def test_options_are_those_of_the_manual(self):
        manual = ('.SH SYNOPSIS\n.B tegula run\nIN \\-o OUT\n.SH DESCRIPTION\n.TP\n.B run\nRun it.\n.SH OPTIONS\n.TP\n'
                  '.B \\-r, \\-\\-ram SIZE\nno more than a*b.\nVerbs: run plan.\n')
        text = reference.options_page(manual)
        for words in ("    tegula run IN -o OUT\n\nRun it.\n\nOptions: [--ram](#--ram).\n",
                      "### --ram\n\n`-r, --ram SIZE`: no more than a\\*b.\n\n*Verbs: run, plan.*\n"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
