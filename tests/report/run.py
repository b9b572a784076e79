#!/usr/bin/env python3
"""Pages that `xtape report` writes: their data, and how they behave in a browser.

usage: run.py PROGRAM SOURCE_ROOT

The cases in a browser need Chromium, and are skipped without it."""
import base64, functools, html, json, os, re, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from counted import holds, report
from inputs import attack, failed_run, hostile_tape, plays, sets, small, trained
from pages import data_of, in_browser, opens, text_of

xtape, source = map(os.path.abspath, sys.argv[1:3])
play = functools.partial(plays, xtape)


def made_run():
    """A run of 20,000 updates, in which one loss is much larger and one much smaller than all others."""
    Path("made").mkdir()
    Path("made/recipe.json").write_text(json.dumps({"xtape": 2, "name": attack, "schedule": {"rate": 0.1}}))
    with open("made/metrics.jsonl", "w") as lines:
        for step in range(1, 20001):
            loss = {7777: 99.5, 12345: -3.25}.get(step, 2 + step % 7 / 10)
            lines.write(f'{{"step":{step},"loss":{loss},"learning_rate":0.1,"gradient_norm":1}}\n')
            if step % 5000 == 0:
                lines.write(f'{{"step":{step},"validation_loss":{3 - step / 20000},"tokens":5}}\n')


def check_data():
    play("report", "gpt2", *small, "--with", "b=2,t=4", "--memory", "1GiB", "--out", "gpt2.html")
    page = Path("gpt2.html").read_text()
    data, assets = data_of("gpt2.html"), len(page) - len(text_of("gpt2.html"))
    holds("the page without data has at most 1 MB", assets <= 1e6, str(assets))
    addresses = set(re.findall(r"https?://[\w./]+", page))
    holds("the page names no address of the net", addresses == {"http://www.w3.org/2000/svg"}, str(addresses))
    shown = play("show", "gpt2", *small, "--tape", "loss", "--with", "b=2,t=4", "--grad", "--mode", "train")
    graph, plans = data["plays"][0]["graph"], data["plays"][0]["plans"]
    holds("the graph has the nodes that `show` prints", len(graph["op"]) == len(re.findall("^#", shown, re.M)))
    holds("there is a plan for each limit", [plan["limit"] for plan in plans] == [0, 1 << 30])
    holds("the parts of a peak add up", all(sum(plan["parts"].values()) == plan["peak"] for plan in plans))
    holds("the page has the definition", any('"name": "gpt2"' in file["text"] for file in data["plays"][0]["files"]))

    made_run()
    play("report", "made", "--out", "made.html")
    curves = data_of("made.html")["runs"][0]["curves"]
    loss = dict(zip(curves["loss"]["steps"], curves["loss"]["values"]))
    holds("a long curve keeps its extremes", loss.get(7777) == 99.5 and loss.get(12345) == -3.25)
    holds("a long curve is thinned", 1000 < len(loss) <= 4002, str(len(loss)))
    holds("evaluations are complete", curves["validation_loss"]["steps"] == [5000, 10000, 15000, 20000])
    check_samples()
    check_statistics()

    hostile_tape(xtape, "hostile")
    play("report", "hostile", "--title", attack, "--out", "hostile.html")
    page = Path("hostile.html").read_text()
    title = re.search(r"<title>([^<]*)</title>", page)[1]
    holds("the title is text", html.unescape(title) == attack, title)
    holds("names reach the page as data only", "attacked" not in page.replace(title, ""))
    data = data_of("hostile.html")
    texts = [file["text"] for file in data["plays"][0]["files"]]
    holds("a tape from elsewhere cannot make a page show other files", len(texts) > 0 and all('"blocks": {' in text or
          '"functions": {' in text for text in texts), str([text[:60] for text in texts]))
    holds("hostile names are in the data as they are", attack in data["strings"])


def small_run(name, metrics="", samples=""):
    Path(name).mkdir()
    Path(name, "recipe.json").write_text('{"xtape": 2}')
    Path(name, "metrics.jsonl").write_text(metrics)
    Path(name, "samples.jsonl").write_text(samples)
    play("report", name, "--out", f"{name}.html")
    return data_of(f"{name}.html")["runs"][0]


def check_samples():
    """Long samples are cut, and lines that are no samples are left out."""
    lines = [{"step": 1, "prompt": "a", "text": "b"}, {"step": 2, "prompt": "a", "text": "x" * 3999 + "é" * 9000},
             {"step": 3, "function": "f", "results": {"y": [0.5] * 9000}}]
    deep = '{"step": 4, "text": ' + "[" * 100000 + "]" * 100000 + "}\n"
    found = small_run("sampled", samples="".join(json.dumps(line) + "\n" for line in lines) + deep + '[1]\n{"step": 5, "te')["samples"]
    holds("samples are those of the file", [sample["step"] for sample in found] == [1, 2, 3] and found[0] == lines[0])
    holds("a long text is cut between characters", found[1]["text"] == "x" * 3999 + "…")
    holds("long results are cut", found[2]["results"].startswith('{"y":[0.5,0.5') and found[2]["results"].endswith("…"))


