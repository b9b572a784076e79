"""What a person meets in a page who uses keys alone, a screen reader, or eyes that need contrast."""
import json
from pathlib import Path

from counted import holds

access = (Path(__file__).parent / "access.js").read_text()
# Who has the focus, and whether a person sees it: an element with an outline, in the window, and not cut off by all sides of a box.
FOCUS = """(() => {
  const element = document.activeElement, box = element.getBoundingClientRect(), style = getComputedStyle(element);
  const edge = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth);
  const cut = around => getComputedStyle(around).overflow !== "visible" && ["left", "top", "right", "bottom"].every((side, i) =>
    i < 2 ? box[side] - edge < around.getBoundingClientRect()[side] : box[side] + edge > around.getBoundingClientRect()[side]);
  let covered = false;
  for (let around = element.parentElement; around; around = around.parentElement) covered ||= cut(around);
  return { name: element === document.body ? "" : element.id || element.getAttribute("aria-label") || element.textContent.trim() || element.type,
    seen: style.outlineStyle !== "none" && !covered && box.right > 0 && box.left < innerWidth && box.bottom > 0 && box.top < innerHeight };
})()"""
STOPS = "[...document.querySelectorAll('button, select, input, canvas, pre')].filter(each => each.checkVisibility() && each.tabIndex >= 0).length"
# What a mouse finds in a picture of the view, and how much of it keys do not find.
WALK = """((index) => {
  const keyOf = thing => thing?.text ?? (typeof thing === "number" ? Math.round(thing) : thing);
  const canvas = document.querySelectorAll("#view .stage canvas")[index], stage = report.stages().find(each => each.canvas === canvas);
  const boxes = stage.options.boxes(), all = new Set(), met = new Set();
  for (const { x, y } of boxes.map(box => stage.seen(box)))
    all.add(keyOf(stage.options.hit(stage.x + (x[0] + x[1]) / 2 / stage.kx, stage.y + (y[0] + y[1]) / 2 / stage.ky)));
  if (boxes.length < 150) for (const key of ["Home", ...boxes.map(() => "PageDown"), "Escape"]) {
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    met.add(keyOf(stage.hovered));
  }
  return { things: boxes.length, missed: boxes.length < 150 ? [...all].filter(each => !met.has(each)).length : 0 };
})"""


def tabs_through(chromium, name):
    """Tab comes to every control and picture once, where the focus is seen, and leaves the page."""
    chromium.value("document.querySelector('#tabs [tabindex=\"0\"]').focus()")
    chromium.press("Tab")
    chromium.press("Tab", shift=True)  # so that the focus is one of keys
    wanted, stops = chromium.value(STOPS), []
    while len(stops) < 2 * wanted and (now := chromium.value(FOCUS))["name"] and now not in stops[:1]:
        stops.append(now)
        chromium.press("Tab")
    holds(f"{name}: Tab comes to every control once", len(stops) == wanted, f"{wanted} {[stop['name'][:30] for stop in stops]}")
    holds(f"{name}: the focus is seen", all(stop["seen"] for stop in stops), str([stop["name"][:40] for stop in stops if not stop["seen"]]))


def walks(chromium, name):
    """Page Down comes to everything in a picture that a mouse finds."""
    for i in range(chromium.value("document.querySelectorAll('#view .stage canvas').length")):
        found = chromium.value(f"{WALK}({i})")
        holds(f"{name}: keys come to all of picture {i + 1}", found["missed"] == 0, str(found))


def unnamed(chromium):
    """The roles of controls that have no name for a screen reader."""
    roles = []
    for node in chromium.call("Accessibility.getFullAXTree")["nodes"]:
        focusable = any(each["name"] == "focusable" and each["value"].get("value") for each in node.get("properties", []))
        if focusable and not node["ignored"] and (node["role"]["value"] == "generic" or not node.get("name", {}).get("value", "").strip()):
            roles.append(node["role"]["value"])
    return roles


def check_access(chromium, name, width):
    """Opens every view in both themes."""
    for tab in chromium.value("[...document.querySelectorAll('#tabs button')].map(tab => tab.id)"):
        chromium.value(f"document.getElementById('{tab}').click(), document.querySelector('#view tr.go')?.click()")
        for theme in ("dark", "light"):
            chromium.sized(width, 900, theme)
            chromium.frames()
            faults = chromium.value(access)
            holds(f"{name}: {tab} can be read in {theme} colours", not faults, str(faults[:9]))
        roles = unnamed(chromium)
        holds(f"{name}: every control of {tab} has a name", not roles, str(roles))
        tabs_through(chromium, f"{name}: {tab}")
        walks(chromium, f"{name}: {tab}")


