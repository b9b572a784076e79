"""Names in the running text of documents: files of the repository, and options of its programs."""
import re, subprocess

FILE = re.compile(r"(?<![\w/.-])(?:docs|examples|include|models|scripts|src|tests)/[\w/.-]*\w")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]+")
BUILT = re.compile(r"\bSUITE\b|_test$")  # programs of the build


def known_options(source, program):
    """What the program's help names, and whatever stands in a script or in a program of the tests."""
    helped = subprocess.run([program, "--help-all"], capture_output=True, text=True, check=True).stdout
    texts = [helped] + [file.read_text() for folder in ("scripts", "tests") for file in (source / folder).rglob("*")
                        if file.suffix in (".py", ".sh", ".cpp")]
    return {option for text in texts for option in OPTION.findall(text)}


def unknown(document, options, source):
    """The names in a document that nothing has."""
    text = document.read_text()
    files = {name for name in FILE.findall(text) if not BUILT.search(name) and not (source / name).exists()}
    return sorted(files) + sorted(set(OPTION.findall(text)) - options)
