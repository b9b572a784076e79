"""Pages of `xtape report` in tests: their data, and what a visit of every view finds."""
import base64, json, re, zlib
from pathlib import Path

import browser
from counted import holds, skips
from keys import check_access

visit = (Path(__file__).parent / "visit.js").read_text()


def in_browser(*checks):
    """Calls every check with a browser, if there is one."""
    if not browser.program:
        return skips("it needs Chromium")
    with browser.Browser() as chromium:
        for check in checks:
            check(chromium)


def text_of(page):
    """The data of a page as its file has them."""
    return re.search(r'<script id="data" type="text/plain">([A-Za-z0-9+/=]*)</script>', Path(page).read_text())[1]


def data_of(page):
    return json.loads(zlib.decompress(base64.b64decode(text_of(page))))


def opens(chromium, name, page, views, width=1300):
    """Visits every view of a page, checks what holds of all pages, and returns what visit.js finds."""
    chromium.sized(width, 900)
    chromium.opened(page)
    check_access(chromium, name, width)
    found = chromium.value(visit)
    errors = chromium.value("document.documentElement.dataset.errors")
    holds(f"{name}: no error in the console", not errors, str(errors))
    holds(f"{name}: its views are {views}", list(found["views"]) == views, str(list(found["views"])))
    for view, of in found["views"].items():
        holds(f"{name}: every canvas of {view} is painted", all(of["painted"]))
    holds(f"{name}: boxes do not overlap and edges go one way", not found.get("faults"), str(found.get("faults"))[:400])
    holds(f"{name}: nothing of the data is executed", found["attacked"] == 0 and found["strangers"] == 0)
    holds(f"{name}: the page is not wider than the window", not found["wide"])
    return found
