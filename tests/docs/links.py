"""Links of documents: each leads to a file, and to a heading in it where it has an #anchor; each mention of a page of the
documentation is a link."""
import collections, functools, re

from snippets import FENCE, Snippet, documents

TITLE = re.compile(r"^ {0,3}#{1,6} +(.*?)#*$", re.M)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+)\)")
MENTION = re.compile(r"(?<![\w/.>-])(?:docs/)?(?!README)\w[\w/]*\.md\b")
COMMENT = re.compile(r"<!--.*?-->", re.S)


def without_fences(text):
    """The text with an empty line for each line of a fenced block."""
    lines, opened = [], None
    for line in text.split("\n"):
        fence = FENCE.match(line)
        lines.append("" if fence or opened else line)
        if fence and opened is None:
            opened = fence[1]
        elif fence and fence[1].startswith(opened) and not fence[2].strip():
            opened = None
    return "\n".join(lines)


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


@functools.cache
def anchors(file):
    """The names that GitHub gives to the headings."""
    names, seen = set(), collections.Counter()
    for title in TITLE.findall(without_fences(file.read_text())):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        name = re.sub(r"[^\w -]", "", title).replace(" ", "-")
        names.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return names


def fault(target, document):
    """What is wrong with a link, or ""."""
    if re.match(r"https?://|mailto:", target):
        return ""
    name, _, anchor = target.partition("#")
    file = document.parent / name if name else document
    if name.startswith("/") or not file.exists():
        return f"there is no {target}"
    return f"{name or 'the page'} has no heading #{anchor}" if anchor and anchor not in anchors(file) else ""


def outcomes_of(document, source):
    name = str(document.relative_to(source))
    text = COMMENT.sub(blank, without_fences(document.read_text()))

    def place(match):
        return Snippet(name, text[: match.start()].count("\n") + 1, "link")

    # A link may stand around code, but not in it; a command in code may name a page.
    plain = CODE.sub(lambda match: re.sub(r"[\[\]()]", " ", match[0]), text)
    for match in LINK.finditer(plain):
        wrong = fault(match[1], document)
        yield place(match), ("failed", wrong) if wrong else ("passed", "followed")
    if name == "docs/changelog.md":
        return
    plain = CODE.sub(lambda match: blank(match) if " " in match[0] else match[0], LINK.sub(blank, plain))
    for match in MENTION.finditer(plain):
        yield place(match), ("failed", f"{match[0]} is no link")


def test(source):
    """The outcome of every link, and of every mention that is none."""
    pages = {*documents(source), *(source / "examples").glob("**/*.md")}
    return [outcome for page in sorted(pages) for outcome in outcomes_of(page, source)]
