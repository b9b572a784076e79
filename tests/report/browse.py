#!/usr/bin/env python3
"""Opens pages of `xtape report` about inputs of every kind in Chromium: every view opens without an error in the console.

usage: browse.py PROGRAM SOURCE_ROOT

Skipped without Chromium."""
import json, os, sys, tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import browser
from counted import holds, report, skips
from inputs import attack, deep, failed_run, flat_tape, hostile_tape, long_run, onnx_resnet, plays, small, trained, unet

xtape, source = map(os.path.abspath, sys.argv[1:3])
visit = (Path(__file__).parent / "visit.js").read_text()


class Pages:
    def __init__(self, chromium):
        self.chromium = chromium

    def opens(self, name, words, views, width=1300):
        """Writes a page, visits it, and returns what visit.js finds."""
        plays(xtape, "report", *words, "--out", "page.html")
        self.chromium.sized(width, 900)
        self.chromium.opened("page.html")
        self.chromium.value(visit)
        self.chromium.until("document.documentElement.dataset.found")
        found = json.loads(self.chromium.value("document.documentElement.dataset.found"))
        errors = self.chromium.value("document.documentElement.dataset.errors")
        holds(f"{name}: no error in the console", not errors, str(errors))
        holds(f"{name}: its views are {views}", list(found["views"]) == views, str(list(found["views"])))
        for view, of in found["views"].items():
            holds(f"{name}: every canvas of {view} is painted", all(of["painted"]))
            holds(f"{name}: every control of {view} has a name", not of["unnamed"])
        holds(f"{name}: boxes do not overlap and edges go one way", not found.get("faults"), str(found.get("faults"))[:400])
        holds(f"{name}: nothing of the data is executed", found["attacked"] == 0 and found["strangers"] == 0)
        holds(f"{name}: the page is not wider than the window", not found["wide"])
        return found


def check_definitions(pages):
    pages.opens("GPT-2 124M with its backward", ["gpt2", "--with", "b=4,t=1024"], ["graph", "memory", "time"])
    pages.opens("22,000 nodes", ["gpt2", *deep, "--with", "b=2,t=8"], ["graph", "memory", "time"])
    flat_tape(xtape, "flat")
    pages.opens("22,000 nodes without modules", ["flat"], ["graph", "memory", "time"])
    pages.opens("Mamba-2", ["mamba2", "--with", "b=1,t=512"], ["graph", "memory", "time"])


def check_onnx(pages):
    pages.opens("a U-Net", [*unet(source), "--values"], ["graph", "memory", "time", "values"])
    onnx_resnet(xtape, "resnet.onnx")
    pages.opens("an ONNX ResNet", ["resnet.onnx"], ["graph", "memory", "time"], 800)


def check_runs(pages):
    failed_run(xtape, "failed")
    pages.opens("a failed run", ["failed"], ["runs", "failure", "graph"], 400)
    long_run("long", attack)
    pages.opens("100,000 updates", ["long"], ["runs"])


def check_hostile(pages):
    hostile_tape(xtape, "hostile")
    pages.opens("hostile names", ["hostile", "--title", attack], ["graph", "memory", "time"])


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    if browser.program:
        with browser.Browser() as chromium:
            for check in (check_definitions, check_onnx, check_runs, check_hostile):
                check(Pages(chromium))
    else:
        skips("it needs Chromium")
sys.exit(report())
