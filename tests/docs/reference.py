"""The reference: which page has which public header, which names have a comment, and the pages of the ops.
usage: reference.py SOURCE_ROOT [PROGRAM], which writes docs/reference/ops.md and docs/reference/ops"""
import pathlib, re, subprocess, sys, textwrap

ENTRY = re.compile(r"^\.\. doxygenfile:: include/xtape/(\S+)$", re.M)
PAGE, FOLDER = "docs/reference/ops.md", "docs/reference/ops"
INDEX = ("core.hpp", "xtape.hpp")  # they only include others
# The pages of the ops: their titles, and what declares their ops: headers of include/xtape/ops, and parts of ops.hpp.
FAMILIES = {
    "elementwise": ("Elementwise ops", ["Elementwise ops", "elementwise.hpp"]),
    "activations": ("Activations", ["activations.hpp"]),
    "reductions": ("Reductions", ["Reductions. ", "reductions.hpp"]),
    "creation": ("New arrays", ["Creation. "]),
    "random": ("Random numbers", ["Random ops", "random.hpp"]),
    "shapes": ("Shapes", ["Shapes. "]),
    "products": ("Products", ["Products of"]),
    "indexing": ("Indexing", ["Indexing with", "indexing.hpp"]),
    "order": ("Order", ["order.hpp"]),
    "linear_algebra": ("Linear algebra", ["linear_algebra.hpp"]),
    "convolution": ("Convolutions, windows and pooling", ["convolution.hpp"]),
    "resampling": ("Resampling", ["resampling.hpp"]),
    "losses": ("Norms, dropout and losses", ["Normalisation, ", "losses.hpp"]),
    "control": ("Control", ["Control -"]),
}
OTHERS, INTERNAL = "internal", "Recorded by other functions"
ABOUT = """An op is an operation that a tape can record. Each family has a page with the formulas, the attributes and the conditions of its
ops. `xtape ops NAME` prints the same about one op.

An entry such as `pad(x, before, after, value=0)` lists the inputs, then the attributes with their defaults. An input with `?` is
optional. An input with `…` takes any number of values. Definitions call ops by these names. Most C++ functions have the same names, but
functions of images count their axes (`conv` is `conv1d`, `conv2d` and `conv3d`), and linear algebra is in the namespace `linalg`.""".split("\n")


def misplaced(source):
    """Public headers that are on no page of the reference or on several, and entries without a header."""
    include = source / "include" / "xtape"
    headers = {str(file.relative_to(include)) for file in include.rglob("*.hpp")} - set(INDEX)
    listed = [name for page in sorted((source / "docs" / "reference" / "cpp").glob("*.rst")) for name in ENTRY.findall(page.read_text())]
    return sorted([f"include/xtape/{name} is on no page" for name in headers - set(listed)] +
                  [f"{name} is no public header" for name in set(listed) - headers] +
                  [f"{name} is on several pages" for name in set(listed) if listed.count(name) > 1])


DECLARED = re.compile(r"^(?:template <.*> )?(?:\[\[nodiscard\]\] |inline |constexpr |static )*"
                      r"(?:(?:class|struct|enum class|enum|using) (\w+)\b(?!:)|(?!return )\w[\w:<>,&* ]*[ &*](\w+)\()")
FORWARD = re.compile(r"^(?:class|struct|enum class) \w+;")


def names(source):
    """The names that public headers declare outside of classes; whether a comment in its paragraph is about each."""
    found = {}
    for header in sorted((source / "include" / "xtape").rglob("*.hpp")):
        text = re.sub(r"^namespace detail \{$.*?^\}  // namespace detail$", "", header.read_text(), flags=re.M | re.S)
        for paragraph in text.split("\n\n"):
            told = "///" in paragraph
            for line in paragraph.split("\n"):
                match = DECLARED.match(line)
                if match and (told or not FORWARD.match(line)):
                    name = match[1] or match[2]
                    found[name] = found.get(name, False) or told
    return found


def ops(program):
    """The entries of `xtape ops`, by the name of the op."""
    printed = subprocess.run([program, "ops"], capture_output=True, text=True, check=True).stdout
    entries = [part.partition("\n") for part in printed.split("\n## ")[1:]]
    return {name: rest.strip() for name, _, rest in entries}


def declared(text):
    """The names of the functions of a header, without the number of axes in conv2d, and what its comments call their ops."""
    functions = re.findall(r"\b([a-z]\w*?)(?:[123]d)?\(", re.sub(r"//.*", "", text))
    return {*functions, *re.findall(r'The op is named "(\w+)"', text)}


def declarations(source):
    """The functions of each part of ops.hpp, and of each header of ops."""
    folder = source / "include" / "xtape"
    text = (folder / "ops.hpp").read_text()
    places = [(text.index(f"\n// {start}"), start) for _, parts in FAMILIES.values() for start in parts if " " in start]
    found, end = {}, len(text)
    for place, start in sorted(places, reverse=True):
        found[start], end = declared(text[place:end]), place
    return {**found, **{file.name: declared(file.read_text()) for file in (folder / "ops").glob("*.hpp")}}


def families(source, program):
    """The ops of each family, with their entries."""
    rest, known = ops(program), declarations(source)
    found = {family: {name: rest.pop(name) for name in list(rest) if any(name in known[part] for part in parts)}
             for family, (_, parts) in FAMILIES.items()}
    return {**found, OTHERS: rest}


def links(names, family, folder=""):
    return ", ".join(f"[{name}]({folder}{family(name)}#{name})" for name in names)


def wrapped(text):
    return textwrap.fill(text, 130, break_long_words=False, break_on_hyphens=False)


def family_page(family, entries):
    title, parts = FAMILIES.get(family, (INTERNAL, []))
    headers = dict.fromkeys(f"`xtape/ops/{part}`" if part.endswith(".hpp") else "`xtape/ops.hpp`" for part in parts)
    about = f"Declared in {' and '.join(headers)}." if headers else "Other functions and gradients record these ops. Definitions can call them, too."
    lines = [f"# {title}", "", wrapped(f"{about} [All ops](../ops.md) says how to read an entry."), "",
             wrapped(links(entries, lambda name: "")), ""]
    for name, entry in entries.items():
        lines += [f"## {name}", "", entry, ""]
    return "\n".join(lines)


def index(found):
    place = {name: f"{family}.md" for family, entries in found.items() for name in entries}
    lines = ["# The ops", "", *ABOUT, "", "| family | ops |", "|---|---|"]
    lines += [f"| [{FAMILIES.get(family, (INTERNAL,))[0]}](ops/{family}.md) | {len(entries)} |" for family, entries in found.items()]
    return "\n".join([*lines, "", "## By name", "", wrapped(links(sorted(place), place.get, "ops/")), ""])


def pages(source, program):
    """The pages of the ops, by their paths."""
    found = families(source, program)
    return {PAGE: index(found), **{f"{FOLDER}/{family}.md": family_page(family, entries) for family, entries in found.items()}}


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    (root / FOLDER).mkdir(exist_ok=True)
    for path, text in pages(root, sys.argv[2] if sys.argv[2:] else str(root / "build/src/cli/xtape")).items():
        (root / path).write_text(text)
