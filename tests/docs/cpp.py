"""C++ of pages. A snippet that has `main` is a program, which is compiled as it stands: the pieces that continue it replace
its line `// the pieces`. All other snippets, with those that continue them, are functions of one program, with the
includes of a program on their page that has the line `// one of the pieces`. The build's compiler compiles everything
with its flags; errors name lines of the pages."""
import concurrent.futures, fcntl, json, re, shlex, subprocess

from workplace import Failed

# A snippet shows names and values, and need not use them.
ALLOWED = ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter", "-Wno-unused-value"]
# The target whose flags are those of a program that uses the library from outside.
MODEL = "tests/datasets_test.p/"
HEADER = "#include <xtape/xtape.hpp>"
PLACE = re.compile(r"^([\w/]+\.md):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.M)
PIECES = re.compile(r"^ *// the pieces.*\n", re.M)
FRAME = re.compile(r"^ *// one of the pieces", re.M)
INCLUDE = re.compile(r"^#include.*$", re.M)


def pieces(first, snippets):
    """The snippet and those that continue it."""
    return [each for each in snippets if each.is_compiled() and each.chain()[0] is first]


def is_whole(snippet):
    return "int main(" in snippet.text


def marked(snippet):
    return f'#line {snippet.line} "{snippet.file}"\n{snippet.text}\n'


def whole_source(program):
    """The text of a program: its first snippet, with the others in their place."""
    text, others = marked(program[0]), "".join(map(marked, program[1:]))
    place = PIECES.search(text)
    if place is None:
        if others:
            raise Failed("the program has no line `// the pieces` for those that continue it")
        return text
    after = program[0].line + text[: place.end()].count("\n") - 1
    return f'{text[: place.start()]}{others}#line {after} "{program[0].file}"\n{text[place.end() :]}'


class Compiler:
    def __init__(self, workplace):
        self.workplace = workplace
        self.folder = workplace.build / "tests" / "docs.p"
        self.folder.mkdir(exist_ok=True)
        self.command = [*self.words_of_build(), *ALLOWED, "-O0"]
        self.header = []

    def precompile(self):
        """Prepares the header that programs include: they take most of their time to read it."""
        (self.workplace.folder / "header.hpp").write_text(HEADER + "\n")
        self.run([*self.command, "-x", "c++-header", self.target("header.hpp"), "-o", self.target("header.hpp.gch")])
        self.header = ["-include", self.target("header.hpp")]

    def words_of_build(self):
        """The words of the build up to its sources: compiler, include paths, flags."""
        for entry in json.loads((self.workplace.build / "compile_commands.json").read_text()):
            if entry["output"].startswith(MODEL):
                words = shlex.split(entry["command"])
                return [word for word in words[: words.index("-MD")] if word != "-fdiagnostics-color=always"]
        raise Failed(f"the build has no target {MODEL}")

    def compile(self, name, files):
        """Compiles NAME.cpp beside the files that it includes. They always have the same place, so that a compiler cache
        knows them again; several runs of this suite take turns there. Returns what the compiler says, or ""."""
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for file, text in files.items():
                (folder / file).write_text(text)
            header = self.header if HEADER in files[f"{name}.cpp"] else []
            done = self.run([*self.command, *header, "-c", str(folder / f"{name}.cpp"), "-o", self.target(name) + ".o"])
        return done.stderr if done.returncode != 0 else ""

    def link(self, name):
        package = str(self.workplace.build / "packaging" / "xtape.pc")
        libraries = self.run(["pkg-config", "--static", "--libs", package]).stdout.split()
        done = self.run([*self.command, self.target(name) + ".o", "-o", self.target(name),
                         f"-L{self.workplace.build}/src", *libraries])
        if done.returncode != 0:
            raise Failed(done.stderr)

    def target(self, name):
        return str(self.workplace.folder / name)

    def run(self, words):
        return subprocess.run(words, cwd=self.workplace.build, capture_output=True, text=True)


def function(number, program):
    """A function of the pieces, and the includes in them."""
    text, includes = f"static void snippet_{number}() {{\n", []
    for each in program:
        includes += INCLUDE.findall(each.text)
        text += INCLUDE.sub("", marked(each))
    return text + "}\n", includes


def functions_source(programs, frames):
    functions, calls = "", ""
    includes = dict.fromkeys(include for frame in frames for include in INCLUDE.findall(frame.text))
    for number, program in enumerate(programs):
        text, own = function(number, program)
        functions += text
        includes.update(dict.fromkeys(own))
        calls += f"  if (number == {number}) snippet_{number}();\n"
    return ("\n".join(includes) + "\n#include <cstdlib>\n#include <xtape/xtape.hpp>\nusing namespace xtape;\n" + functions +
            "int main(int, char** words) {\n  const int number = std::atoi(words[1]);\n" + calls + "}\n")


class Programs:
    """All C++ of the pages, compiled."""

    def __init__(self, snippets, workplace):
        self.workplace, self.commands, self.errors = workplace, {}, {}
        programs = [pieces(each, snippets) for each in snippets if each.is_compiled() and each.before is None]
        programs = [program for program in programs if self.has_needs(program)]
        try:
            compiler = Compiler(workplace)
            if any(HEADER in program[0].text for program in programs if is_whole(program[0])):
                compiler.precompile()
            with concurrent.futures.ThreadPoolExecutor(2) as workers:
                list(workers.map(lambda program: self.compile_whole(program, snippets, compiler),
                                 [program for program in programs if is_whole(program[0])]))
            frames = [each for each in snippets if is_whole(each) and FRAME.search(each.text)]
            self.compile_functions([program for program in programs if not is_whole(program[0])], frames, compiler)
        except Failed as failure:
            self.errors.update({id(each): str(failure) for program in programs for each in program})

    def command_of(self, snippet):
        """The words that run the snippet's program. Throws if there is none."""
        first = id(snippet.chain()[0])
        if first not in self.commands:
            raise Failed(self.errors.get(id(snippet), "another piece of its program does not compile"))
        return self.commands[first]

    def has_needs(self, program):
        try:
            for each in program:
                self.workplace.check_needs(each.needs())
            return True
        except Failed as failure:
            self.errors.update({id(each): str(failure) for each in program})
            return False

    def note_errors(self, said, programs):
        """Whether the compiler's words name lines of the programs, which it then notes."""
        known = False
        for file, line, message in reversed(PLACE.findall(said)):
            for each in (each for program in programs for each in program):
                if file == each.file and 0 <= int(line) - each.line <= each.text.count("\n"):
                    self.errors[id(each)] = f"{file}, line {line}: {message}"
                    known = True
        return known

    def compile_whole(self, program, snippets, compiler):
        first = program[0]
        page = [each for each in snippets if each.kind == "cpp" and each.file == first.file]
        number = sum(is_whole(each) for each in page if each.line < first.line)
        name = re.sub(r"\W", "_", f"{first.file}_{number}")
        files = {each.clauses["file"]: marked(each) for each in page if "file" in each.clauses}
        try:
            said = compiler.compile(name, {**files, f"{name}.cpp": whole_source(program)})
            if said and not self.note_errors(said, [program]):
                raise Failed(said)
            if not said:
                compiler.link(name)
                self.commands[id(first)] = [compiler.target(name)]
        except Failed as failure:
            self.errors.update({id(each): str(failure) for each in program})

    def compile_functions(self, programs, frames, compiler):
        while programs:
            said = compiler.compile("snippets", {"snippets.cpp": functions_source(programs, frames)})
            if not said:
                break
            if not self.note_errors(said, programs):
                raise Failed(said)
            programs = [program for program in programs if not any(id(each) in self.errors for each in program)]
        if programs:
            compiler.link("snippets")
        self.commands.update({id(program[0]): [compiler.target("snippets"), str(number)]
                              for number, program in enumerate(programs)})
