"""The galleries of models and of recipes. Each page has tables between two comments, with a row for each file of a folder.
The first columns come from the files; the others are written by hand, and kept.
usage: gallery.py SOURCE_ROOT, which writes the pages again"""
import json, pathlib, re, sys

BEGIN, END = "<!-- rows of {} -->", "<!-- end of rows -->"
ROW = re.compile(r"^\| `(\w+)` \| ((?:[^|]*\|)+)$")
WORDS = 25  # of a cell


def first_sentence(about):
    """The first sentence of a text or of a list of its lines, as `xtape show` prints it, without its period."""
    text = " ".join(about) if isinstance(about, list) else about
    return re.split(r"\. (?!\()", text)[0].rstrip(".").replace("|", "\\|")


def folders(folder, file):
    """The folders that a definition reads, by its entry `hugging_face` or an inherited one, which may be the path of a file."""
    entry = file.get("hugging_face")
    if entry is None and "hugging_face" not in file:
        return folders(folder, json.loads((folder / file["extends"]).read_text())) if "extends" in file else "–"
    if entry is None:
        return "–"
    if isinstance(entry, str):
        entry = json.loads((folder / entry).read_text())
    return "adapters of PEFT" if "change" in entry else f"`{entry['model_type']}`"


def definition(recipe):
    return pathlib.Path(recipe["definition"]).stem + ("_lora" if "lora" in recipe else "")


def of_model(folder, name, file):
    """What the model is, the folders that it reads, and the recipes that train it."""
    recipes = [each.stem for each in sorted((folder / "recipes").glob("*.json")) if definition(json.loads(each.read_text())) == name]
    return [first_sentence(file["about"]), folders(folder, file),
            ", ".join(f"`{recipe}`" for recipe in recipes) or "–"]


def of_recipe(folder, name, file):
    """What the recipe trains, and the model."""
    return [first_sentence(file["about"]), f"`{definition(file)}`"]


GALLERIES = {"docs/reference/models.md": ("models", of_model), "docs/reference/recipe_gallery.md": ("models/recipes", of_recipe)}


def generated(source, page):
    """The generated cells by name."""
    folder, cells = GALLERIES[page]
    files = sorted((source / folder).glob("*.json"))
    return {file.stem: cells(source / folder, file.stem, json.loads(file.read_text())) for file in files}


def row(name, cells):
    return f"| `{name}` | " + " | ".join(cells) + " |"


def cells_of(line):
    """The name and the other cells of a row."""
    match = ROW.match(line)
    return (match[1], [cell.strip() for cell in match[2].split("|")[:-1]]) if match else (None, [])


def parts(source, page):
    """The text before the tables, their lines, and the text after them."""
    text, begin = (source / page).read_text(), BEGIN.format(GALLERIES[page][0])
    before, _, rest = text.partition(begin + "\n")
    tables, _, after = rest.partition(END)
    return before + begin, tables.rstrip("\n").split("\n"), END + after


def written(source, page):
    """The page with the generated cells. Files without a row get one at the end, in which nothing is written by hand."""
    before, tables, after = parts(source, page)
    rest, lines, columns = generated(source, page), [], 0
    for line in tables:
        name, cells = cells_of(line)
        columns = max(columns, len(cells))
        if name is None:
            lines.append(line)
        elif name in rest:  # or its file is gone
            own = rest.pop(name)
            lines.append(row(name, own + cells[len(own) :]))
    lines += [row(name, cells + [""] * (columns - len(cells))) for name, cells in rest.items()]
    return "\n".join([before, *lines, after])


def faults(source):
    """Pages that are not as this script writes them, and cells that are empty or too long."""
    found = []
    for page in GALLERIES:
        if written(source, page) != (source / page).read_text():
            found.append(f"{page} is not what tests/docs/gallery.py writes")
        for name, cells in map(cells_of, parts(source, page)[1]):
            if name and (not all(cells) or any(len(cell.split()) > WORDS for cell in cells)):
                found.append(f"{page} has an empty or a long cell for {name}")
    return found


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    for name in GALLERIES:
        (root / name).write_text(written(root, name))
