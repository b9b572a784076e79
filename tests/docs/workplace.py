"""The folder in which a snippet runs: the program, the models and what the snippet needs."""
import os, pathlib, shutil, subprocess, sys, tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from patience import ended

SKIPPED = 77  # the exit code of a need that is not there; its last line says why

# Where nobody waits for a whole training (`short`), it ends after two updates, unless its command says how many; so does
# the fuzzer, whose last option of a name counts.
PROGRAM = """#!/bin/bash
[[ -n "${{SHORT-}}" && "$1" = train && "$*" != *" steps="* ]] && set -- "$@" --set steps=2 --set 'schedule={{"kind": "constant", "rate": 1e-3}}'
exec "{program}" "$@"
"""
FUZZER = """#!/bin/bash
[[ -n "${{SHORT-}}" && "$*" != *--seed* ]] && set -- "$@" --seconds 0.5
exec "{program}" "$@"
"""
# One snippet after the other, as in one terminal: its variables and its folder stay.
LINES = """STATE={place}/.state
[ ! -e "$STATE" ] || . "$STATE"
export SHORT={short}
trap '{{ declare -px; printf "cd %q\\n" "$PWD"; }} >"$STATE"' EXIT
set -aeu
{lines}"""


class Failed(Exception):
    pass


class Skipped(Exception):
    pass


def write_program(path, text, program):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.format(program=program))
    path.chmod(0o755)


class Workplace:
    def __init__(self, source, build, program, folder):
        self.source, self.build, self.program = source, build, program
        self.folder = pathlib.Path(folder)
        self.here = pathlib.Path(__file__).parent

    def new(self):
        """A folder of its own."""
        place = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        write_program(place / "build" / "src" / "cli" / "xtape", PROGRAM, self.program)
        write_program(place / "build" / "tests" / "tapes", FUZZER, self.build / "tests" / "tapes")
        (place / "build" / "examples").symlink_to(self.build / "examples")
        for folder in ("models", "examples"):  # copies, because snippets may change files
            shutil.copytree(self.source / folder, place / folder)
        for name in ("README.md", "docs"):
            (place / name).symlink_to(self.source / name)
        return place

    def environment(self, place, short=False, on_path=True):
        ranks = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                 "XTAPE_MPI": f"{self.build}/src/mpi/libxtape-mpi.so"}
        path = f"{place}/build/src/cli:{os.environ['PATH']}" if on_path else os.environ["PATH"]
        return {**os.environ, **ranks, "SHORT": "1" if short else "", "PATH": path,
                "XTAPE_MODELS": f"{place}/models", "SOURCE": str(self.source), "NEEDS": str(self.here / "needs"),
                "OMP_NUM_THREADS": "1",
                "LD_LIBRARY_PATH": f"{self.build}/src:{os.environ.get('LD_LIBRARY_PATH', '')}"}

    def check_needs(self, names):
        for name in names:
            if not (self.here / "needs" / f"{name}.sh").is_file():
                raise Failed(f"tests/docs/needs has no {name}.sh")

    def run_lines(self, place, lines, short=False, on_path=True):
        """The exit code of bash, which stops at the first line that fails, and all that was printed."""
        lines = LINES.format(place=place, lines=lines, short="1" if short else "")
        return self.run(place, ["bash", "-c", lines], on_path=on_path)

    def run(self, place, words, folder=None, short=False, on_path=True, timeout=120):
        """The exit code, and all that was printed. `on_path`: whether the PATH has the program."""
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(words, cwd=folder or place, env=self.environment(place, short, on_path),
                                       stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT)
            code = ended(process, timeout)
            if code is None:
                raise Failed(f"takes more than {timeout} s")
            printed.seek(0)
            return code, printed.read().decode(errors="replace")

    def prepare(self, place, names, folder=None):
        self.check_needs(names)
        for name in names:
            script = self.here / "needs" / f"{name}.sh"
            code, output = self.run(place, ["bash", "-eu", str(script)], folder, short=True)
            if code == SKIPPED:
                raise Skipped(output.strip().split("\n")[-1])
            if code != 0:
                raise Failed(f"tests/docs/needs/{name}.sh fails:\n{output}")
