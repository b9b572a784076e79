"""The snippets of Markdown files: every fenced block, with its kind and what the comment before it says.

A text whose first line is `$ COMMAND` is a transcript: each such line is a command, what follows is its output.

A comment `<!-- snippet: CLAUSE; CLAUSE -->` on the line before a fence, or `cells` before a table, has these clauses:
  cells               the code in the first column continues the C++ before the table, each piece as a block of its own
  needs A, B          what tests/docs/needs/A.sh and B.sh prepare, because a reader brings it
  continues           the C++ snippet goes on where the one before it ended
  file FILE           a reader writes the text to FILE, which the paragraph before it names
  from FILE           its text stands in FILE; `…` stands for anything
  printed             the C++ program before it prints the text, as transcripts do
  short               trainings end after two updates, and searches after half a second, because they take long
  skip REASON         the snippet is not run"""
import dataclasses, re

OTHERS = ("c", "fortran", "python", "rust")  # always from a file that a suite runs
KINDS = ("cpp", "json", "sh", "text", *OTHERS)
BROKEN = "tests/docs/broken.md"
DEMO = "scripts/demo.sh"
FENCE = re.compile(r"^ *(```+|~~~+)(.*)$")
COMMENT = re.compile(r"^ *<!-- snippet: (.*) -->$")
CLAUSE = re.compile(r"(cells|needs|continues|file|from|printed|short|skip)(?: (.+))?$")
ALONE = ("cells", "continues", "printed", "short")  # clauses without a value
AFTER = {"cells", "continues", "printed"}  # clauses of what needs C++ before it
COLUMNS = 100  # of commands and outputs: what is longer is cut off on the page


@dataclasses.dataclass
class Snippet:
    file: str
    line: int  # of the first line of its text
    kind: str
    text: str = ""
    clauses: dict = dataclasses.field(default_factory=dict)
    fault: str = ""  # why it cannot be tested at all
    before: "Snippet | None" = None  # what it continues, or what prints it

    def __str__(self):
        return f"{self.file}, line {self.line} ({self.kind or 'no kind'})"

    def is_compiled(self):
        """Whether it is C++ of a program of its own: no file, and no piece of one."""
        return self.kind == "cpp" and not self.fault and not {"file", "from", "skip"} & self.clauses.keys()

    def chain(self):
        """The snippets that this one continues, and itself."""
        return (self.before.chain() if self.before else []) + [self]

    def needs(self):
        return [name.strip() for name in self.clauses.get("needs", "").split(",") if name.strip()]

    def transcript(self):
        """The commands of the text, each with its output."""
        parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n?", self.text, flags=re.M)
        return list(zip(parts[1::2], parts[2::2])) if parts[0] == "" else []

    def check_lines(self):
        if self.kind in OTHERS and not {"from", "skip"} & self.clauses.keys():
            self.fault = f"a comment says which file this {self.kind} is from"
        for number, line in enumerate(self.text.split("\n")):
            if self.kind in ("sh", "text") and len(line) > COLUMNS:
                self.fault = f"line {self.line + number} has {len(line)} columns, and {COLUMNS} fit a page"


def read_clauses(comment, snippet):
    for clause in comment.split("; "):
        match = CLAUSE.match(clause.strip())
        if match is None or (match[2] is None) != (match[1] in ALONE):
            snippet.fault = f"the comment has no clause '{clause.strip()}'"
        else:
            snippet.clauses[match[1]] = match[2] or ""


def find_before(snippet, found):
    if AFTER & snippet.clauses.keys():
        snippet.before = next((each for each in reversed(found) if each.is_compiled()), None)
        if snippet.before is None:
            snippet.fault = "there is no C++ before it"


def blocks(row):
    """The code in the first cell of a table's row, each piece as a block of its own."""
    cell = re.split(r"(?<!\\)\|", row)[1].replace("\\|", "|")
    return " ".join(f"{{ {code}; }}" for code in re.findall("`([^`]+)`", cell))


def snippets_of(file, text):
    """All snippets, those that nobody can test included: `fault` says why."""
    found, comment, comment_line, opened, lines = [], None, 0, None, []
    paragraph, text_before, table = "", False, None
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line)
        if opened is not None:
            if fence and fence[1].startswith(opened) and not fence[2].strip():
                found[-1].text, opened = "\n".join(lines), None
                found[-1].check_lines()
            else:
                lines.append(line)
        elif fence:
            snippet = Snippet(file, number + 1, fence[2].strip())
            if snippet.kind not in KINDS:
                snippet.fault = f"a fence is of the kind {', '.join(KINDS)}, not '{snippet.kind}'"
            if comment is not None:
                read_clauses(comment, snippet)
            find_before(snippet, found)
            if "file" in snippet.clauses and f"`{snippet.clauses['file']}`" not in paragraph:
                snippet.fault = f"the paragraph before it does not name `{snippet.clauses['file']}`"
            found.append(snippet)
            opened, lines, comment = fence[1], [], None
        elif line.startswith("|") and (table is not None or comment == "cells"):
            if table is None:
                table, comment = Snippet(file, number, "cpp", clauses={"cells": ""}), None
                find_before(table, found)
                found.append(table)
            table.text += blocks(line) + "\n"
        elif comment is not None:
            found.append(Snippet(file, comment_line, "", fault="no fence follows the comment"))
            comment = None
        else:
            table, match = None, COMMENT.match(line)
            if match:
                comment, comment_line = match[1], number
            elif "<!-- snippet" in line:
                found.append(Snippet(file, number, "", fault="the comment is not understood"))
            elif line:
                paragraph = line if not text_before else f"{paragraph}\n{line}"
            text_before = bool(line) or match is not None
    if opened is not None:
        found[-1].fault = "the fence is not closed"
    return found


def documents(root):
    return [root / "README.md", root / BROKEN, *sorted((root / "docs").glob("**/*.md")),
            *sorted((root / "models").glob("**/*.md")), *sorted((root / "examples").glob("**/*.md"))]


def suggested(root):
    """What the demo prints at its end: commands to try next, which run beside the demo's run."""
    text = (root / DEMO).read_text()
    commands = re.findall(r"^  ((?:export|cd|xtape) .*)$", text.split("<<END\n")[1].replace("\\$", "$"), re.M)
    variables = re.findall(r"^  (folder=build-demo .*)$|^((?:run|data)=.*)$", text, re.M)
    return Snippet(DEMO, text[: text.index("<<END")].count("\n") + 1, "sh", "\n".join(["".join(each) for each in variables] + commands),
                   {"needs": "numbers"})


def all_snippets(root):
    pages = [snippets_of(str(file.relative_to(root)), file.read_text()) for file in documents(root)]
    return [snippet for page in pages for snippet in page] + [suggested(root)]
