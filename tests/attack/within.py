"""Run a script and hold the processor time that it and its commands took against what it may take.

    within.py SECONDS SCRIPT.py ARGS...     SECONDS 0: said, not held

The CMake list gives each test of the default run its seconds, and holds their sum against a minute. Processor
time, so that a busy machine does not decide. On a set of instructions that TEGULA_ISA names it is said, not held:
the sum is that of the machine's best."""
import os
import resource
import runpy
import sys


def taken():
    """User and system seconds of this process and of those that it waited for."""
    return sum(getattr(resource.getrusage(who), name) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
               for name in ("ru_utime", "ru_stime"))


def run(script):
    """The exit code; as the interpreter has it."""
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        print(e.code, file=sys.stderr)
        return 1
    return 0


def main():
    limit = float(sys.argv[1])
    sys.argv = sys.argv[2:]
    code = run(sys.argv[0])
    seconds = taken()
    print("%.1f s of processor time%s" % (seconds, ", %g are allowed" % limit if limit else ""), flush=True)
    if code == 0 and limit and seconds > limit and "TEGULA_ISA" not in os.environ:
        print("the default tests of this folder end within a minute together: make it smaller, or give it the label long",
              file=sys.stderr)
        code = 1
    sys.exit(code)


if __name__ == "__main__":
    main()
