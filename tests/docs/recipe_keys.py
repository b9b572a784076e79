"""The tables of recipe keys, which `xtape show --keys` prints. Pages have them between `<!-- keys of SECTION -->`, or
`<!-- keys of SECTION: KEY … -->` for some keys, and `<!-- end of keys -->`. usage: recipe_keys.py SOURCE_ROOT XTAPE, which
writes the tables again"""
import pathlib, re, subprocess, sys

PAGES = ("docs/reference/recipes.md", "docs/reference/recipes/*.md")
TABLE = re.compile(r"^(<!-- keys of ([\w. ]+?)(?:: ([\w ]+))? -->)\n.*?^<!-- end of keys -->", re.M | re.S)


def pages(source):
    return sorted(page for pattern in PAGES for page in source.glob(pattern))


def printed(program):
    """The rows of each section by key, and the two lines above them."""
    text = subprocess.run([program, "show", "--keys"], check=True, capture_output=True, text=True).stdout
    sections = dict(re.findall(r"^## (.+)\n\n((?:\|.*\n)+)", text, re.M))
    head = "".join(sections["recipe"].splitlines(keepends=True)[:2])
    return head, {title: {re.match(r"\| `(?:\w+\.)*(\w+)`", row)[1]: row for row in table.splitlines(keepends=True)[2:]}
                  for title, table in sections.items()}


def written(text, head, sections):
    """The page with its tables, of which those with unknown keys are empty."""
    def table(match):
        rows = sections.get(match[2], {})
        return f"{match[1]}\n\n{head}{''.join(rows.get(name, '') for name in (match[3] or ' '.join(rows)).split())}\n<!-- end of keys -->"
    return TABLE.sub(table, text)


def faults(source, program):
    """Pages whose tables are not what the program prints, and keys that the pages do not have once."""
    head, sections = printed(program)
    texts = {page: page.read_text() for page in pages(source)}
    told = [row for text in texts.values() for row in text.splitlines(keepends=True)]
    return [f"{page.relative_to(source)} is not what tests/docs/recipe_keys.py writes" for page, text in texts.items()
            if written(text, head, sections) != text] + [
        f"the tables of recipes have this row {told.count(row)} times: {row.strip()}"
        for title, rows in sections.items() for row in rows.values()
        if told.count(row) != [each for keys in sections.values() for each in keys.values()].count(row)]


if __name__ == "__main__":
    known = printed(sys.argv[2])
    for page in pages(pathlib.Path(sys.argv[1])):
        page.write_text(written(page.read_text(), *known))
