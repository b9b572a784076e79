"""The first table of docs/explanation/performance.md. A cell `0.39 (12.1/30.7)` has a ratio and the times of xtape and of PyTorch."""
import re

TABLE = "docs/explanation/performance.md"
CELL = re.compile(r"([\d.]+) \(([\d.]+)/([\d.]+)\)$")


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
