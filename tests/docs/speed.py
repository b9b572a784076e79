"""The bar chart docs/images/speed.svg of the first table of docs/explanation/performance.md. A cell `0.39 (12.1/30.7)` has a ratio and the
times of xtape and of PyTorch. usage: speed.py SOURCE_ROOT, which draws the picture again"""
import html, pathlib, re, sys

PAGE = "docs/images/speed.svg"
TABLE = "docs/explanation/performance.md"
CELL = re.compile(r"([\d.]+) \(([\d.]+)/([\d.]+)\)$")
COLOURS = ("#08519c", "#9ecae1", "#e08214", "#35978f")  # told apart by the colour-blind, and in grey
WIDTH, LEFT, SCALE = 720, 190, 440  # of the picture, of the names, and of the ratio 1
TOP, BAR, GAP = 96, 11, 13  # of the legend; heights of a bar, and between groups
FONT = "font-family='Helvetica, Arial, sans-serif'"


def table(source):
    """The names of the columns, and for each row its name and the cells, None where there is none."""
    lines = (source / TABLE).read_text().split("\n")
    start = next(number for number, line in enumerate(lines) if line.startswith("| workload |"))
    rows = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows[0][1:], [(row[0], [CELL.match(cell) for cell in row[1:]]) for row in rows[2:]]


def wrong_ratios(source):
    """The cells whose ratio is not the quotient of their times."""
    return [f"{name}: {cell[0]}" for name, cells in table(source)[1] for cell in cells
            if cell and f"{float(cell[2]) / float(cell[3]):.2f}" != cell[1]]


def wrong_ranges(source):
    """The trainings of each machine as a range, where README.md has another one, in the order of the columns."""
    columns, rows = table(source)
    trainings = [[float(cells[number][1]) for name, cells in rows if name != rows[-1][0]] for number in range(len(columns))]
    right = {f"{min(ratios):.2f} to {max(ratios):.2f}" for ratios in trainings}
    told = re.findall(r"\| ([\d.]+ to [\d.]+) \|$", (source / "README.md").read_text(), re.M)
    return sorted(right ^ set(told))


def text(x, y, words, size=12, colour="#222", **attributes):
    more = "".join(f" {key.replace('_', '-')}='{value}'" for key, value in attributes.items())
    return f"<text x='{x}' y='{y}' font-size='{size}' fill='{colour}'{more}>{html.escape(words)}</text>"


def page(source):
    columns, rows = table(source)
    marks, y = [], TOP
    for name, cells in rows:
        bars = [(cell[1], colour) for cell, colour in zip(cells, COLOURS) if cell]
        head, _, rest = name.partition(": ")
        middle = y + len(bars) * BAR / 2
        marks += [text(LEFT - 10, f"{middle - 1:g}", head, text_anchor="end", font_weight="bold"),
                  text(LEFT - 10, f"{middle + 12:g}", rest, 10, "#555", text_anchor="end")]
        for number, (ratio, colour) in enumerate(bars):
            top, length = y + number * BAR, float(ratio) * SCALE
            marks += [f"<rect x='{LEFT}' y='{top}' width='{length:g}' height='{BAR - 1}' fill='{colour}'/>",
                      text(f"{LEFT + length + 4:g}", top + BAR - 2, ratio, 10, "#444")]
        y += max(len(bars) * BAR, 22) + GAP
    bottom = y - GAP + 6
    axis = []
    for tick in (0, 0.25, 0.5, 0.75, 1):
        x = LEFT + tick * SCALE
        colour = "#222" if tick in (0, 1) else "#ddd"
        axis += [f"<line x1='{x:g}' y1='{TOP - 8}' x2='{x:g}' y2='{bottom}' stroke='{colour}'/>",
                 text(f"{x:g}", bottom + 15, f"{tick:g}", 11, "#444", text_anchor="middle")]
    legend = [text(16, 24, "Time of xtape divided by the time of PyTorch 2.15", 15, font_weight="bold")]
    for number, (name, colour) in enumerate(zip(columns, COLOURS)):
        x, top = 16 + number % 2 * 330, 37 + number // 2 * 18
        legend += [f"<rect x='{x}' y='{top}' width='12' height='10' fill='{colour}'/>", text(x + 18, top + 9, name)]
    peer = text(LEFT + SCALE, TOP - 14, "PyTorch", 12, text_anchor="middle")
    note = text(16, bottom + 34, "Shorter is faster. Training steps, and the generation of one token. Two threads, float32.", 11, "#555")
    height = bottom + 46
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' width='{WIDTH}' height='{height}' viewBox='0 0 {WIDTH} {height}' {FONT}>",
                      f"<rect width='{WIDTH}' height='{height}' fill='white'/>", *axis, *legend, peer, *marks, note, "</svg>", ""])


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    (root / PAGE).write_text(page(root))