# What the keys have done: the selection, what is open, what is hovered and shown.
STATE = """(() => {
  const { state } = report, view = report.views.get([...report.views.keys()].find(key => key.replace(/\\d+$/, "") === state.view)).view;
  return { view: state.view, node: state.selection?.node ?? -1, kind: state.selection?.kind ?? "", title: state.selection?.title ?? "",
    items: view.items?.length ?? 0, tip: document.querySelector(".tip:not([hidden])")?.textContent ?? "",
    range: [view.shared?.from ?? null, view.shared?.to ?? null], zoom: view.stage?.kx ?? 0, theme: document.documentElement.dataset.theme,
    found: !document.getElementById("found").hidden, focus: document.activeElement.id || document.activeElement.tagName, order: view.order };
})()"""


def check_keys(chromium, page):
    """All that a mouse does in the page of a run, keys do."""
    def after(*keys, shift=False):
        for key in keys:
            chromium.press(key, shift)
        return chromium.value(STATE)

    def to(selector):
        """Tab comes there."""
        for _ in range(60):
            if chromium.value(f"document.activeElement.matches({json.dumps(selector)})"):
                return
            chromium.press("Tab")
        holds(f"Tab comes to {selector}", False)

    chromium.sized(1300, 900)
    chromium.opened(page)
    tabs = chromium.value("[...document.querySelectorAll('#tabs button')].map(tab => tab.id.slice(4))")
    to("#tabs button")
    views = [after("ArrowRight")["view"] for _ in tabs[1:]]
    holds("arrows open the next view", views == tabs[1:], f"{views} {tabs}")
    views = [after(str(i + 1)) for i in range(len(tabs))]
    holds("digits open views and go to their tabs", [(each["view"], each["focus"]) for each in views] == [(tab, f"tab-{tab}") for tab in tabs], str(views))

    after(str(tabs.index("graph") + 1))
    to("#view canvas")
    before = after("Home")
    opened = after("ArrowDown", "ArrowUp")
    holds("arrows go to a neighbour and back", before["tip"] == opened["tip"] != "", f"{before} {opened}")
    next(i for i in range(before["items"]) if after("PageDown")["tip"].endswith("Click to open"))
    holds("a module opens by Enter", after("Enter")["items"] > before["items"])
    holds("and closes", after("Enter")["items"] == before["items"])
    after("Home")
    next(i for i in range(before["items"]) if "Click" not in after("PageDown")["tip"])
    holds("a node is chosen by Enter", after("Enter")["kind"] == "node")
    holds("+ and - zoom, 0 shows everything", after("+")["zoom"] > after("-")["zoom"] and after("0")["zoom"] == before["zoom"])
    left = after("Escape")
    holds("Escape selects nothing, and hides what is hovered", left["kind"] == "" and left["tip"] == "")

    after(str(tabs.index("memory") + 1))
    to("#view canvas")
    holds("a buffer tells its steps", ", of " in after("PageDown")["tip"])
    holds("a buffer is chosen", after("Enter")["kind"] in ("node", "buffer"))

    after(str(tabs.index("attention") + 1))
    to("#view canvas")
    holds("a token tells where it attends", "attends to" in after("PageDown")["tip"] and "here:" in after("ArrowRight", "ArrowDown")["tip"])
    after(str(tabs.index("values") + 1))
    to("#view select")
    holds("numbers are sorted by another order", after("ArrowDown")["order"] == "largest size")
    to("#view tr button")
    rows = [after(key, "Enter")["title"] for key in ("End", "ArrowUp", "Home")]
    holds("arrows go through a table, whose rows Enter chooses", len(set(rows)) == 3, str(rows))
    to("#details button")
    holds("a link of the details leads on, and the focus to what it shows", after("Enter")["focus"] == "H2")

    after(str(tabs.index("runs") + 1))
    to("#view .card canvas")
    low, high = after("ArrowRight", "Enter", "ArrowRight", "ArrowRight", "Enter")["range"]
    holds("Enter begins and ends a range of a curve", low is not None and low < high, f"{low} {high}")
    holds("0 shows the whole curve", after("0")["range"] == [None, None])

    holds("/ goes to the search, which shows what it finds", after("/", *"ein")["found"] and after()["focus"] == "search")
    left = after("ArrowDown", "Escape")
    holds("Escape leaves what is found", not left["found"] and left["focus"] == "search", str(left))
    chosen = after(*"s", "ArrowDown", "ArrowDown", "Enter")
    holds("one of them is chosen", chosen["kind"] == "node" and "einsum" in chosen["title"] and not chosen["found"], str(chosen))
    to("#theme")
    theme = chromium.value(STATE)["theme"]
    holds("the button switches the theme, and d does", after(" ")["theme"] != theme and after("d")["theme"] == theme)
    to("#source button")
    holds("a line of the definition is chosen", after("ArrowDown", "Enter")["kind"] == "line")
