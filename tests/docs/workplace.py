"""The folder in which a snippet runs: the program, the models and what the snippet needs."""
import os, pathlib, shutil, subprocess, sys, tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))
from patience import ended

SKIPPED = 77  # the exit code of a need that is not there; its last line says why

# Nobody waits for a whole training here: it ends after two updates, unless its command says how many.
PROGRAM = """#!/bin/bash
case "$1 $*" in
  train*" steps="*) exec "{program}" "$@" ;;
  train*) exec "{program}" "$@" --set steps=2 --set schedule.warmup=1 ;;
  *) exec "{program}" "$@" ;;
esac
"""
# The same of the fuzzer, which goes on for minutes. Its last option of a name counts.
FUZZER = """#!/bin/bash
case " $* " in
  *" --seed "*) exec "{program}" "$@" ;;
  *) exec "{program}" "$@" --seconds 0.5 ;;
esac
"""


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
        write_program(place / "bin" / "xtape", PROGRAM, self.program)
        write_program(place / "build" / "tests" / "tapes", FUZZER, self.build / "tests" / "tapes")
        (place / "build" / "examples").symlink_to(self.build / "examples")
        shutil.copytree(self.source / "models", place / "models")
        return place

    def environment(self, place):
        ranks = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
                 "XTAPE_MPI": f"{self.build}/src/mpi/libxtape-mpi.so"}
        return {**os.environ, **ranks, "PATH": f"{place}/bin:{os.environ['PATH']}", "XTAPE_MODELS": f"{place}/models",
                "SOURCE": str(self.source), "NEEDS": str(self.here / "needs"), "OMP_NUM_THREADS": "1",
                "LD_LIBRARY_PATH": f"{self.build}/src:{os.environ.get('LD_LIBRARY_PATH', '')}"}

    def check_needs(self, names):
        for name in names:
            if not any((self.here / "needs" / f"{name}.{kind}").is_file() for kind in ("sh", "inc")):
                raise Failed(f"tests/docs/needs has neither {name}.sh nor {name}.inc")

    def run(self, place, words, folder=None, timeout=120):
        """The exit code, and all that was printed."""
        with tempfile.TemporaryFile() as printed:
            process = subprocess.Popen(words, cwd=folder or place, env=self.environment(place),
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
            if not script.is_file():
                continue
            code, output = self.run(place, ["bash", "-eu", str(script)], folder)
            if code == SKIPPED:
                raise Skipped(output.strip().split("\n")[-1])
            if code != 0:
                raise Failed(f"tests/docs/needs/{name}.sh fails:\n{output}")
