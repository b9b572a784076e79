#!/usr/bin/env python3
"""Compiles, checks or runs every snippet of README.md, docs and models. usage: run.py PROGRAM SOURCE_ROOT BUILD_ROOT

A snippet passes where its text stands in the file that it is from; where C++ compiles and runs; where `xtape check`
finds no mistake in a definition, and `xtape train` trains by a recipe; where all of its commands succeed; where a
command prints its text. snippets.py says what a comment before a fence may tell about it. The snippets of broken.md
pass where they fail. A document as a whole passes where the files and options that it names are there. The reference
passes where it has every public header, name and command, and every key of recipes."""
import collections, concurrent.futures, json, os, pathlib, re, sys, tempfile

sys.dont_write_bytecode = True  # the source tree stays as it is
import commands, cpp, names, recipe_keys, reference
from snippets import BROKEN, Snippet, all_snippets, documents, fits, read
from workplace import Failed, Skipped, Workplace


def from_file(snippet, workplace):
    whole = read(workplace.source, snippet.clauses["from"])
    if whole is None:
        raise Failed(f"there is no file {snippet.clauses['from']}")
    text = snippet.text
    if snippet.kind == "cpp":  # documents may comment on a line more than the source does
        text, whole = (re.sub(r" *//.*", "", each) for each in (text, whole))
    if not fits(text, whole):
        raise Failed(f"its text does not stand in {snippet.clauses['from']}")
    return "compared"


def framed(snippet, workplace):
    if "in" not in snippet.clauses:
        return snippet.text
    frame = read(workplace.here, f"frames/{snippet.clauses['in']}.json")
    if frame is None:
        raise Failed(f"tests/docs/frames has no {snippet.clauses['in']}.json")
    return frame.replace("@snippet@", snippet.text.rstrip().rstrip(","))


def json_snippet(snippet, workplace):
    text = framed(snippet, workplace)
    try:
        keys = json.loads(text)
    except ValueError as error:
        raise Failed(f"no JSON: {error}\n{text}") from None
    place = workplace.new()
    recipe = "optimizer" in keys
    folder = place / "models" / "recipes" if recipe else place / "models"
    (folder / "snippet.json").write_text(text)
    workplace.prepare(place, snippet.needs(), folder)
    words = ["train", "snippet.json", "--out", "run"] if recipe else ["check", "snippet.json"]
    code, output = workplace.run(place, ["xtape", *words], folder)
    if code != 0:
        raise Failed(output)
    return "trained" if recipe else "checked"


def run_commands(snippet, workplace):
    place = workplace.new()
    workplace.prepare(place, snippet.needs())
    code, output = workplace.run(place, ["bash", "-euc", "\n".join(each.text for each in snippet.chain())])
    if code != 0:
        raise Failed(f"exit code {code}\n{output[-2000:]}")
    return "run"


def printed(snippet, workplace):
    if "output of" not in snippet.clauses:
        raise Failed("a text needs a comment that says which file it is from, or which command prints it")
    place = workplace.new()
    workplace.prepare(place, snippet.needs())
    _, output = workplace.run(place, ["bash", "-uc", snippet.clauses["output of"]])
    if not fits(snippet.text, output):
        raise Failed(f"'{snippet.clauses['output of']}' prints\n{output}")
    return "compared"


def tested(snippet, workplace):
    """What was done with the snippet; throws Failed or Skipped."""
    if snippet.fault:
        raise Failed(snippet.fault)
    if "skip" in snippet.clauses:
        raise Skipped(snippet.clauses["skip"])
    if "from" in snippet.clauses:
        return from_file(snippet, workplace)
    if "printed" in snippet.clauses:
        return printed_by_cpp(snippet)
    return {"json": json_snippet, "sh": run_commands, "text": printed}[snippet.kind](snippet, workplace)


def attempt(work, *words):
    try:
        return "passed", work(*words)
    except Failed as failure:
        return "failed", str(failure)
    except Skipped as reason:
        return "skipped", str(reason)


