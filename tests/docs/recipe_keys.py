"""The keys of recipes, from the readers in src/train. Pages have tables of them between `<!-- keys of SECTION: KEY … -->`
(without `of SECTION` for keys of no section) and `<!-- end of keys -->`. The meanings are written by hand, and kept, and so
are types and defaults that the readers do not say. usage: recipe_keys.py SOURCE_ROOT, which writes the tables again"""
import pathlib, re, sys

PAGES = ("docs/recipes.md", "docs/recipes/*.md")
# The sections that the functions of the readers read. All other functions of src/train/data read `data`.
SECTIONS = {"read_batch": "batch", "read_options": "optimizer", "read_optimizer": "optimizer", "read_group": "optimizer.groups",
            "read_privacy": "privacy", "read_schedule": "schedule", "read_tokenizer": "tokenizer", "read_search": "search",
            "column_of": "data.columns", "read_resize": "data.resize"}
# The structs in which the targets of readers are declared, with their defaults; the first that has a name counts.
STRUCTS = {"": ["Recipe", "FitOptions", "TrainerOptions"], "data.resize": ["ImageResize"], "optimizer": ["OptimizerOptions"],
           "optimizer.groups": ["OptimizerOptions"], "schedule": ["ScheduleOptions"], "search": ["SearchOptions"]}
HEADERS = ("recipe", "trainer", "decode", "optim", "images", "csv", "tokenizers", "text")
INTERNAL = {"original", "longest_row", "changes", "until_step", "was"}  # the recipe of a run has them
REFUSED = {"float16", "fp16"}  # values with an error of their own
# Keys whose readers check more than they say, and keys whose default depends on others, or is none.
CHECKED_FURTHER = {"data.kind", "data.channels", "data.resize", "data.split", "steps", "epochs", "evaluate_every", "checkpoint_every",
                   "batch.size"}
WITHOUT_DEFAULT = {"steps", "epochs", "evaluate_every", "checkpoint_every", "schedule.steps", "schedule.warmup", "data.max_line",
                   "data.header", "data.max_length", "data.columns.numbers", "batch.size", "batch.tokens", "optimizer.kind"}
TYPES = {"std::int64_t": "integer", "int": "integer", "std::uint64_t": "integer", "double": "number",
         "std::optional<double>": "number", "bool": "`true`, `false`", "std::string": "string",
         "std::vector<std::string>": "list of strings"}
FUNCTION = re.compile(r"^(?:  (?:static )?)?[A-Za-z][\w:<>&*]* ?[\w:<>&* ]*[ &*:](\w+)\(.*\) (?:const )?(?:override )?\{$")
READ = re.compile(r'(?:\.(?:read|read_or|section|sections|value)|\boften)\("(\w+)"(?:, ([\w.]+))?(.*)')
LISTED = re.compile(r"for \(const [\w:]+[*&]? ?(?:\w+|\[key, \w+\]) : (\{.*\})\)")
NEEDED = re.compile(r"^  section\.need\(\{(.*)\}|root\.need\(\{(.*)\}")
DECLARED = re.compile(r"^ +([\w:]+(?:<[\w:]+>)?) (\w+(?: = [^,;]+)?(?:, \w+(?: = [^,;]+)?)*);")
TABLE = re.compile(r"^(<!-- keys(?: of ([\w.]+))?: ([\w ]+?) -->)\n(.*?)^<!-- end of keys -->", re.M | re.S)
ROW = re.compile(r"^\| `([\w.]+)` \| (.*?) ?\| (.*?) ?\| (?:yes|no) \| (.*?) ?\|$", re.M)


def pages(source):
    return sorted(page for pattern in PAGES for page in source.glob(pattern))


def declarations(source):
    """The type and the default of each field, by its struct and its name."""
    found = {}
    for header in HEADERS:
        struct = ""
        for line in (source / "include/xtape" / f"{header}.hpp").read_text().split("\n"):
            struct = (re.match(r" *(?:struct|class) (\w+)", line) or [0, struct])[1]
            struct = "Recipe" if header == "recipe" and line == "  };" else struct  # behind Recipe::Data
            match = DECLARED.match(line)
            for name, _, default in (each.partition(" = ") for each in (match[2].split(", ") if match else [])):
                found.setdefault((struct, name), (match[1], default.removesuffix("{}")))
    return found


def declared(section, target, found):
    """What is known of the target of a reader in the structs of its section, or else in the first struct that has it."""
    name = target.removesuffix(".emplace").rpartition(".")[2]
    own = [(struct, name) for struct in STRUCTS.get(section, [])] + [key for key in found if key[1] == name]
    return next((found[key] for key in own if key in found), ("", "")) if "." in target else ("", "")


