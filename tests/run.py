#!/usr/bin/env python3
"""Runs every test of the build directories given, and adds up what they report.

usage: run.py [--patience N] [--jobs N] [--under COMMAND] BUILD_DIRECTORY[:SUITE,-SUITE…] …

A SUITE is a test, or a group of tests that tests/meson.build gives them as `suite`: "fast" answers in a minute on two
cores. Without names, all tests run but those of the group "apart". A name after a minus leaves its tests out.

  --patience  every test may take N times as long as the build says: a sanitized one is slow. Beside this, time that
              others take from a test does not count: on a machine with twice as much to do as it has processors,
              every test may take twice as long
  --jobs      how many tests run at once (3): most of them use one processor, and some wait for files and processes
  --under     the words before each test's own: an emulator and its options, for suites that are programs

A test reports with a last line "3 passed, 0 failed", and ", 2 skipped" behind it where the machine lacks what two cases
need; lines "SKIPPED: …" say what. One that reports nothing, runs nothing, dies or takes too long counts as a failure.
Tests of a higher priority begin first: these take longest. Without TMPDIR, their files are in memory where there is plenty.
The last line printed is of the same form, and the exit code is 1 unless the number of failures is 0."""
import argparse, concurrent.futures, functools, json, os, re, shlex, shutil, subprocess, sys, tempfile, time

from patience import ended

COUNTS = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)


def tests_of(directory, wanted):
    listed = json.loads(subprocess.check_output(["meson", "introspect", "--tests", directory]))
    # Meson names groups PROJECT:GROUP.
    names = [{test["name"], *(group.split(":")[-1] for group in test["suite"])} for test in listed]
    for name in wanted:
        if not any(name.removeprefix("-") in each for each in names):
            sys.exit(f"{directory}: no test is named {name.removeprefix('-')!r}")
    chosen = {name for name in wanted if name[0] != "-"}
    left_out = {name[1:] for name in wanted if name[0] == "-"} | (set() if chosen else {"apart"})
    chosen = [test for test, each in zip(listed, names) if (not chosen or each & chosen) and not each & left_out]
    return sorted(chosen, key=lambda test: -test.get("priority", 0))


@functools.cache
def in_memory():
    """TMPDIR for a folder in memory: on a disk, many tests mostly wait for it to flush files, which no test needs."""
    folder, least = "/dev/shm", 8 << 30
    if "TMPDIR" in os.environ or not os.access(folder, os.W_OK):
        return {}
    with open("/proc/meminfo") as facts:
        available = int(re.search(r"^MemAvailable: *(\d+) kB", facts.read(), re.M)[1]) << 10
    return {"TMPDIR": folder} if min(available, shutil.disk_usage(folder).free) >= least else {}


def run(test, directory, patience, under):
    """What the test printed, its exit code (None: too slow), and the seconds that it took."""
    environment = os.environ | in_memory() | test["env"]
    start = time.time()
    with tempfile.TemporaryFile() as printed:
        try:
            process = subprocess.Popen(under + test["cmd"], cwd=test["workdir"] or directory, env=environment,
                                       stdout=printed, stderr=subprocess.STDOUT)
        except OSError as error:
            return f"cannot be run: {error}\n", 127, 0
        code = ended(process, test["timeout"] * patience)
        printed.seek(0)
        return printed.read().decode(errors="replace"), code, time.time() - start


def counts(output, code):
    reports = COUNTS.findall(output)
    passed, failed, skipped = (int(n or 0) for n in reports[-1]) if reports else (0, 0, 0)
    if failed == 0 and (code != 0 or passed + skipped == 0):
        failed = 1
    return passed, failed, skipped


def written(passed, failed, skipped):
    return f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else "")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--patience", type=float, default=1)
    parser.add_argument("--jobs", type=int, default=3)
    parser.add_argument("--under", type=shlex.split, default=[])
    parser.add_argument("directories", nargs="+")
    words = parser.parse_args()
    total_passed = total_failed = total_skipped = 0
    with concurrent.futures.ThreadPoolExecutor(words.jobs) as workers:
        running = []
        for word in words.directories:
            directory, _, wanted = word.partition(":")
            for test in tests_of(directory, [name for name in wanted.split(",") if name]):
                running.append((directory, test, workers.submit(run, test, directory, words.patience, words.under)))
        for directory, test, done in running:
            output, code, seconds = done.result()
            passed, failed, skipped = counts(output, code)
            note = ""
            if code is None:
                note = f", stopped after {test['timeout'] * words.patience:g} s"
            elif failed and passed == 0:
                note = f", exit code {code}, no case passed"
            if failed:
                print(output)
            else:
                print(*re.findall(r"^SKIPPED: .*\n", output, re.M), sep="", end="")
            print(f"{directory}: {test['name']}: {written(passed, failed, skipped)}{note} ({seconds:.1f} s)", flush=True)
            total_passed += passed
            total_failed += failed
            total_skipped += skipped
    print(written(total_passed, total_failed, total_skipped))
    return 0 if total_failed == 0 and total_passed > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
