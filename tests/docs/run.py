#!/usr/bin/env python3
"""Plays every page of README.md, docs, models and examples. usage: run.py PROGRAM SOURCE_ROOT BUILD_ROOT [PAGE…]

A page is played as a reader does (page.py): all that it shows runs in one folder, in its order. A snippet passes where
its text stands in the file that it is from; where C++ compiles and runs; where `xtape check` finds no mistake in a
definition, and `xtape train` trains by a recipe; where all of its commands succeed; where each command prints what the
page shows. snippets.py says what a comment before a fence may tell about it. The snippets of broken.md pass where they
fail. A document as a whole passes where the files and options that it names are there, a link where it leads to a page or
heading. The reference passes where it has every public header, name and command, and every key of recipes and definitions."""
import collections, concurrent.futures, itertools, os, pathlib, sys, tempfile

sys.dont_write_bytecode = True  # the source tree stays as it is
import commands, definition_keys, gallery, lengths, links, names, recipe_keys, reference, speed
from cpp import Programs
from page import Page
from snippets import BROKEN, Snippet, all_snippets, documents
from texts import read
from workplace import Workplace


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
    example, every option a place, every key of recipes and definitions an entry, every program of examples,
    model and recipe a row, pages and pictures that scripts write are as these write them, and no page is too long."""
    wrong = reference.misplaced(source)
    wrong += [f"'{name}' of include/xtape has no comment" for name, told in reference.names(source).items() if not told]
    wrong += [f"{commands.PAGE} has no example of {name}" for name in commands.without_example(source, program)]
    wrong += [f"{speed.TABLE}: the ratio is not the quotient of the times in {cell}" for cell in speed.wrong_ratios(source)]
    wrong += [f"README.md and {speed.TABLE} have different ranges: {each}" for each in speed.wrong_ranges(source)]
    wrong += [f"no page says {option} in code marks" for option in names.untold(source, program)]
    wrong += [f"{names.GALLERY} has no row for {file}" for file in names.without_row(source)]
    wrong += recipe_keys.faults(source, program) + definition_keys.wrong(source) + gallery.faults(source) + lengths.faults(source)
    pages = {**reference.pages(source, program)}
    wrong += [f"{reference.FOLDER}/{file.name} is no page of a family" for file in (source / reference.FOLDER).iterdir()
              if f"{reference.FOLDER}/{file.name}" not in pages]
    for page, text in pages.items():
        if text != read(source, page):
            wrong.append(f"{page} is not what its script in tests/docs writes")
    outcome = ("failed", "; ".join(wrong)) if wrong else ("passed", "complete")
    return [(Snippet("docs/reference", 1, "reference"), outcome)]


def main():
    program, source, build = (pathlib.Path(os.path.realpath(word)) for word in sys.argv[1:4])
    snippets = [each for each in all_snippets(source) if not sys.argv[4:] or each.file in sys.argv[4:]]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as workers:
        workplace = Workplace(source, build, program, folder)
        programs = workers.submit(Programs, snippets, workplace)
        pages = [list(page) for _, page in itertools.groupby(snippets, lambda each: each.file)]
        pages.sort(key=lambda page: any(each.is_compiled() for each in page))  # these wait for the compiler
        played = [workers.submit(Page(page, workplace, programs).play) for page in pages]
        outcomes = [outcome for page in played for outcome in page.result()]
    outcomes += test_names(source, program) + links.test(source) + test_reference(source, program)
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