def check_statistics():
    """Where a module has no number, there is none; this differs from a number that is not finite."""
    lines = [{"step": 1, "statistics": {"b": {"mean": 1}}}, {"step": 2, "statistics": {"b": {"mean": None}, "a": {"mean": 2}}},
             {"step": 3, "statistics": {"a": {"mean": 3, "zeros": 0.5}}}, {"step": 3, "loss": 1}]
    found = small_run("modules", metrics="".join(json.dumps(line) + "\n" for line in lines))["statistics"]
    holds("statistics have their places", found == {"steps": [1, 2, 3],
          "kinds": {"mean": {"b": [1, True], "a": [None, 2, 3]}, "zeros": {"a": [None, None, 0.5]}}}, str(found))
    holds("modules are in the order of the file", list(found["kinds"]["mean"]) == ["b", "a"])
    found = small_run("infinite", metrics='{"step": 1, "loss": null}\n{"step": 2, "loss": null}\n')["curves"]
    holds("a curve says at how many updates it is not finite", found == {"loss": {"steps": [], "values": [], "not_finite": 2}}, str(found))
    found = small_run("bare", metrics='{"step": 1, "statistics": {"h": {}}}\n')["statistics"]
    holds("modules without numbers are no statistics", found == {"steps": [], "kinds": {}}, str(found))


def check_sources():
    """The page's files are formatted: lines of at most 120 characters without trailing spaces, and files of 400 lines."""
    for file in sorted(Path(source, "src/report/page").iterdir()):
        lines = file.read_text().splitlines()
        wrong = [number for number, line in enumerate(lines, 1) if len(line) > 120 or line != line.rstrip() or "\t" in line]
        holds(f"{file.name} is formatted", not wrong and len(lines) <= 400, str(wrong))


def check_watch():
    """`--watch` writes the page again when the run has grown, and ends at a signal."""
    watcher = subprocess.Popen([xtape, "report", "made", "--watch", "--out", "watched.html"])
    page = Path("watched.html")
    holds("a watch begins with a page", until(page.exists))
    holds("a watched page reloads itself", data_of(page)["reload"] > 0)
    for file, line in (("metrics.jsonl", '{"step":20001,"loss":77.5,"learning_rate":0.1,"gradient_norm":1}\n'),
                       ("samples.jsonl", '{"step":20001,"prompt":"a","text":"b"}\n')):
        before = page.read_bytes()
        with open(f"made/{file}", "a") as lines:
            lines.write(line)
        holds(f"a watched page grows with {file}", until(lambda: page.read_bytes() != before))
    watcher.send_signal(signal.SIGINT)
    holds("a watch ends at a signal", watcher.wait() == 130)


def until(condition):
    for _ in range(6000):  # minutes, which only a failure takes
        if condition():
            return True
        time.sleep(0.05)
    return False


def check_errors():
    holds("a definition is not played", "has no inputs to play" in play("report", "gpt2", "--values", code=2))
    holds("an unknown name is refused", "gtp2" in play("report", "gtp2", code=2))
    holds("--watch needs runs", "--watch needs runs" in play("report", "hostile", "--watch", code=2))
    holds("options have an effect", "no input of this page takes --in" in play("report", "gpt2", "--in", "x", code=2))
    holds("sizes have units", "MiB" in play("report", "gpt2", "--memory", "12", code=2))
    holds("a limit that no plan keeps to is refused", "needs at least" in play("report", "gpt2", *small, "--memory", "1 bytes", code=2))
    holds("a page ends in .html", "must end in .html, not 'gpt2.json'" in play("report", "gpt2", "--out", "gpt2.json", code=2))
    shutil.copy(Path(source, "models/recipes/digits.json"), "recipe.html")
    os.symlink("recipe.html", "link.html")
    for out in ("recipe.html", "./recipe.html", "link.html"):
        holds(f"{out} is left alone", "would replace the input 'recipe.html'" in play("report", "recipe.html", "--out", out, code=2))
    play("report", "made", "made", code=2)
    for words in (["--values"], ["--plays", "2"], ["--memory", "1GiB"], ["--source", "a"], ["--threads", "1"], ["--set", "steps=3"]):
        holds(f"--watch takes no {words[0]}", f"takes no {words[0]}" in play("report", "made", "--watch", *words, code=2))
    holds("a target needs a source", "--source" in play("report", "made", "--target", "a", code=2))
    holds("a run without a definition has a note", "has no graph of made" in data_of(made_page("made"))["notes"][0])
    for words in (["--values"], ["--memory", "1GiB"], ["--memory", "much"], ["--set", "steps"], ["--set", "steps=3"]):
        play("report", "made", *words, code=2)


