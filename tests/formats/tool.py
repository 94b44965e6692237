"""The command under test, in a folder of its own."""
import json
import os
import subprocess


class Tool:
    def __init__(self, tegula, folder):
        self.tegula, self.folder = tegula, folder
        self.commands = self.failed = 0
        self.lacks_codecs = False

    def run(self, *words, env=None):
        """(exit code, standard output, the error line without the name of program and file)."""
        self.commands += 1
        r = subprocess.run([self.tegula, *words], cwd=self.folder, capture_output=True, text=True, timeout=300,
                           stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        self.errors = r.stderr
        lines = [x for x in r.stderr.splitlines() if x.startswith("tegula: ") and "warning" not in x[:20]]
        line = lines[0][8:] if lines else ""
        self.lacks_codecs |= "this build cannot" in line
        return r.returncode, r.stdout, line

    def info(self, name):
        """What `info` says of a file; None: refused."""
        code, out, _ = self.run("info", "--json", name)
        return json.loads(out) if code == 0 else None

    def reason(self, name):
        """Why `info` refuses a file, without its name."""
        code, _, line = self.run("info", name)
        return line.replace(name + ": ", "", 1) if code else ""

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, "wb") as f:
            f.write(data)
        return name

    def read(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return f.read()

    def drop(self, *names):
        for name in names:
            path = os.path.join(self.folder, name)
            if os.path.exists(path):
                os.remove(path)

    def expect(self, truth, what):
        if not truth:
            self.failed += 1
            print("not so: " + what)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]) + "\n"
