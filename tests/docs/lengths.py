"""The length of pages that have grown too long before: words of a page without its fences and generated tables, and words
of a cell of any table."""
import re

PAGES = ("docs/reference/recipes.md", "docs/reference/recipes/*.md", "docs/reference/definitions.md", "docs/reference/definitions/*.md")
WORDS, CELL = 1500, 25
FENCE = re.compile(r"^ *(```+)[^\n]*\n.*?^ *\1$", re.M | re.S)
GENERATED = re.compile(r"^<!-- keys.*?^<!-- end of keys -->", re.M | re.S)
LINK = re.compile(r"\]\([^)]*\)")


def words(text):
    return len([word for word in LINK.sub("]", text).split() if re.search(r"\w", word)])


def cells(text):
    """The cells of all tables. `\\|` belongs to a cell."""
    for row in re.findall(r"^\|(.*)\|$", text, re.M):
        yield from re.split(r"(?<!\\)\|", row)


def faults(source):
    wrong = []
    for page in sorted(page for pattern in PAGES for page in source.glob(pattern)):
        name, text = page.relative_to(source), FENCE.sub("", page.read_text())
        count = words(GENERATED.sub("", text))
        if count > WORDS:
            wrong.append(f"{name} has {count} words, and a page has at most {WORDS}")
        long = [cell for cell in cells(text) if words(cell) > CELL]
        wrong += [f"{name} has a cell of {words(cell)} words, '{cell.strip()[:40]}…'" for cell in long]
    return wrong
