"""The reference: which page has which public header, which names have a comment, and the ops by family.
usage: reference.py SOURCE_ROOT, which writes docs/ops_by_family.md"""
import pathlib, re, sys

ENTRY = re.compile(r"^\.\. doxygenfile:: include/xtape/(\S+)$", re.M)
PAGE = "docs/ops_by_family.md"
INDEX = ("core.hpp", "xtape.hpp")  # they only include others
FAMILIES = ["ops.hpp", "elementwise.hpp", "activations.hpp", "reductions.hpp", "order.hpp", "indexing.hpp",
            "linear_algebra.hpp", "convolution.hpp", "resampling.hpp", "losses.hpp", "random.hpp"]
OTHERS = "Recorded by other functions"


def misplaced(source):
    """Public headers that are on no page of the reference or on several, and entries without a header."""
    include = source / "include" / "xtape"
    headers = {str(file.relative_to(include)) for file in include.rglob("*.hpp")} - set(INDEX)
    listed = [name for page in sorted((source / "docs" / "reference").glob("*.rst")) for name in ENTRY.findall(page.read_text())]
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
            told = "///" in paragraph or "deprecated(" in paragraph
            for line in paragraph.split("\n"):
                match = DECLARED.match(line)
                if match and (told or not FORWARD.match(line)):
                    name = match[1] or match[2]
                    found[name] = found.get(name, False) or told
    return found


def ops(source):
    """The names of docs/ops.md, each with the first sentence about it."""
    text = (source / "docs" / "ops.md").read_text()
    found = {}
    for part in text.split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        about = rest.strip().split("\n\n")[1] if "\n\n" in rest.strip() else ""
        found[name.strip()] = re.split(r"(?<=[^.]\.)\s+(?=[A-Z])", about.replace("\n", " "))[0].replace("|", "\\|")
    return found


def families(source):
    """The ops of each header, in the order of FAMILIES."""
    rest, found = ops(source), {}
    for header in FAMILIES:
        folder = source / "include" / "xtape"
        text = (folder / header if header == "ops.hpp" else folder / "ops" / header).read_text()
        declared = set(re.findall(r"\b([a-z]\w*?)(?:[123]d)?\(", re.sub(r"//.*", "", text)))
        found[header] = {name: rest.pop(name) for name in list(rest) if name in declared}
    found[OTHERS] = {name: about for name, about in rest.items() if not name.endswith("_grad")}
    found["Recorded by gradients"] = {name: about for name, about in rest.items() if name.endswith("_grad")}
    return found


def page(source):
    about = "Each family is a header. `tests/docs/reference.py` writes this page from [all ops](ops.md) and the headers."
    lines = ["# The ops by family", "", about, ""]
    for title, names in families(source).items():
        place = f"xtape/{title}" if title == "ops.hpp" else f"xtape/ops/{title}"
        heading = title if not title.endswith(".hpp") else title[:-4].replace("_", " ").capitalize()
        lines += [f"## {'The common ops' if title == 'ops.hpp' else heading}", ""]
        lines += [f"Declared in `{place}`.", ""] if title.endswith(".hpp") else []
        lines += ["| op | what it computes |", "|---|---|"]
        lines += [f"| [{name}](ops.md#{name}) | {about} |" for name, about in names.items()] + [""]
    return "\n".join(lines)


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    (root / PAGE).write_text(page(root))
