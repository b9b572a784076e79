#!/usr/bin/env python3
"""Measures large pages of `xtape report` in Chromium: their size, the time to write them, the time to the first view, and the
time of a frame while a view moves.

usage: report.py PROGRAM

Writes a line for each page. It drives the browser through a pipe (Chrome DevTools Protocol), because only then does it make
frames as for a person."""
import json, os, re, shutil, subprocess, sys, tempfile, time
from pathlib import Path

xtape = os.path.abspath(sys.argv[1])
browser = next(filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])))
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


class Browser:
    def __init__(self, folder):
        to_browser, self.to = os.pipe()
        self.read, from_browser = os.pipe()

        def place():  # the browser reads from handle 3 and writes to handle 4
            os.dup2(to_browser, 13), os.dup2(from_browser, 14), os.dup2(13, 3), os.dup2(14, 4)
        self.process = subprocess.Popen([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,900",
                                         f"--user-data-dir={folder}/browser", "--remote-debugging-pipe"], preexec_fn=place,
                                        close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.number, self.rest, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.read, 1 << 20)
            line, self.rest = self.rest.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(answer["error"])
                return answer["result"]

    def value(self, expression):
        return self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)["result"].get("value")

    def opened(self, path):
        """Opens a page. Returns the seconds until its first view is painted."""
        begun = time.time()
        self.call("Page.navigate", url=f"file://{path}")
        while not self.value("document.documentElement.dataset.ready"):
            time.sleep(0.01)
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.time() - begun


def written(out, *words):
    begun = time.time()
    subprocess.run([xtape, "report", *words, "--out", out], check=True)
    return time.time() - begun


def flat_tape(folder):
    """A tape of 22,000 nodes that belong to no module."""
    words = [word for each in ("n_layer=350", "n_embd=8", "n_head=2", "vocab_size=11") for word in ("--set", each)]
    subprocess.run([xtape, "show", "gpt2", *words, "--tape", "loss", "--with", "b=2,t=8", "--grad", "--mode", "train", "--save", folder], check=True)
    tape = Path(folder, "tape.json")
    tape.write_text(re.sub(r'"path":"[^"]*","where":"[^"]*","line":\d+,', "", tape.read_text()))


def long_run(folder):
    os.mkdir(folder)
    Path(folder, "recipe.json").write_text('{"xtape": 2, "name": "long"}')
    with open(f"{folder}/metrics.jsonl", "w") as lines:
        for step in range(1, 100_001):
            lines.write(f'{{"step":{step},"loss":{3 / (1 + step / 9000) + step % 17 / 90},"learning_rate":{1e-3 * step},"gradient_norm":{1 + step % 5 / 9}}}\n')


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    flat_tape("flat")
    long_run("long")
    chromium = Browser(work)
    deep = ["--set", "n_layer=350", "--set", "n_embd=8", "--set", "n_head=2", "--set", "vocab_size=11"]
    for name, words in {"GPT-2 124M, training": ["gpt2", "--with", "b=4,t=1024"], "350 layers, 22,000 nodes": ["gpt2", *deep, "--with", "b=2,t=8"],
                        "22,000 nodes without modules": ["flat"], "100,000 updates": ["long"]}.items():
        seconds = written("page.html", *words)
        size = os.path.getsize("page.html")
        first = chromium.opened(f"{work}/page.html")
        views = chromium.value("[...document.querySelectorAll('#tabs button')].map(tab => tab.id)")
        print(f"{name}: {size / 1e6:.2f} MB, written in {seconds:.2f} s, first view {first:.2f} s", flush=True)
        for view in views:
            opened = chromium.value(f"(() => {{ const from = performance.now(); document.getElementById('{view}').click(); return performance.now() - from; }})()")
            if view in ("tab-runs", "tab-compare"):
                continue
            times = chromium.value(MOVES)
            print(f"    {view[4:]}: opened in {opened:.0f} ms; frames {times['frames'][30]:.0f} ms in the middle, {times['frames'][-3]:.0f} ms at most; "
                  f"drawing {times['drawn'][29]:.1f} ms, {times['drawn'][-1]:.1f} ms at most", flush=True)
    chromium.process.terminate()
    chromium.process.wait()
