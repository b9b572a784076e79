"""The keys of recipes, from the readers in src/train. docs/recipe_keys.md has a table for each section; its last column is
written by hand, and kept. usage: recipe_keys.py SOURCE_ROOT, which writes the page again"""
import pathlib, re, sys

PAGE = "docs/recipe_keys.md"
# The sections that the functions of the readers read. All other functions of recipe_data.cpp and recipe_images.cpp read `data`.
SECTIONS = {"read_batch": "batch", "read_options": "optimizer", "read_optimizer": "optimizer", "read_group": "optimizer.groups",
            "read_privacy": "privacy", "read_schedule": "schedule", "read_tokenizer": "tokenizer", "read_search": "search",
            "column_of": "data.columns", "read_resize": "data.resize"}
INTERNAL = {"original", "longest_row", "changes", "until_step", "was"}  # the recipe of a run has them
REFUSED = {"float16", "fp16"}  # values with an error of their own
FUNCTION = re.compile(r"^[A-Za-z][\w:<>&* ]*[ &*:](\w+)\(.*\{$")
READ = re.compile(r'(?:\.(?:read|read_or|section|sections|value)|\boften)\("(\w+)"(.*)')
LISTED = re.compile(r"for \(const [\w:]+[*&]? ?(?:\w+|\[key, \w+\]) : (\{.*\})\)")


def keys(source):
    """The keys by section, each with the range or the choices that its reader gives."""
    found = {}
    for file in ("recipe.cpp", "recipe_data.cpp", "recipe_images.cpp", "recipe_parts.cpp"):
        section = function = ""
        for line in (source / "src" / "train" / file).read_text().split("\n"):
            opened = FUNCTION.match(line)
            if opened and file != "recipe.cpp":
                section = SECTIONS.get(opened[1], "data")
            function = opened[1] if opened else function
            listed = LISTED.search(line)
            names = set(re.findall(r'"(\w+)"', listed[1] if listed else "")) - REFUSED
            for key, rest in READ.findall(line) + [(name, "") for name in names if not name.endswith("_")]:
                at = "data" if function == "resolve_files" else "data.normalise" if key in ("mean", "std") else section
                rows = found.setdefault(at, {})
                rows[key] = rows.get(key) or accepted(rest)
    return {section: {key: words for key, words in rows.items() if key not in INTERNAL} for section, rows in found.items()}


def accepted(rest):
    """`{"a", "b"}` and ranges of numbers, in words; empty for what a reader checks otherwise."""
    choices = re.search(r'\{("\w+"(?:, "\w+")*)\}', rest)
    if choices:
        return ", ".join(f"`{choice}`" for choice in choices[1].split(", "))
    words = re.search(r'"([^"]+)"\}', rest)
    if words:
        return words[1]
    if "at_least_0" in rest:
        return "at least 0"
    low = re.search(r"\{\.low = (\d+)", rest)
    if low:
        return f"at least {low[1]}"
    bounds = re.search(r"\{(\d+), ([\w <]+)\}", rest)
    if bounds is None:
        return ""
    return f"{bounds[1]} to {bounds[2]}" if bounds[2].isdigit() else f"at least {bounds[1]}"


def rules(source):
    """Whether a key and the keys inside it may change in a run, from the table of run_changes.cpp."""
    rows = re.findall(r'^    \{"([\w.]+)"(, \w+)?\},$', (source / "src/train/run_changes.cpp").read_text(), re.M)
    return {key: not fixed for key, fixed in rows}


def changeable(key, table):
    """The longest key of the table that contains the key decides."""
    while key and key not in table:
        key = key.rpartition(".")[0]
    return table.get(key, False)


def meanings(source):
    """What the page says, by section and key."""
    path, section, found = source / PAGE, "", {}
    for line in path.read_text().split("\n") if path.is_file() else []:
        heading, row = re.match(r"## (?:`(.+)`)?", line), re.match(r"\| `(\w+)` \| .*? ?\| (?:yes|no) \| (.*) \|$", line)
        if heading:
            section = heading[1] or ""
        elif row:
            found[section, row[1]] = row[2]
    return found


def untold(source):
    """The keys of which the page says nothing."""
    told = meanings(source)
    return [f"{section}.{key}".lstrip(".") for section, rows in keys(source).items() for key in rows
            if not told.get((section, key), "").strip()]


def page(source):
    told = meanings(source)
    lines = ["# The keys of recipes", "",
             "Every key that a recipe may have, what its reader accepts, and what it is. [Recipes](recipes.md) explains them, with their",
             "defaults. `--set SECTION.KEY=VALUE` sets one on the command line: `--set batch.size=8`. The readers of `src/train` give the keys;",
             "after a new one, `python3 tests/docs/recipe_keys.py .` writes its row here. The column \"resume\" says whether the key may",
             "change when a run is resumed.", ""]
    table = rules(source)
    for section, rows in sorted(keys(source).items()):
        lines += [f"## `{section}`" if section else "## The recipe", "", "| key | accepts | resume | meaning |", "|---|---|---|---|"]
        for key, words in sorted(rows.items()):
            resume = "yes" if changeable(f"{section}.{key}".lstrip("."), table) else "no"
            lines.append(f"| `{key}` | {words} | {resume} | {told.get((section, key), '')} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    (root / PAGE).write_text(page(root))
