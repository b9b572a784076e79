"""Names in the running text of documents: files of the repository, and options of its programs."""
import re, subprocess

FILE = re.compile(r"(?<![\w/.-])(?:docs|examples|include|models|scripts|src|tests)/[\w/.*-]*\w")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
# Options of mpirun, srun, hf, shuf, gradbench, brew, vcpkg and rattler-build.
FOREIGN = {"--bind-to", "--build-from-source", "--eval", "--hostfile", "--local-dir", "--map-by", "--mpi", "--ntasks-per-node",
           "--overlay-ports", "--random-source", "--recipe", "--signal", "--tool"}
GALLERY = "examples/README.md"
PLACEHOLDER = re.compile(r"\b(SUITE|NAME|LAYER)\b|_test$|^src/cli/xtape$")  # or a program of the build


def options_of(program):
    helped = subprocess.run([program, "--help-all"], capture_output=True, text=True, check=True).stdout
    return set(OPTION.findall(helped))


def known_options(source, program):
    """The options in the program's help, in the scripts, in the examples and in the programs of the tests."""
    texts = [file.read_text() for folder in ("examples", "packaging", "scripts", "tests") for file in (source / folder).rglob("*")
             if file.suffix in (".py", ".sh", ".cpp")]
    return FOREIGN | options_of(program) | {option for text in texts for option in OPTION.findall(text)}


def untold(source, program):
    """The options of the program that no page has in code marks. What fences show needs words, too."""
    pages = [page for page in (source / "docs").rglob("*.md") if page.name != "changelog.md"]
    texts = [re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.M | re.S) for page in pages]
    told = {option for text in texts for code in re.findall(r"`([^`]+)`", text) for option in OPTION.findall(code)}
    return sorted(options_of(program) - told)


def unknown(document, options, source):
    """The names in a document that do not exist."""
    text = document.read_text()
    files = {name for name in FILE.findall(text) if not PLACEHOLDER.search(name) and not any(source.glob(name))
             and not (document.parent / name).exists()}
    return sorted(files) + sorted(set(OPTION.findall(text)) - options)


def without_row(source):
    """The programs of examples that no row of the gallery links to."""
    rows = re.findall(r"^\| \[[^]]*\]\(([^)]*)\)", (source / GALLERY).read_text(), re.M)
    programs = [file for folder in ("examples", "examples/data") for file in (source / folder).glob("*.[cp][py]*")
                if "usage:" in file.read_text() or folder == "examples"]
    return sorted({str(file.relative_to(source / "examples")) for file in programs} - set(rows))
