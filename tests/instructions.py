#!/usr/bin/env python3
"""Tests that the library runs on any processor of its architecture: instructions of AVX and later are only in the kernels
for sets that have them, and no symbol of those kernels is visible except their table. Only files of the list in
library_functions.py call functions of the C library whose bits differ between processors.

usage: instructions.py BUILD_DIRECTORY"""
import re, subprocess, sys
from pathlib import Path

from counted import holds, report
from library_functions import ALLOWED, imported

SET = re.compile(r"xtape_kernels_(\w+)\.o$")
# What no object of a set may use.
WIDER = {
    "baseline": re.compile(r"\t\{?v?\w* .*%[yz]mm|\tv[a-z0-9]+ "),
    "avx2": re.compile(r"%zmm|%[xy]mm(1[6-9]|2\d|3[01])|%k[0-7]"),
}

build = Path(sys.argv[1])


def wide_instructions(path, pattern):
    """The first few instructions of an object file that match, each with its function."""
    found, function = [], ""
    with subprocess.Popen(["objdump", "--no-show-raw-insn", "-d", path], stdout=subprocess.PIPE, text=True) as objdump:
        for line in objdump.stdout:
            if line.endswith(">:\n"):
                function = line.split("<", 1)[1][:-3]
            elif len(found) < 5 and pattern.search(line):
                found.append(f"{function}: {line.strip()}")
    return found


def main():
    objects = sorted((build / "src").glob("*.o")) + sorted((build / "src").glob("libxtape_*.a.p/*.o"))
    counts = {}
    for path in objects:
        isolated = SET.search(path.name)
        if isolated:
            symbols = subprocess.check_output(["nm", "--defined-only", "--extern-only", path], text=True).split()[2::3]
            holds(f"{path.name} shows its table only", len(symbols) == 1 and f"kernels_of_{isolated[1]}" in symbols[0],
                  " ".join(symbols))
        elif path.parent.name.startswith("libxtape_kernels_"):
            continue  # what the isolated objects are made of
        which = isolated[1] if isolated else "baseline"
        undefined = subprocess.check_output(["nm", "--undefined-only", "--format=just-symbols", path], text=True).split()
        may_call = re.search("_(control|light|core_extra)", path.parent.name)
        allowed = {name for names, _ in ALLOWED.values() for name in names.split() if may_call}
        holds(f"{path.relative_to(build)} calls no function whose bits differ", imported(undefined) <= allowed,
              " ".join(imported(undefined) - allowed))
        if which in WIDER:
            found = wide_instructions(path, WIDER[which])
            holds(f"{path.relative_to(build)} has no instructions beyond {which}", not found, "\n".join(found))
        counts[which] = counts.get(which, 0) + 1
    if "avx512" in counts:
        wide = next(path for path in objects if path.name == "xtape_kernels_avx512.o")
        holds("the test recognises wide instructions", wide_instructions(wide, WIDER["baseline"]) and
              wide_instructions(wide, WIDER["avx2"]))
    return report()


sys.exit(main())
