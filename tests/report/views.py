#!/usr/bin/env python3
"""What the views of `xtape report` show of known inputs: slices of arrays, sparsity, threads, watched values, two tapes side by side.

usage: views.py PROGRAM SOURCE_ROOT

The cases in a browser are skipped without Chromium."""
import base64, json, math, os, shutil, struct, sys, tempfile, zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from counted import holds, report
from inputs import changed_gpt2, measured_run, plays, sets, small, trained, write_arrays
from keys import check_keys
from pages import data_of, in_browser, text_of

xtape, source = map(os.path.abspath, sys.argv[1:3])
functions = {"squares": {"inputs": {"x": "float [a, d, b, c]"}, "result": "sum(x * x)"},
             "band": {"inputs": {"x": "float [n]"}, "result": "x[1:] * x[:-1]"},
             "chain": {"inputs": {"x": "float [n]"}, "result": "sum(x[1:] * x[:-1])"},
             "empty": {"inputs": {"x": "float [n]"}, "result": "exp(x)"}, "next": {"inputs": {"x": "int64 [n]"}, "result": "x + 1"}}


def define(function):
    Path(f"{function}.json").write_text(json.dumps({"xtape": 2, "name": function, "model": {"functions": {function: functions[function]}}}))


def slices():
    """The images of an array of 100 × 3 × 8 × 90 elements."""
    shape, numbers = (100, 3, 8, 90), lambda i: math.sin(i * 0.37) * (1 + i % 7)
    elements = struct.unpack(f"<{math.prod(shape)}f", struct.pack(f"<{math.prod(shape)}f", *map(numbers, range(math.prod(shape)))))
    write_arrays("x.safetensors", {"x": (shape, elements)})
    define("squares")
    plays(xtape, "show", "squares.json", "--tape", "squares", "--with", "a=100,d=3,b=8,c=90", "--save", "sliced")
    plays(xtape, "report", "sliced", "--in", "x.safetensors", "--values", "--plays", "2", "--threads", "2", "--out", "sliced.html")
    data = data_of("sliced.html")
    image = next(value["of"]["image"] for value in data["plays"][0]["values"] if "'x'" in data["strings"][value["node"]])
    holds("the longest axis is thinned first, and rows and columns are told", image["axes"] == [[100, 25], [3, 3]] and image["of"] == [8, 90]
          and (image["rows"], image["columns"]) == (8, 64), str({key: image[key] for key in image if key != "pixels"}))
    least, most = min(elements), max(elements)
    expected = bytes(math.floor(254 * ((elements[((4 * a * 3 + d) * 8 + row) * 90 + column * 90 // 64] / 2 - least / 2) / (most / 2 - least / 2)) + 0.5)
                     for a in range(25) for d in range(3) for row in range(8) for column in range(64))
    holds("a picture has the elements at its places", base64.b64decode(image["pixels"]) == expected)
    return data


def check_threads(data):
    plan = data["plays"][0]["plans"][0]
    trace, steps = plan["trace"], len(plan["steps"]["op"])
    events = sorted(zip(trace["thread"], trace["start"], trace["length"], trace["step"]))
    holds("every step is an event of the playing thread", [step for thread, *_, step in events if thread == 0] == list(range(steps)))
    holds("at most two threads play", 1 <= trace["threads"] <= 2 and trace["left_out"] == 0)
    holds("a thread does one thing at a time", all(a[0] != b[0] or a[1] + a[2] <= b[1] + 1 for a, b in zip(events, events[1:])), str(events))


def sparsity(function, kind, n):
    define(function)
    plays(xtape, "report", f"{function}.json", "--tape", function, "--with", f"n={n}", "--sparsity", kind, "--out", f"{function}.html")
    return data_of(f"{function}.html")["plays"][0]["sparsity"]["matrices"][0]


def check_sparsity():
    band = sparsity("band", "jacobian", 9)
    cells = base64.b64decode(band["picture"]["pixels"])
    holds("a Jacobian with two diagonals", (band["rows"], band["columns"], band["elements"], band["tangents"]) == (8, 9, 16, 2), str(band))
    holds("its picture has its elements", [i for i, cell in enumerate(cells) if cell] == [i for i in range(72) if i % 9 - i // 9 in (0, 1)])
    chain = sparsity("chain", "hessian", 1000)
    cells = base64.b64decode(chain["picture"]["pixels"])
    holds("a Hessian with two diagonals", (chain["rows"], chain["columns"], chain["elements"]) == (1000, 1000, 1998) and chain["products"] <= 3, str(chain))
    holds("a large picture has cells of several elements", chain["picture"]["rows"] == 192 and all((cell > 0) == (abs(i // 192 - i % 192) < 1) or
          abs(i // 192 - i % 192) == 1 for i, cell in enumerate(cells)))
    plays(xtape, "report", "gpt2", *small, *sets(n_positions=64), "--with", "b=2,t=4", "--sparsity", "jacobian", "--out", "weights.html")
    play = data_of("weights.html")["plays"][0]
    names = [data_of("weights.html")["strings"][name] for name in play["graph"]["name"]]
    of = {names[each["input"]]: (each["rows"], each["columns"], each["elements"]) for each in play["sparsity"]["matrices"]}
    holds("a loss depends on the weights that it uses", of["wte.weight"] == (1, 88, 88) and of["wpe.weight"] == (1, 512, 32) and
          not play["sparsity"]["left_out"], str(of))
    plays(xtape, "report", "gpt2", "--with", "b=1,t=4", "--sparsity", "jacobian", "--out", "large.html")
    found = data_of("large.html")["plays"][0]["sparsity"]
    holds("large weights are left out", "wte.weight" in found["left_out"] and found["most"] == 1 << 27)
    define("next")
    error = plays(xtape, "report", "next.json", "--tape", "next", "--with", "n=3", "--sparsity", "jacobian", code=2)
    holds("integers have no derivatives", "needs an input or a parameter of floats" in error, error)
    empty = sparsity("empty", "jacobian", 0)
    holds("a matrix without rows has no elements", (empty["rows"], empty["columns"], empty["elements"]) == (0, 0, 0), str(empty))


def check_watched():
    measured_run("run")
    plays(xtape, "report", "run", "--out", "run.html")
    watched = data_of("run.html")["runs"][0]["watched"]
    holds("watched values are in the page", watched["steps"] == list(range(1, 401, 20)) and
          watched["kinds"]["largest"]["h.1.attn.scores"] == [float(f"{step / 50:.7g}") for step in range(1, 401, 20)], str(watched))


COMPARED = """(() => {
  const { graphs } = report.views.get("compare").view, plays = graphs.map(graph => graph.play);
  const [a, b] = plays, of = (play, test) => [...play.op.keys()].filter(test).map(node => play.change[node]);
  document.querySelector("tr.go").click();
  const { node } = report.state.selection, shown = graphs.map(graph => graph.tree.itemOf[graph === graphs[0] ? node : a.twin[node]]);
  return {
    changes: a.change.filter(change => change !== "").length + b.change.filter(change => change === "only").length,
    mutual: a.twin.every((twin, i) => twin < 0 || b.twin[twin] === i) && b.twin.every((twin, i) => twin < 0 || a.twin[twin] === i),
    tanh: of(b, node => b.op[node] === "tanh" && !b.isBackward(node)),
    dropout: of(a, node => a.op[node] === "dropout" && a.sites[a.site[node]].path.endsWith(".mlp") && !a.isBackward(node)),
    weight: of(a, node => a.label[node] === "h.1.mlp.c_fc.weight"), tokens: of(a, node => a.label[node] === "tokens"),
    marked: graphs.map((graph, i) => graph.marked.has(shown[i])), signs: shown.map((item, i) => graphs[i].linesOf(item)[0]),
  };
})()"""


def check_compared(chromium):
    changed_gpt2(source, "changed.json")
    plays(xtape, "report", "gpt2", "changed.json", *small, "--with", "b=2,t=4", "--out", "two.html")
    chromium.opened("two.html")
    chromium.value("document.getElementById('tab-compare').click()")
    found = chromium.value(COMPARED)
    holds("each node has one twin at most", found["mutual"])
    holds("new calls are only in the second", found["tanh"] == ["only"] * 4, str(found["tanh"]))
    holds("calls that are gone are only in the first", found["dropout"] == ["only"] * 4, str(found["dropout"]))
    holds("a change says what differs", found["weight"] == ["type: f32 8×32 → f32 8×16"], str(found["weight"]))
    holds("what is equal has no change", found["tokens"] == [""])
    holds("a click shows a node in both graphs", found["marked"] == [True, True])
    holds("a sign stands before a call that differs", all(sign.startswith("≠ ") for sign in found["signs"]), str(found["signs"]))
    shutil.copy(Path(source, "models/gpt2.json"), "same.json")
    plays(xtape, "report", "gpt2", "same.json", *small, "--with", "b=2,t=4", "--out", "equal.html")
    chromium.opened("equal.html")
    chromium.value("document.getElementById('tab-compare').click()")
    holds("equal tapes have no differences", "Differences: 0" in chromium.value("document.getElementById('view').textContent"))


def check_sliders(chromium):
    chromium.opened("sliced.html")
    chromium.value("document.getElementById('tab-values').click()")
    chromium.value("[...document.querySelectorAll('tr.go')].find(row => row.textContent.includes(\"'x'\")).click()")
    moved = chromium.value("""(() => {
      const before = document.querySelector("#details canvas.image").toDataURL(), slider = document.querySelector("#details .slices input");
      slider.value = 24;
      slider.dispatchEvent(new Event("input"));
      return { text: document.getElementById("details").textContent, other: document.querySelector("#details canvas.image").toDataURL() !== before };
    })()""")
    holds("a slider shows another place of an axis", moved["other"] and "[96, 0, :, :]" in moved["text"], moved["text"])
    holds("the page says what is thinned", "64 of 90 columns, 25 of 100 places of axis 0" in moved["text"], moved["text"])


def check_tabs(chromium):
    for page, view, words in (("sliced", "threads", ["One play", "playing thread", "busy"]), ("band", "sparsity", ["Jacobian by x", "2 tangents, not 9"]),
                              ("chain", "sparsity", ["Hessian by x", "directions, not 1,000", "192 × 192 cells"]),
                              ("empty", "sparsity", ["Jacobian by x", "0 tangents"]), ("large", "sparsity", ["Left out: wte.weight", "134,217,728"]),
                              ("run", "runs", ["Watched: h.1.attn.scores", "Loss"])):
        chromium.opened(f"{page}.html")
        chromium.value(f"document.getElementById('tab-{view}').click()")
        chromium.frames()
        text = chromium.value("document.getElementById('view').textContent")
        holds(f"the view {view} of {page} shows it", all(word in text for word in words), text[:1000])
        holds(f"the view {view} of {page} has no error", not chromium.value("document.documentElement.dataset.errors"))


def check_print(chromium):
    """A page is printed in light colours, its pictures too."""
    drawn = 'document.querySelector("#view .stage canvas").toDataURL()'
    chromium.sized(1000, 900, "dark")
    chromium.opened("run.html")
    printed = chromium.value(f"(() => {{ dispatchEvent(new Event('beforeprint')); const url = {drawn}; dispatchEvent(new Event('afterprint')); return url; }})()")
    chromium.frames()
    dark = chromium.value(drawn)
    chromium.sized(1000, 900)
    chromium.frames()
    holds("a picture is printed in light colours", printed == chromium.value(drawn) != dark)


def check_reload(chromium):
    """A page that reads its file again keeps the focus where it is."""
    page, text = Path("run.html").read_text(), text_of("run.html")
    data = base64.b64encode(zlib.compress(json.dumps(data_of("run.html") | {"reload": 2}).encode())).decode()
    Path("watched.html").write_text(page.replace(text, data))
    chromium.sized(1000, 900)
    chromium.opened("watched.html")
    for place in ("#theme", "#view .card canvas"):
        chromium.value(f"document.querySelector('{place}').focus(), globalThis.before = true")
        chromium.until("!globalThis.before && document.documentElement?.dataset.ready")
        holds(f"a reload keeps the focus at {place}", chromium.value(f"document.activeElement === document.querySelector('{place}')"))


def check_run(chromium):
    trained(xtape, "fine", *sets(steps=4))
    plays(xtape, "report", "fine", "--values", "--source", "the rain", "--out", "fine.html")
    check_keys(chromium, "fine.html")


def check_paper(chromium):
    """On paper, where nothing scrolls, every view is whole."""
    for page, tab in [("two.html", "compare"), *(("fine.html", tab) for tab in ("runs", "graph", "memory", "time", "values", "attention"))]:
        chromium.sized(700, 900)
        chromium.opened(page)
        chromium.value(f"document.getElementById('tab-{tab}').click()")
        chromium.call("Emulation.setEmulatedMedia", media="print")
        cut = chromium.value("""[...document.querySelectorAll("body *")].filter(each => each.checkVisibility() && each.id !== "title" &&
          (getComputedStyle(each).overflow !== "visible" && each.scrollHeight > each.clientHeight + 1 || each.getBoundingClientRect().right > 701))
          .map(each => `${each.tagName} ${each.id} ${each.className} ${each.textContent.slice(0, 40)}`)""")
        holds(f"{tab} is whole on paper", not cut, str(cut[:9]))


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    check_threads(slices())
    check_sparsity()
    check_watched()
    in_browser(check_compared, check_sliders, check_tabs, check_print, check_run, check_reload, check_paper)
sys.exit(report())
