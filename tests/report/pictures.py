#!/usr/bin/env python3
"""Compares how views of reports look with pictures in the folder pictures: views in three widths and two themes.

usage: pictures.py PROGRAM SOURCE_ROOT [--data | --write] [--into FOLDER]

The pages have data of files, NAME.deflate, so that a picture changes with the page alone: not with plans, times or processors. A
reference has a pixel for each square of 8 pixels, their mean colour. A browser draws letters alike only with the same fonts, so
the pictures are skipped where letters differ. --write makes the references again: look at the pictures first, which --into keeps.
--data makes the data again, which is needed when their form changes."""
import argparse, base64, os, platform, shutil, sys, tempfile, zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import browser
from counted import holds, report, skips
from inputs import changed_gpt2, failed_run, measured_run, plays, sets, small, trained
from pages import text_of

folder = Path(__file__).resolve().parent / "pictures"
views = {"fine": ["graph", "memory", "time", "attention"], "run": ["runs"], "failed": ["failure"], "two": ["compare"]}
most = 4  # of 255: the difference of a square that may be. A letter that is gone makes 10 to 40.

# Letters in the fonts of the page as numbers, which tell whether this browser draws as that of the references.
LETTERS = """(() => {
  const canvas = new OffscreenCanvas(500, 60), context = canvas.getContext("2d");
  ["13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif", "600 12px ui-monospace, 'DejaVu Sans Mono', monospace"]
    .forEach((font, i) => {
      context.font = font;
      context.fillText("Hamburgefonstiv 0123456789 × → ≠ − … ‹›", 4, 20 + 30 * i);
    });
  return context.getImageData(0, 0, 500, 60).data.reduce((sum, byte) => (sum * 31 + byte) % 4294967291, 7).toString(16);
})()"""
# smaller(png): an eighth of a picture as PNG. difference(png, reference): the largest difference of their squares, and its place.
SCRIPT = """globalThis.pictures = (() => {
  const read = async (png, by) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(png), c => c.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(bitmap.width / by, bitmap.height / by), context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
    return { canvas, pixels: context.getImageData(0, 0, canvas.width, canvas.height).data };
  };
  return {
    async smaller(png) {
      const blob = await (await read(png, 8)).canvas.convertToBlob();
      return btoa(new Uint8Array(await blob.arrayBuffer()).reduce((text, byte) => text + String.fromCharCode(byte), ""));
    },
    async difference(png, reference) {
      const [a, b] = [await read(png, 8), await read(reference, 1)], { width } = a.canvas;
      const found = { most: a.pixels.length === b.pixels.length ? 0 : 999 };
      a.pixels.forEach((value, i) => {
        const most = Math.abs(value - b.pixels[i]), at = Math.floor(i / 4);
        if (most > found.most) Object.assign(found, { most, x: 8 * (at % width), y: 8 * Math.floor(at / width) });
      });
      return found;
    },
  };
})()"""


def make_data(xtape, source):
    """The data of all pages. No page names a place of this machine: models are in the current folder, whose name is left out."""
    shutil.copytree(f"{source}/models", "models")
    os.environ["XTAPE_MODELS"] = "models"
    measured_run("run")
    trained(xtape, "fine", *sets(steps=4))
    failed_run(xtape, "failed")
    changed_gpt2(source, "changed.json")
    folder.mkdir(exist_ok=True)
    for name, words in {"run": ["run"], "fine": ["fine", "--values", "--plays", "3", "--memory", "1GiB", "--source", "the rain"],
                        "failed": ["failed"], "two": ["gpt2", "changed.json", *small, "--with", "b=2,t=4"]}.items():
        plays(xtape, "report", *words, "--title", f"A page, {name}", "--out", "page.html")
        data = zlib.decompress(base64.b64decode(text_of("page.html"))).decode()
        (folder / f"{name}.deflate").write_bytes(zlib.compress(data.replace(os.getcwd() + "/", "").encode(), 9))


def shown_pages(chromium, xtape):
    """Opens every view in every width and theme, and gives the name of its picture."""
    plays(xtape, "report", "gpt2", *small, "--out", "page.html")
    page, text = Path("page.html").read_text(), text_of("page.html")
    for name, of in views.items():
        Path("page.html").write_text(page.replace(text, base64.b64encode((folder / f"{name}.deflate").read_bytes()).decode()))
        chromium.opened("page.html")
        chromium.value(SCRIPT)
        for view in of:
            chromium.value(f"document.getElementById('tab-{view}').click()")
            for width in (400, 800, 1280):
                for theme in ("light", "dark"):
                    chromium.sized(width, 896, theme)
                    yield f"{name}-{view}-{width}-{theme}"


def picture(chromium):
    chromium.frames()
    return base64.b64encode(chromium.picture()).decode()


def compare(chromium, name, into):
    """The view looks as its reference, at once or when a busy machine has drawn it."""
    reference = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    for _ in range(5):
        now = picture(chromium)
        found = chromium.value(f"pictures.difference('{now}', '{reference}')")
        if found["most"] <= most:
            break
    if into:
        Path(into, f"{name}.png").write_bytes(base64.b64decode(now))
    holds(f"{name} looks as its picture", found["most"] <= most, str(found))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("source")
    parser.add_argument("--data", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--into")
    arguments = parser.parse_args()
    xtape, source, into = os.path.abspath(arguments.program), os.path.abspath(arguments.source), arguments.into and os.path.abspath(arguments.into)
    if not browser.program:
        return skips("it needs Chromium")
    with tempfile.TemporaryDirectory() as work, browser.Browser() as chromium:
        os.chdir(work)
        if arguments.data:
            return make_data(xtape, source)
        here, known = f"{platform.machine()}, {chromium.major()}, letters {chromium.value(LETTERS)}", folder / "drawn_by.txt"
        if arguments.write:
            known.write_text(here + "\n")
        elif known.read_text().strip() != here:
            return skips(f"the pictures are of {known.read_text().strip()}, and here is {here}")
        for name in shown_pages(chromium, xtape):
            if arguments.write:
                now, before = picture(chromium), None
                while now != before:  # a busy machine draws later
                    now, before = picture(chromium), now
                smaller = chromium.value(f"pictures.smaller('{now}')")
                (folder / f"{name}.png").write_bytes(base64.b64decode(smaller))
            else:
                compare(chromium, name, into)


main()
sys.exit(report())
