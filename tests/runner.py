#!/usr/bin/env python3
"""Runs tests/run.py on a directory of tests that report in every way, as the real ones do or should not."""
import json, os, subprocess, sys, tempfile
from pathlib import Path

from counted import holds, report

RUN = Path(__file__).parent / "run.py"
TESTS = {
    "good": "echo 3 passed, 0 failed",
    "partial": "echo SKIPPED: a moon; echo 1 passed, 0 failed, 2 skipped",
    "bad": "echo 2 passed, 1 failed; exit 1",
    "dead": "echo 4 passed, 0 failed; kill -SEGV $$",
    "silent": "true",
    "slow": "echo 5 passed, 0 failed; exec sleep 20",
    "late": "sleep 3; echo 1 passed, 0 failed",
    "settings": '[ "$OWN,$SHELL_HAS" = test,shell ] && echo 1 passed, 0 failed',
    "under": '[ "$EMULATED" = yes ] && echo 1 passed, 0 failed',
}
PRIORITIES = {"partial": 1}
GROUPS = {"good": ["xtape:fast"], "partial": ["xtape:fast"], "bad": ["xtape:apart"]}
SETTINGS = {"settings": {"OWN": "test"}}


def directory_of_tests(place):
    """What `meson introspect --tests` reads of a build directory."""
    (place / "meson-info").mkdir()
    listed = [{"name": name, "cmd": ["sh", "-c", script], "env": SETTINGS.get(name, {}), "workdir": None, "timeout": 5,
               "priority": PRIORITIES.get(name, 0), "suite": GROUPS.get(name, ["xtape"])}
              for name, script in TESTS.items()]
    (place / "meson-info/intro-tests.json").write_text(json.dumps(listed))
    (place / "meson-info/meson-info.json").write_text(json.dumps({
        "meson_version": {"full": "1.0.0"},
        "introspection": {"version": {"full": "1.0.0"}, "information": {"tests": {"file": "intro-tests.json"}}}}))


def main():
    with tempfile.TemporaryDirectory() as place:
        directory_of_tests(Path(place))

        idle = Path(place, "idle")
        idle.write_text("0 0 0 1/100 1\n")

        def says(what, names, *last_lines, code, words=(), settings={}):
            done = subprocess.run([sys.executable, RUN, *words, f"{place}:{names}"], stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "XTAPE_LOAD": str(idle), **settings})
            printed = done.stdout.splitlines()
            found = all(any(line in other for other in printed) for line in last_lines[:-1])
            holds(what, found and printed[-1:] == [last_lines[-1]] and done.returncode == code, done.stdout)

        says("counts are added", "good,partial", "SKIPPED: a moon", "4 passed, 0 failed, 2 skipped", code=0)
        says("a failed case is a failure", "good,bad", "5 passed, 1 failed", code=1)
        says("a test that dies after its report is a failure", "good,dead", "7 passed, 1 failed", code=1)
        says("a test that reports nothing is a failure", "good,silent", "no case passed", "3 passed, 1 failed", code=1)
        says("a test that takes too long is a failure", "slow", "stopped after 0.5 s", "5 passed, 1 failed", code=1,
             words=["--patience", "0.1"])
        says("a test's own settings come before those of the shell", "settings", "1 passed, 0 failed", code=0,
             settings={"OWN": "shell", "SHELL_HAS": "shell"})
        says("a test runs under the command given", "under", "1 passed, 0 failed", code=0,
             words=["--under", "env EMULATED=yes"])
        says("without the command it does not", "under", "0 passed, 1 failed", code=1)
        says("a group is run by its name", "fast", "4 passed, 0 failed, 2 skipped", code=0)
        says("a name after a minus leaves its tests out", "fast,-partial", "3 passed, 0 failed", code=0)
        says("so does that of a group", "-fast,-dead,-silent,-slow,-late,-settings", "1 passed, 0 failed", code=0,
             words=["--under", "env EMULATED=yes"])
        everything = subprocess.run([sys.executable, RUN, "--patience", "0.5", place], stdout=subprocess.PIPE,
                                    text=True).stdout
        holds("without names, tests apart from the others do not run",
              f"{place}: good: " in everything and f"{place}: bad: " not in everything, everything)
        load = Path(place, "load")
        load.write_text(f"9 9 9 {40 * len(os.sched_getaffinity(0))}/100 1\n")
        says("a test may take longer on a busy machine", "late", "1 passed, 0 failed", code=0,
             words=["--patience", "0.1"], settings={"XTAPE_LOAD": str(load)})
        ordered = subprocess.run([sys.executable, RUN, f"{place}:good,bad,partial"], stdout=subprocess.PIPE, text=True).stdout
        names = [line.split(": ")[1] for line in ordered.splitlines() if line.startswith(place)]
        holds("a test of a higher priority begins first", names == ["partial", "good", "bad"], ordered)
        unknown = subprocess.run([sys.executable, RUN, f"{place}:good,nonesuch"], stderr=subprocess.PIPE, text=True)
        holds("an unknown test is refused", unknown.returncode == 1 and "no test is named 'nonesuch'" in unknown.stderr,
              unknown.stderr)
    return report()


if __name__ == "__main__":
    sys.exit(main())