def printed_by_cpp(snippet):
    output = snippet.before.printed
    if output is None:
        raise Failed("the C++ before it is not run")
    if not fits(snippet.text, output):
        raise Failed(f"the C++ before it prints\n{output}")
    return "compared"


def test_cpp(snippets, workplace):
    """The outcome of each C++ snippet that is to be compiled."""
    try:
        for snippet in snippets:
            workplace.check_needs(snippet.needs())
        target, whole, errors = cpp.compiled(snippets, workplace)
    except Failed as failure:
        return [(snippet, ("failed", str(failure))) for snippet in snippets]
    outcomes = [(snippet, ("failed", errors.get(id(snippet), "what it continues does not compile")))
                for snippet in snippets if not any(snippet is each for each in whole)]
    for number, snippet in enumerate(whole):
        outcomes.append((snippet, attempt(lambda: cpp.run(number, snippet, target, workplace) or "compiled and run")))
    return outcomes


def test_names(source, program):
    """The outcome of each document as a whole."""
    options = names.known_options(source, program)
    outcomes = []
    for document in documents(source):
        unknown = names.unknown(document, options, source)
        outcome = ("failed", f"there is no {', '.join(unknown)}") if unknown else ("passed", "known")
        outcomes.append((Snippet(str(document.relative_to(source)), 1, "names"), outcome))
    return outcomes


def test_reference(source, program):
    """The outcome of the reference: every public header is on one page, every public name has a comment, every command an
    example, every key of recipes an entry, and pages that scripts write are as these write them."""
    wrong = reference.misplaced(source)
    wrong += [f"'{name}' of include/xtape has no comment" for name, told in reference.names(source).items() if not told]
    wrong += [f"{commands.PAGE} has no example of {name}" for name in commands.without_example(source, program)]
    wrong += [f"{recipe_keys.PAGE} says nothing about {key}" for key in recipe_keys.untold(source)]
    for writer in (reference, recipe_keys):
        if writer.page(source) != read(source, writer.PAGE):
            wrong.append(f"{writer.PAGE} is not what tests/docs/{writer.__name__}.py writes")
    outcome = ("failed", "; ".join(wrong)) if wrong else ("passed", "complete")
    return [(Snippet("docs/reference", 1, "reference"), outcome)]


def main():
    program, source, build = (pathlib.Path(os.path.realpath(word)) for word in sys.argv[1:4])
    snippets = all_snippets(source)
    compiled = [each for each in snippets
                if each.kind == "cpp" and not each.fault and not {"from", "skip"} & each.clauses.keys()]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as workers:
        workplace = Workplace(source, build, program, folder)
        texts = [each for each in snippets if "printed" in each.clauses and not each.fault]
        others = [each for each in snippets if not any(each is one for one in compiled + texts)]
        programs = workers.submit(test_cpp, compiled, workplace)
        outcomes = [(each, workers.submit(attempt, tested, each, workplace)) for each in others]
        outcomes = programs.result() + [(each, done.result()) for each, done in outcomes]
        outcomes += [(each, attempt(tested, each, workplace)) for each in texts]  # of programs that have run
    outcomes += test_names(source, program) + test_reference(source, program)
    totals, kinds = collections.Counter(), collections.Counter()
    for snippet, (outcome, note) in outcomes:
        if snippet.file == BROKEN:
            outcome, note = ("passed", "refused") if outcome == "failed" else ("failed", "it is broken, and not refused")
        totals[outcome] += 1
        kinds[outcome if outcome != "passed" else note if note == "refused" else f"{snippet.kind} {note}"] += 1
        if outcome != "passed":
            print(f"{outcome.upper()}: {snippet}: {note}")
    print(", ".join(f"{count} {name}" for name, count in sorted(kinds.items())))
    skipped = f", {totals['skipped']} skipped" if totals["skipped"] else ""
    print(f"{totals['passed']} passed, {totals['failed']} failed{skipped}")
    return 1 if totals["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
