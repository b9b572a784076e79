#!/usr/bin/env python3
"""Plants the faults of tests/mutants.txt one at a time and reports which test detects each.

usage: mutants.py [--check] [--only N,N…] [--tapes COMMAND] [--minutes N] [--jobs N]

A copy of the last commit, in build-mutants/, is built once. Then each fault is written into its file there, and the
suites of its layer are built and run until one fails. If no suite fails, the fuzzer of tapes runs for two minutes.
  --check    only check that every text of the table is found exactly once (the suite "mutants")
  --only     the entries of the table to use, by number from 1
  --tapes    the fuzzer's command, run in the copy's build directory; '' for no fuzzer
  --minutes  the fuzzer's time for each fault
  --jobs     the number of parallel compilers
The exit code is 1 if a fault is not detected. A fault that does not compile, or a table that does not fit the sources,
ends the run."""
import argparse, collections, os, pathlib, re, shlex, subprocess, sys, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
COPY = ROOT / "build-mutants" / "copy"
BUILD = ROOT / "build-mutants" / "build"
# The suites that test a layer, the quickest to detect faults first.
SUITES = {
    "kernels": ["kernels-avx512", "ops", "player"],
    "ops": ["ops", "recording", "player", "rewrite"],
    "grad": ["grad", "ops", "recording"],
    "svg": ["svg"],
    "player": ["player", "rewrite", "recording", "ops", "budgets"],
}
SLOWEST = 600  # the time limit of a suite in seconds: a fault may make it hang
FAILED_CASE = re.compile(r"^TEST CASE:\s*(.*)$", re.M)

Mutant = collections.namedtuple("Mutant", "number layer file description text fault")


def read_table(path):
    entries, number = [], 0
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if not lines:
            continue
        head = re.fullmatch(r"(\w+) (\S+): (.+)", lines[0])
        if not head or head[1] not in SUITES or len(lines) != 3 or lines[1][:1] != "-" or lines[2][:1] != "+":
            sys.exit(f"{path}: not a valid entry:\n{block}")
        number += 1
        entries.append(Mutant(number, head[1], head[2], head[3], lines[1][1:].strip(), lines[2][1:].strip()))
    return entries


def source(root, mutant):
    """The file's text, and the number of occurrences of the entry's text in it."""
    path = root / mutant.file
    text = path.read_text() if path.exists() else ""
    return text, text.count(mutant.text)


def check(table):
    """Prints the entries that do not fit the sources, and returns their number."""
    bad = 0
    for mutant in table:
        found = source(ROOT, mutant)[1]
        if found != 1 or mutant.text == mutant.fault:
            bad += 1
            print(f"FAILED: {mutant.number}: {mutant.file}: found {found} times, not once: {mutant.text}")
    print(f"{len(table) - bad} passed, {bad} failed")
    return bad


def quiet(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    return done.returncode, done.stdout


def must(command, **options):
    code, output = quiet(command, **options)
    if code != 0:
        sys.exit(f"{shlex.join(map(str, command))}: exit code {code}\n{output[-4000:]}")


def make_copy():
    commit = subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()
    if not (COPY / ".git").exists():
        must(["git", "worktree", "prune"], cwd=ROOT)
        must(["git", "worktree", "add", "--force", "--detach", COPY, commit], cwd=ROOT)
    must(["git", "checkout", "--force", "--detach", commit], cwd=COPY)
    if not (BUILD / "build.ninja").exists():
        must(["meson", "setup", BUILD, COPY])


def build(suites, jobs, fuzzer):
    targets = [f"tests/{suite}_test" for suite in suites]
    if fuzzer:
        targets.append(fuzzer)
    return quiet(["ninja", "-C", BUILD, "-j", str(jobs), *targets])


def run(suite):
    """A description of the failure; empty if the suite passes."""
    try:
        code, output = quiet([BUILD / "tests" / f"{suite}_test", "--abort-after=1"], cwd=BUILD, timeout=SLOWEST)
    except subprocess.TimeoutExpired:
        return f"{suite}: takes more than {SLOWEST} s"
    if code == 0:
        return ""
    cases = FAILED_CASE.findall(output)
    return f"{suite}: {cases[-1].strip() if cases else 'crashes'}" + (f" (signal {-code})" if code < 0 else "")


def run_tapes(command, minutes):
    try:
        code, _ = quiet(shlex.split(command), cwd=BUILD, timeout=60 * minutes + SLOWEST)
    except subprocess.TimeoutExpired:
        return "tapes: hangs"
    return "tapes" if code != 0 else ""


def judge(mutant, words, fuzzer):
    """The test that detects the mutant; empty if none does."""
    path = COPY / mutant.file
    original, _ = source(COPY, mutant)
    path.write_text(original.replace(mutant.text, mutant.fault))
    try:
        # Builds one suite at a time: the first one detects most faults, and linking all takes longer than running it.
        for suite in SUITES[mutant.layer]:
            code, output = build([suite], words.jobs, "")
            if code != 0:
                sys.exit(f"{mutant.number}: does not compile\n{output[-4000:]}")
            noticed = run(suite)
            if noticed:
                return noticed
        if not words.tapes:
            return ""
        code, output = build([], words.jobs, fuzzer)
        if code != 0:
            sys.exit(f"{mutant.number}: the fuzzer does not compile\n{output[-4000:]}")
        return run_tapes(words.tapes.format(minutes=words.minutes), words.minutes)
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0], description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--tapes", default="tests/tapes --count 1000000000 --minutes {minutes}")
    parser.add_argument("--minutes", type=float, default=2)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    words = parser.parse_args()
    table = read_table(ROOT / "tests" / "mutants.txt")
    if words.check:
        return 1 if check(table) else 0
    only = {int(number) for number in words.only.split(",") if number}
    chosen = [mutant for mutant in table if not only or mutant.number in only]
    make_copy()
    for mutant in chosen:
        if source(COPY, mutant)[1] != 1:
            sys.exit(f"{mutant.number}: {mutant.file}: not found exactly once: {mutant.text}")
    fuzzer = words.tapes.split()[0] if words.tapes else ""
    code, output = build(sorted({suite for mutant in chosen for suite in SUITES[mutant.layer]}), words.jobs, fuzzer)
    if code != 0:
        sys.exit(f"the copy does not build\n{output[-4000:]}")
    for suite in sorted({suite for mutant in chosen for suite in SUITES[mutant.layer]}):
        if run(suite):
            sys.exit(f"suite {suite} fails without a fault")
    noticed = 0
    for mutant in chosen:
        start = time.time()
        by = judge(mutant, words, fuzzer)
        noticed += bool(by)
        print(f"{mutant.number:2} {mutant.file}: {mutant.description}: {by or 'NOT DETECTED'} "
              f"({time.time() - start:.0f} s)", flush=True)
    print(f"{noticed} of {len(chosen)} detected")
    return 0 if noticed == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
