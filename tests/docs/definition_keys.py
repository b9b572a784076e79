"""The keys of definitions, from the readers in src. A table of the pages of docs/reference/definitions begins with the comment
`<!-- keys: TABLE -->`. Its last column is written by hand, and kept. usage: definition_keys.py SOURCE_ROOT, which writes
the tables again"""
import pathlib, re, sys

PAGES = "docs/reference/definitions"
# Where a reader lists its keys: the first list of texts after these words.
READERS = {
    "file": ("model/definition/definition.cpp", "node.only("),
    "block": ("model/definition/definition_blocks.cpp", "read_block(const std::string& name"),
    "model": ("model/definition/definition_blocks.cpp", "read_model(const std::vector"),
    "function": ("model/definition/definition_blocks.cpp", "read_functions(const Entries"),
    "weight": ("model/definition/definition_blocks.cpp", "known ="),
    "module": ("model/definition/definition_blocks.cpp", "for (const char* key :"),
    "scan": ("model/language/interpreter_scan.cpp", "nearest_or_all("),
    "vmap": ("model/language/interpreter_derivatives.cpp", "did_you_mean(given.name,"),
    "mapping": ("model/hugging_face/mapping.cpp", "HuggingFaceMapping read_hugging_face("),
    "mapping.hyper": ("model/hugging_face/mapping.cpp", "HuggingFaceMapping::Setting read_setting("),
    "mapping.weights": ("model/hugging_face/mapping.cpp", "void read_weights("),
    "adapter": ("model/hugging_face/mapping.cpp", "Adapter read_adapter("),
    "adapter.hyper": ("model/hugging_face/mapping.cpp", "names.only("),
}
INITIALISERS = ("nn/initialise.cpp", "table() {")
TABLES = {*READERS, "initialiser"}
LIST = re.compile(r'\{([^{}"]*"\w+"[^{}]*)\}')
TABLE = re.compile(r"(?<=^<!-- keys: )([\w.]+)( -->\n\n)(\|.*\n)(\|[-|]*\n)((?:\|.*\n)*)", re.M)
CELL = re.compile(r"(?<!\\)\|")


def after(source, reader):
    file, words = reader
    text = (source / "src" / file).read_text()
    return text[text.index(words) :]


def listed(source, table):
    names = LIST.search(after(source, READERS[table]))[1]
    return [text or name for text, name in re.findall(r'"(\w+)"|\b(modules)', names)]


def initialisers(source):
    """The initialisers with their settings, each with its default unless the shape gives it."""
    text = after(source, INITIALISERS)
    text = text[: text.index("return rows")]
    lists = {name: settings(words) for name, words in re.findall(r"Settings (\w+) = \{(\{.*\})\};", text)}
    rows = re.findall(r'^      \{"(\w+)", (\w+|\{.*\})\},$', text, re.M)
    return {name: lists.get(words) or settings(words) for name, words in rows}


def settings(words):
    found = re.findall(r'\{"(\w+)", ([\w.]+)\}', words)
    return ", ".join(f"`{name}`" + ("" if default == "from_shape" else f" ({default})") for name, default in found)


def rows(source, table):
    """The cells of each row but the last."""
    if table == "initialiser":
        return [(f"`{name}`", words) for name, words in initialisers(source).items()]
    return [(f"`{name}`",) for name in listed(source, table)]


def cells(row):
    return [cell.strip() for cell in CELL.split(row.strip())[1:-1]]


def pages(source):
    return sorted((source / PAGES).glob("*.md"))


def written(source, page):
    """The text of the page with the tables that the readers give."""

    def table(match):
        if match[1] not in TABLES:
            return match[0]
        told = {row[0]: row[-1] for row in map(cells, match[5].splitlines())}
        lines = ["| " + " | ".join([*row, told.get(row[0], "")]) + " |\n" for row in rows(source, match[1])]
        return match[1] + match[2] + match[3] + match[4] + "".join(lines)

    return TABLE.sub(table, page.read_text())


def wrong(source):
    """Tables that no page has or no reader, and keys of which the pages say nothing."""
    tables = {match[1]: match[5] for page in pages(source) for match in TABLE.finditer(page.read_text())}
    found = [f"no page of {PAGES} has the table '{name}'" for name in sorted(TABLES - tables.keys())]
    found += [f"no reader of definitions has the table '{name}'" for name in sorted(tables.keys() - TABLES)]
    for page in pages(source):
        if written(source, page) != page.read_text():
            found.append(f"{PAGES}/{page.name} is not what tests/docs/definition_keys.py writes")
    return found + [f"{PAGES} says nothing about {row[0]} in the table '{name}'" for name, text in tables.items()
                    for row in map(cells, text.splitlines()) if not row[-1]]


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    for each in pages(root):
        each.write_text(written(root, each))