def made_page(*words):
    play("report", *words, "--out", "page.html")
    return "page.html"


def check_heads(chromium):
    """Heads are in the order of their attention to a token: of the mean weight of its column."""
    attention = data_of("fine.html")["attention"][0]
    layers, heads, rows, columns = attention["shape"]
    weights = base64.b64decode(attention["weights"])
    means = {f"layer {at // heads + 1}, head {at % heads + 1}": sum(weights[at * rows * columns:][1:rows * columns:columns]) / 254 / rows
             for at in range(layers * heads)}
    chromium.opened("fine.html")
    found = chromium.value("""(() => {
      document.getElementById("tab-attention").click();
      const choice = document.querySelector("#view .bar select");
      choice.value = 1;
      choice.dispatchEvent(new Event("change"));
      return [...document.querySelectorAll("#view .small button")].map(button => button.textContent.split(": "));
    })()""")
    holds("every head has its share", all(abs(float(share.rstrip(" %")) / 100 - means[name]) < 0.006 for name, share in found) and
          len(found) == len(means) > 1, f"{found} {means}")
    holds("the largest share is first", [name for name, _ in found] == sorted(means, key=means.get, reverse=True), f"{found} {means}")


def check_browser(chromium):
    trained(xtape, "fine", *sets(steps=4, evaluate_every=2, statistics_every=1, samples='{"prompts": ["the "], "tokens": 4}'))
    failed_run(xtape, "failed")
    play("report", "fine", "--values", "--errors", "--plays", "1", "--source", "the rain", "--out", "fine.html")
    found = opens(chromium, "a run", "fine.html", ["runs", "graph", "memory", "time", "threads", "values", "attention"], 400)
    holds("a run: its curves and samples are there", all(word in found["views"]["runs"]["text"] for word in ("Loss", "Gradient norm", "Samples of", "Statistics")))
    holds("a run: time is measured", "1 measured" in found["views"]["time"]["text"])
    check_heads(chromium)
    for option in (["--values"], ["--plays", "1"], ["--errors"], ["--memory", "1GiB"], ["--threads", "1"]):
        holds(f"a capsule takes no {option[0]}", "no input of this page takes" in play("report", "failed/capsule", *option, code=2))
    play("report", "failed", "--out", "failed.html")
    text = opens(chromium, "a failed run", "failed.html", ["runs", "failure", "graph"])["views"]["failure"]["text"]
    holds("a failed run: the cause is named", "because of" in text and "gpt2.json" in text, text[:200])
    shutil.copytree("fine", "elsewhere/fine")
    names = [each["name"] for each in data_of(made_page("fine", "elsewhere/fine"))["plays"]]
    holds("plays of the same name are told apart", names == ["fine", "elsewhere/fine"], str(names))
    play("report", "gpt2", "hostile", *small, "--out", "both.html")
    found = opens(chromium, "hostile names", "both.html", ["graph", "memory", "time", "compare"])
    holds("hostile names: they are shown, with marks for controls", "‹U+202E›" in found["views"]["compare"]["text"])
    holds("equal layers are one box", "h × 4" in found["folds"], str(found["folds"]))
    every, first, turned = found["searched"]
    holds("search selects what has all words, in any order", 0 < first < every and first == turned, str(found["searched"]))
    holds("a click on a line selects its nodes", found["lineNodes"] > 0 and "line" in found["details"])
    sizes = [*small, "--with", "b=8,t=64"]
    least = re.search(r"needs at least [^(]*\(([0-9]+ bytes)\)", play("report", "gpt2", *sizes, "--memory", "1 bytes", code=2))[1]
    play("report", "gpt2", *sizes, "--memory", least, "--out", "plans.html")
    plans = data_of("plans.html")["plays"][0]["plans"]
    steps = [len(plan["steps"]["op"]) for plan in plans]
    found = opens(chromium, "two plans", "plans.html", ["graph", "memory", "time"])
    holds("every view shows the plan that is chosen", len(set(steps)) == 2 and found["planSteps"] == [f"{count} steps" for count in steps],
          f"{steps} {found.get('planSteps')}")


with tempfile.TemporaryDirectory() as work:
    os.chdir(work)
    check_data()
    check_sources()
    check_watch()
    check_errors()
    in_browser(check_browser)
sys.exit(report())
