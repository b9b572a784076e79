#!/usr/bin/env python3
"""Measures large pages of `xtape report` in Chromium: their size, the time to write them, the time to the first view, and the
time of a frame while a view moves.

usage: report.py PROGRAM

Writes a line for each page."""
import os, subprocess, sys, tempfile, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "report"))
from browser import Browser
from inputs import flat_tape, long_run

xtape = os.path.abspath(sys.argv[1])
# Moves the picture of the open view, and returns the times between frames and those of drawing, in ms, sorted.
MOVES = """new Promise(done => {
  const stage = [...report.views.values()].map(each => each.view.stage).find(each => each?.canvas.isConnected);
  const frames = [], drawn = [];
  let last = 0, count = 0;
  const frame = now => {
    if (last) frames.push(now - last);
    last = now;
    drawn.push(stage.drawn);
    if (++count === 60) return done({frames: frames.sort((a, b) => a - b), drawn: drawn.slice(2).sort((a, b) => a - b)});
    count % 2 ? stage.zoom(count < 30 ? 1.12 : 1 / 1.12) : stage.pan(9, 5);
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def written(out, *words):
    begun = time.time()
    subprocess.run([xtape, "report", *words, "--out", out], check=True)
    return time.time() - begun


with tempfile.TemporaryDirectory() as work, Browser() as chromium:
    os.chdir(work)
    flat_tape(xtape, "flat")
    long_run("long")
    deep = ["--set", "n_layer=350", "--set", "n_embd=8", "--set", "n_head=2", "--set", "vocab_size=11"]
    for name, words in {"GPT-2 124M, training": ["gpt2", "--with", "b=4,t=1024"], "350 layers, 22,000 nodes": ["gpt2", *deep, "--with", "b=2,t=8"],
                        "22,000 nodes without modules": ["flat"], "100,000 updates": ["long"]}.items():
        seconds = written("page.html", *words)
        size = os.path.getsize("page.html")
        first = chromium.opened("page.html")
        views = chromium.value("[...document.querySelectorAll('#tabs button')].map(tab => tab.id)")
        print(f"{name}: {size / 1e6:.2f} MB, written in {seconds:.2f} s, first view {first:.2f} s", flush=True)
        for view in views:
            opened = chromium.value(f"(() => {{ const from = performance.now(); document.getElementById('{view}').click(); return performance.now() - from; }})()")
            if view in ("tab-runs", "tab-compare"):
                continue
            times = chromium.value(MOVES)
            print(f"    {view[4:]}: opened in {opened:.0f} ms; frames {times['frames'][30]:.0f} ms in the middle, {times['frames'][-3]:.0f} ms at most; "
                  f"drawing {times['drawn'][29]:.1f} ms, {times['drawn'][-1]:.1f} ms at most", flush=True)
