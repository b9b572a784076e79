#!/usr/bin/env python3
"""Whether the C interface is still that of its stored description, tests/c/xtape-c.abi.

The header is compiled into a library of empty functions with debug information. abidiff compares the types and functions of this
library with the description. The library libxtape-c must export exactly the functions of the header, with their version.

usage: abi.py SOURCE_ROOT LIBRARY [--write]   (--write stores the description again, after a change that is meant)"""
import re, shutil, subprocess, sys, tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from counted import holds, report, skips

source, library = Path(sys.argv[1]), sys.argv[2]
header, stored = source / "include/xtape.h", source / "tests/c/xtape-c.abi"
DECLARATION = re.compile(r"^((?:const char\*|xtape_status|xtape_var|void) (xtape_\w+)\([^;]*?)\s*XTAPE_NOEXCEPT;", re.MULTILINE)


def empty_library(folder, text):
    """Compiles the functions that the text of a header declares, so that they do nothing."""
    (folder / "empty.c").write_text(DECLARATION.sub(r"\1 { __builtin_trap(); }", text))
    made = folder / "libxtape-c.so"
    subprocess.run(["cc", "-std=c11", "-g", "-w", "-shared", "-fPIC", folder / "empty.c", "-o", made,
                    "-Wl,-soname,libxtape-c.so.0", f"-Wl,--version-script={source}/src/c/xtape-c.map"], check=True)
    return made


def symbols(path):
    """The defined dynamic symbols of a library, with their versions."""
    lines = subprocess.check_output(["nm", "-D", "--defined-only", path], text=True).splitlines()
    return {line.split()[-1] for line in lines} - {"XTAPE_0.2"}


def description(made):
    """The description of a library, without the places of its sources."""
    return subprocess.check_output(["abidw", "--no-comp-dir-path", "--no-corpus-path", "--no-show-locs", made], text=True)


def main():
    text = header.read_text()
    names = [match[2] for match in DECLARATION.finditer(text)]
    holds("the interface has at most 60 functions", 50 <= len(names) <= 60, str(len(names)))
    wanted = {name + "@@XTAPE_0.2" for name in names}
    exported = symbols(library)
    holds("the library exports the functions of the header and nothing else", exported == wanted, str(exported ^ wanted))
    if not shutil.which("abidiff") or not shutil.which("abidw"):
        skips("abidiff is not installed (Debian: abigail-tools)")
        return report()
    with tempfile.TemporaryDirectory() as folder:
        made = empty_library(Path(folder), text)
        if "--write" in sys.argv:
            stored.write_text(description(made))
        compared = subprocess.run(["abidiff", "--no-added-syms", stored, made], capture_output=True, text=True)
        holds("no function or type has changed", compared.returncode == 0, compared.stdout + compared.stderr)
        # The check finds what it is for.
        changed = text.replace("xtape_at(const char* file, int32_t line)", "xtape_at(const char* file, int64_t line)")
        changed = changed.replace("xtape_store_new", "xtape_new_store").replace("  int32_t rank;\n", "")
        compared = subprocess.run(["abidiff", stored, empty_library(Path(folder), changed)], capture_output=True, text=True)
        found = [word for word in ("xtape_at", "xtape_store_new", "struct xtape_view") if word in compared.stdout]
        holds("changed types and missing functions are found", compared.returncode != 0 and len(found) == 3, compared.stdout)
    return report()


if __name__ == "__main__":
    sys.exit(main())
