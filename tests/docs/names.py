"""Names in the running text of documents: files of the repository, and options of its programs."""
import re, subprocess

FILE = re.compile(r"(?<![\w/.-])(?:docs|examples|include|models|scripts|src|tests)/[\w/.*-]*\w")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
# Options of mpirun, srun and hf.
FOREIGN = {"--bind-to", "--hostfile", "--local-dir", "--map-by", "--mpi", "--ntasks-per-node", "--signal"}
PLACEHOLDER = re.compile(r"\b(SUITE|NAME)\b|_test$")  # or a program of the build


def known_options(source, program):
    """The options in the program's help, in the scripts and in the programs of the tests."""
    helped = subprocess.run([program, "--help-all"], capture_output=True, text=True, check=True).stdout
    texts = [helped] + [file.read_text() for folder in ("scripts", "tests") for file in (source / folder).rglob("*")
                        if file.suffix in (".py", ".sh", ".cpp")]
    return FOREIGN | {option for text in texts for option in OPTION.findall(text)}


def unknown(document, options, source):
    """The names in a document that do not exist."""
    text = document.read_text()
    files = {name for name in FILE.findall(text) if not PLACEHOLDER.search(name) and not any(source.glob(name))}
    return sorted(files) + sorted(set(OPTION.findall(text)) - options)
