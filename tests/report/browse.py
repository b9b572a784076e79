#!/usr/bin/env python3
"""Opens pages of `xtape report` about inputs of every kind in Chromium: every view opens without an error in the console.

usage: browse.py PROGRAM SOURCE_ROOT

Skipped without Chromium."""
import os, sys, tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import browser
from counted import holds, report, skips
from inputs import attack, deep, failed_run, flat_tape, hostile_tape, long_run, onnx_resnet, plays, unet
from pages import opens

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


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    if browser.program:
        with browser.Browser() as chromium:
            for check in (check_definitions, check_onnx, check_runs, check_hostile):
                check(chromium)
    else:
        skips("it needs Chromium")
sys.exit(report())