def keys(source):
    """The cells of each key that the readers say, by section: its values, and its default."""
    found, fields, needed = {}, declarations(source), set()
    train = source / "src/train"
    for file in [train / "recipe/recipe.cpp", train / "recipe/recipe_parts.cpp", *sorted((train / "data").glob("*.cpp"))]:
        section = function = ""
        for line in file.read_text().split("\n"):
            opened = FUNCTION.match(line)
            if opened and file.name != "recipe.cpp":
                section = SECTIONS.get(opened[1], "data")
            function = opened[1] if opened else function
            for names in NEEDED.findall(line):
                needed.update((section, name) for name in re.findall(r'"(\w+)"', "".join(names)))
            listed = LISTED.search(line)
            names = set(re.findall(r'"(\w+)"', listed[1] if listed and function != "add_sizes" else "")) - REFUSED
            names |= set(re.findall(r'DataKind\(\{\.name = "(\w+)"', line) if ".files" not in line else [])
            names |= {"source", "target"} if function == "resolve_files" and "source" in line else set()
            for key, target, rest in READ.findall(line) + [(name, "", "") for name in names if not name.endswith("_")]:
                at = "data" if function == "resolve_files" or file.parent.name == "data" and not section else "data.normalise" if key in ("mean", "std") else section
                cells = cells_of(f"{at}.{key}".lstrip("."), declared(at, target, fields), rest)
                rows = found.setdefault(at, {})
                rows[key] = [new or old for new, old in zip(cells, rows.get(key, cells))]
    for section, key in needed:
        found[section][key][1] = "required"
    return {section: {key: cells for key, cells in rows.items() if key not in INTERNAL} for section, rows in found.items()}


def cells_of(key, field, rest):
    """Choices, or type and range; the default."""
    kind, default = field
    choices = re.search(r'\{("\w+"(?:, "\w+")*)\}', rest)
    words = re.search(r'"([^"]+)"\}', rest)
    low = re.search(r"\{(?:\.low = )?(\d+)(?:, (\d+)\})?", rest)
    at_least = low and (f"{low[1]} to {low[2]}" if low[2] else f"at least {low[1]}")
    other = re.search(r'^, "(\w+)"', rest)
    if choices:
        names = choices[1].split(", ")
        default = next((name for name in names if name.strip('"') == default.rpartition("::")[2]), names[default == "true"])
        return [", ".join(f"`{name}`" for name in names), "" if key in WITHOUT_DEFAULT else f"`{default}`"]
    limit = words[1] if words else "at least 0" if "at_least_0" in rest else at_least or ""
    name = TYPES.get(kind, "integer" if low and not words else "")
    values = ", ".join(part for part in (name, limit, other and f'`"{other[1]}"`') if part and key not in CHECKED_FURTHER)
    none = not default or default == "{}" or key in WITHOUT_DEFAULT or (default == "0" and limit in ("at least 1", "above 0"))
    return [values, "" if none else f"`{default}`"]


def rules(source):
    """Whether a key and the keys inside it may change in a run, from the table of run_changes.cpp."""
    rows = re.findall(r'^    \{"([\w.]+)"(, \w+)?\},$', (source / "src/train/run/run_changes.cpp").read_text(), re.M)
    return {key: not fixed for key, fixed in rows}


def changeable(key, table):
    """The longest key of the table that contains the key decides."""
    while key and key not in table:
        key = key.rpartition(".")[0]
    return table.get(key, False)


def table(match, known, may_change):
    """The table of a comment again, with what it says already."""
    told = {row[1]: row.groups() for row in ROW.finditer(match[4])}
    lines = ["| key | values | default | resume | meaning |", "|---|---|---|---|---|"]
    for name in match[3].split():
        key = f"{match[2] or ''}.{name}".lstrip(".")
        _, *old, meaning = told.get(key, (key, "", "", ""))
        cells = [new or kept for new, kept in zip(known.get(match[2] or "", {}).get(name, ["", ""]), old)]
        lines.append(f"| `{key}` | {cells[0]} | {cells[1]} | {'yes' if changeable(key, may_change) else 'no'} | {meaning} |")
    return "\n".join([match[1], "", *lines, "", "<!-- end of keys -->"])


def written(text, source):
    known, may_change = keys(source), rules(source)
    return TABLE.sub(lambda match: table(match, known, may_change), text)


def faults(source):
    """Tables that are not what this script writes, and keys that no table or several have, or that have no meaning."""
    texts = {page: page.read_text() for page in pages(source)}
    wrong = [f"{page.relative_to(source)} is not what tests/docs/recipe_keys.py writes" for page, text in texts.items()
             if written(text, source) != text]
    rows = [(row[1], row[4]) for text in texts.values() for match in TABLE.finditer(text) for row in ROW.finditer(match[4])]
    known = [f"{section}.{key}".lstrip(".") for section, names in keys(source).items() for key in names]
    names = [key for key, _ in rows]
    wrong += [f"the tables of recipes have '{key}' {names.count(key)} times" for key in known if names.count(key) != 1]
    wrong += [f"recipes have no key '{key}'" for key in names if key not in known]
    return wrong + [f"the tables of recipes do not say what '{key}' is" for key, meaning in rows if not meaning]


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    for page in pages(root):
        page.write_text(written(page.read_text(), root))
