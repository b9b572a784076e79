"""A page, played as a reader does: its commands and programs run one after the other in one folder, which has only what
the source tree has, what the page shows, and what it says that a reader brings."""
import json, re

import cpp
from texts import fits, quoted, read
from workplace import Failed, Skipped


class Page:
    def __init__(self, snippets, workplace, programs):
        self.snippets, self.workplace, self.programs = snippets, workplace, programs
        self.place = None
        self.sets_path = any("export PATH=" in each.text for each in snippets)  # or a reader did so before
        self.prepared = set()
        self.printed = {}  # by the line of each program that has run

    def play(self):
        """The outcome of every snippet, in their order."""
        self.place = self.workplace.new()
        return [(each, self.attempt(each)) for each in self.snippets]

    def attempt(self, snippet):
        try:
            return "passed", self.test(snippet)
        except Failed as failure:
            return "failed", str(failure)
        except Skipped as reason:
            return "skipped", str(reason)

    def test(self, snippet):
        if snippet.fault:
            raise Failed(snippet.fault)
        if "skip" in snippet.clauses:
            raise Skipped(snippet.clauses["skip"])
        if "from" in snippet.clauses:
            return self.compare(snippet)
        if snippet.is_compiled():
            return self.run_program(snippet)
        if "printed" in snippet.clauses:
            return self.compare_printed(snippet)
        if "file" in snippet.clauses:
            return self.write(snippet)
        return {"json": self.play_json, "sh": self.run_commands, "text": self.play_transcript}[snippet.kind](snippet)

    def prepare(self, snippet):
        names = [name for name in snippet.needs() if name not in self.prepared]
        self.workplace.prepare(self.place, names)
        self.prepared.update(names)

    def compare(self, snippet):
        whole = read(self.workplace.source, snippet.clauses["from"])
        if whole is None:
            raise Failed(f"there is no file {snippet.clauses['from']}")
        text = snippet.text
        if snippet.kind == "cpp":  # documents may comment on a line more than the source does
            text, whole = (re.sub(r" *//.*", "", each) for each in (text, whole))
        if not quoted(text, whole):
            raise Failed(f"its text does not stand in {snippet.clauses['from']}")
        return "compared"

    def write(self, snippet):
        (self.place / snippet.clauses["file"]).write_text(snippet.text + "\n")
        return "written"

    def run_program(self, snippet):
        """Runs the program that the snippet begins or continues, once."""
        program, first = self.programs.result(), snippet.chain()[0]
        for each in cpp.pieces(first, self.snippets):
            self.prepare(each)
        words = program.command_of(snippet)
        if first.line not in self.printed:
            self.printed[first.line] = self.workplace.run(self.place, words)
        code, output = self.printed[first.line]
        if code != 0:
            raise Failed(f"exit code {code}\n{output[-2000:]}")
        return "compiled and run"

    def compare_printed(self, snippet):
        code, output = self.printed.get(snippet.chain()[0].line, (1, ""))
        if not snippet.text.strip() or not fits(snippet.text, output):
            raise Failed(f"the C++ before it prints\n{output}")
        return "compared"

    def play_json(self, snippet):
        """Checks a definition, and trains by a recipe, in a folder where files of models stand."""
        text = snippet.text
        try:
            keys = json.loads(text)
        except ValueError as error:
            raise Failed(f"no JSON: {error}\n{text}") from None
        place = self.workplace.new()
        recipe = "optimizer" in keys
        folder = place / "models" / "recipes" if recipe else place / "models"
        (folder / "snippet.json").write_text(text)
        self.workplace.prepare(place, snippet.needs(), folder)
        words = ["train", "snippet.json", "--out", "run"] if recipe else ["check", "snippet.json"]
        code, output = self.workplace.run(place, ["xtape", *words], folder, short=True)
        if code != 0:
            raise Failed(output)
        return "trained" if recipe else "checked"

    def run_commands(self, snippet):
        self.prepare(snippet)
        code, output = self.run_lines(snippet, snippet.text)
        if code != 0:
            raise Failed(f"exit code {code}\n{output[-2000:]}")
        return "run"

    def run_lines(self, snippet, lines):
        return self.workplace.run_lines(self.place, lines, "short" in snippet.clauses, not self.sets_path)

    def play_transcript(self, snippet):
        """Runs each command. A command fails where the text shows an error, and only there."""
        commands = snippet.transcript()
        if not commands:
            raise Failed("a text begins with its command, `$ COMMAND`, or a comment says which file it is from")
        self.prepare(snippet)
        for command, text in commands:
            code, output = self.run_lines(snippet, command)
            if not fits(text, output, entirely=True):
                raise Failed(f"'{command}' prints\n{output}")
            if (code != 0) != (re.search(r"^xtape: ", text, re.M) is not None):
                raise Failed(f"'{command}' has the exit code {code}")
        return "compared"
