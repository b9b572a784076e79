"""The snippets of Markdown files: every fenced block, with its kind and what the comment before it says.

A comment `<!-- snippet: CLAUSE; CLAUSE -->` on the line before a fence has these clauses:
  needs A, B          what tests/docs/needs/A.sh, A.inc and so on prepare
  continues           the snippet goes on where the one before it, of its kind, ended
  from FILE           its text stands in FILE; `…` stands for anything
  in FRAME            the snippet is a piece of tests/docs/frames/FRAME.json
  output of COMMAND   COMMAND prints the text; `…` stands for anything
  printed             the C++ snippet before it prints the text; `…` stands for anything
  skip REASON         the snippet is not run"""
import dataclasses, pathlib, re

KINDS = ("cpp", "json", "sh", "text")
BROKEN = "tests/docs/broken.md"
FENCE = re.compile(r"^ *(```+|~~~+)(.*)$")
COMMENT = re.compile(r"^ *<!-- snippet: (.*) -->$")
CLAUSE = re.compile(r"(needs|continues|from|in|output of|printed|skip)(?: (.+))?$")


@dataclasses.dataclass
class Snippet:
    file: str
    line: int  # of the first line of its text
    kind: str
    text: str = ""
    clauses: dict = dataclasses.field(default_factory=dict)
    fault: str = ""  # why it cannot be tested at all
    before: "Snippet | None" = None  # what it continues, or what prints it
    printed: str | None = None  # what it has printed, once it has run

    def __str__(self):
        return f"{self.file}, line {self.line} ({self.kind or 'no kind'})"

    def chain(self):
        """The snippets that this one continues, and itself."""
        return (self.before.chain() if self.before else []) + [self]

    def needs(self):
        names = [name for each in self.chain() for name in each.clauses.get("needs", "").split(",")]
        return list(dict.fromkeys(name.strip() for name in names if name.strip()))


def read_clauses(comment, snippet):
    for clause in comment.split("; "):
        match = CLAUSE.match(clause.strip())
        if match is None or (match[2] is None) != (match[1] in ("continues", "printed")):
            snippet.fault = f"the comment has no clause '{clause.strip()}'"
        else:
            snippet.clauses[match[1]] = match[2] or ""


def snippets_of(file, text):
    """All snippets, those that nobody can test included: `fault` says why."""
    found, comment, comment_line, opened, lines = [], None, 0, None, []
    for number, line in enumerate(text.split("\n"), 1):
        fence = FENCE.match(line)
        if opened is not None:
            if fence and fence[1].startswith(opened) and not fence[2].strip():
                found[-1].text, opened = "\n".join(lines), None
            else:
                lines.append(line)
        elif fence:
            snippet = Snippet(file, number + 1, fence[2].strip())
            if snippet.kind not in KINDS:
                snippet.fault = f"a fence is of the kind {', '.join(KINDS)}, not '{snippet.kind}'"
            if comment is not None:
                read_clauses(comment, snippet)
            if {"continues", "printed"} & snippet.clauses.keys():
                kind = "cpp" if "printed" in snippet.clauses else snippet.kind
                snippet.before = next((each for each in reversed(found) if each.kind == kind), None)
                if snippet.before is None:
                    snippet.fault = "there is no snippet to continue"
            found.append(snippet)
            opened, lines, comment = fence[1], [], None
        elif comment is not None:
            found.append(Snippet(file, comment_line, "", fault="no fence follows the comment"))
            comment = None
        else:
            match = COMMENT.match(line)
            if match:
                comment, comment_line = match[1], number
            elif "<!-- snippet" in line:
                found.append(Snippet(file, number, "", fault="the comment is not understood"))
    if opened is not None:
        found[-1].fault = "the fence is not closed"
    return found


def documents(root):
    return [root / "README.md", root / BROKEN, *sorted((root / "docs").glob("**/*.md")),
            *sorted((root / "models").glob("**/*.md"))]


def all_snippets(root):
    return [snippet for file in documents(root) for snippet in snippets_of(str(file.relative_to(root)), file.read_text())]


def fits(text, whole):
    """Whether `text` stands in `whole`, whatever the white space; `…` stands for anything."""
    words = [re.escape(re.sub(r"\s+", " ", piece).strip()) for piece in text.split("…")]
    return re.search(".*?".join(words), re.sub(r"\s+", " ", whole), re.S) is not None


def read(root, file):
    path = pathlib.Path(root) / file
    return path.read_text() if path.is_file() else None
