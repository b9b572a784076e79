#!/usr/bin/env python3
"""Opens pages of `xtape report` about inputs of every kind in Chromium: every view opens without an error in the console.

usage: browse.py PROGRAM SOURCE_ROOT

Skipped without Chromium."""
import json, os, sys, tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from counted import holds, report
from inputs import attack, deep, failed_run, flat_tape, hostile_tape, long_run, onnx_resnet, plays, unet, write_arrays
from pages import in_browser, opens

xtape, source = map(os.path.abspath, sys.argv[1:3])


def report_opens(chromium, name, words, views, width=1300):
    plays(xtape, "report", *words, "--out", "page.html")
    opens(chromium, name, "page.html", views, width)


def check_definitions(chromium):
    report_opens(chromium, "GPT-2 124M with its backward", ["gpt2", "--with", "b=4,t=1024"], ["graph", "memory", "time"])
    report_opens(chromium, "22,000 nodes", ["gpt2", *deep, "--with", "b=2,t=8"], ["graph", "memory", "time"])
    flat_tape(xtape, "flat")
    report_opens(chromium, "22,000 nodes without modules", ["flat"], ["graph", "memory", "time"])
    report_opens(chromium, "Mamba-2", ["mamba2", "--with", "b=1,t=512"], ["graph", "memory", "time"])


def check_onnx(chromium):
    report_opens(chromium, "a U-Net", [*unet(source), "--values"], ["graph", "memory", "time", "values"])
    onnx_resnet(xtape, "resnet.onnx")
    report_opens(chromium, "an ONNX ResNet", ["resnet.onnx"], ["graph", "memory", "time"], 800)


def check_runs(chromium):
    failed_run(xtape, "failed")
    report_opens(chromium, "a failed run", ["failed"], ["runs", "failure", "graph"], 400)
    long_run("long", attack)
    report_opens(chromium, "100,000 updates", ["long"], ["runs"])


def check_hostile(chromium):
    hostile_tape(xtape, "hostile")
    report_opens(chromium, "hostile names", ["hostile", "--title", attack], ["graph", "memory", "time"])


def check_strange(chromium):
    """Little or nothing to show is said, at the width of a telephone."""
    def says(name, view, *texts):
        chromium.value(f"document.getElementById('tab-{view}').click()")
        text = chromium.value("document.getElementById('view').textContent")
        holds(f"{name} says so", all(each in text for each in texts), text[:300])
    numbers = {"empty": [], "one": [{"step": 1, "loss": 3}], "infinite": [{"step": step, "loss": None} for step in (1, 2)]}
    for name, lines in numbers.items():
        os.mkdir(name)
        Path(name, "recipe.json").write_text('{"xtape": 2}')
        Path(name, "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        report_opens(chromium, f"a run that is {name}", [name], ["runs"], 400)
        says(name, "runs", {"empty": "No update has been recorded yet.", "one": "Loss3", "infinite": "not finite at 2 updates–"}[name])
        drawn = chromium.value("""(() => {
          const canvas = document.querySelector("#view canvas"), { data } = canvas?.getContext("2d").getImageData(0, 0, canvas.width, canvas.height) ?? { data: [] };
          return data.some((red, i) => i % 4 === 0 && red === 0 && data[i + 1] === 114 && data[i + 2] === 178 && data[i + 3] === 255);
        })()""")
        holds(f"a number is drawn where there is one: {name}", drawn == (name == "one"))
    report_opens(chromium, "two runs with other measures", ["one", "infinite"], ["runs"], 400)
    plays(xtape, "report", "failed/capsule", "--out", "page.html")
    opens(chromium, "a capsule", "page.html", ["failure", "graph"], 400)
    long = "x" * 2000
    functions = {"constant": {"inputs": {}, "result": "ones([3])"}, "long": {"inputs": {long: "float [n]"}, "result": f"exp({long})"}}
    for name, function in functions.items():
        Path(f"{name}.json").write_text(json.dumps({"xtape": 2, "name": name, "model": {"functions": {name: function}}}))
        plays(xtape, "show", f"{name}.json", "--tape", name, *(["--with", "n=0"] if function["inputs"] else []), "--save", f"{name}_tape")
    plays(xtape, "export", "constant_tape", "constant.onnx")
    report_opens(chromium, "an ONNX file without inputs", ["constant.onnx", "--values", "--plays", "1"], ["graph", "memory", "time", "threads", "values"], 400)
    says("a plan without buffers", "memory", "0 bytes in 0 buffers", "None.")
    write_arrays("none.safetensors", {long: ((0,), [])})
    report_opens(chromium, "long names and no elements", ["long_tape", "--in", "none.safetensors", "--values", "--plays", "1", "--sparsity", "jacobian"],
                 ["graph", "memory", "time", "threads", "sparsity", "values"], 400)
    says("a matrix without rows", "sparsity", "0 tangents, not 0")


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    in_browser(check_definitions, check_onnx, check_runs, check_hostile, check_strange)
sys.exit(report())
