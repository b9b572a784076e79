"""The commands of the program: each has a section in docs/reference/program.md, with an example whose output is compared."""
import re, subprocess

from snippets import snippets_of

PAGE = "docs/reference/program.md"


def commands(program):
    helped = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]\w*)", helped.split("Train:")[1].split("Examples:")[0], re.M)


def without_example(source, program):
    text = (source / PAGE).read_text()
    sections = dict(part.split("\n", 1) for part in text.split("\n### ")[1:])
    return [name for name in commands(program) if not shown(name, sections.get(name, ""))]


def shown(name, section):
    """Whether the section runs `xtape NAME`, and shows what it prints."""
    return any(re.search(rf"\bxtape {name}\b", command) for snippet in snippets_of(PAGE, section)
               for command, _ in snippet.transcript())
