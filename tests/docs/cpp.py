"""C++ snippets: all of them are one program, compiled by the build's compiler with its flags; each runs by itself."""
import fcntl, json, re, shlex, subprocess

from workplace import Failed

# A snippet shows names, and need not use them.
ALLOWED = ["-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-parameter"]
# The target whose flags are those of a program that uses the library from outside.
MODEL = "tests/datasets_test.p/"
PLACE = re.compile(r"^([\w/]+\.md):(\d+):(?:\d+:)? (?:fatal )?error: (.*)$", re.M)


def compile_command(build):
    """The words of the build up to its sources: compiler, include paths, flags."""
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["output"].startswith(MODEL):
            words = shlex.split(entry["command"])
            return [word for word in words[: words.index("-MD")] if word != "-fdiagnostics-color=always"]
    raise Failed(f"the build has no target {MODEL}")


def function(number, snippet, workplace):
    """A function of the snippet's chain, and the includes in it. Errors name lines of the documents."""
    text, includes = f"static void snippet_{number}() {{\n", []
    for name in snippet.needs():
        need = workplace.here / "needs" / f"{name}.inc"
        if need.is_file():
            text += f'#line 1 "{need}"\n{need.read_text()}'
    for each in snippet.chain():
        includes += re.findall(r"^#include.*$", each.text, re.M)
        body = re.sub(r"^#include.*$", "", each.text, flags=re.M)
        text += f'#line {each.line} "{each.file}"\n{body}\n'
    return text + "}\n", includes


def program(snippets, workplace):
    functions, includes, calls = "", {}, ""
    for number, snippet in enumerate(snippets):
        text, own = function(number, snippet, workplace)
        functions += text
        includes.update(dict.fromkeys(own))
        calls += f"  if (number == {number}) snippet_{number}();\n"
    return ("\n".join(includes) + "\n#include <cstdlib>\n#include <xtape/xtape.hpp>\nusing namespace xtape;\n" + functions +
            "int main(int, char** words) {\n  const int number = std::atoi(words[1]);\n" + calls + "}\n")


def compile_program(command, text, workplace):
    """Compiles to snippets.o in the workplace. The source always has the same place, so that a compiler cache knows the
    program again; several runs of this suite take turns there."""
    folder = workplace.build / "tests" / "docs.p"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (folder / "snippets.cpp").write_text(text)
        return subprocess.run([*command, *ALLOWED, "-O0", "-c", str(folder / "snippets.cpp"), "-o",
                               str(workplace.folder / "snippets.o")], cwd=workplace.build, capture_output=True, text=True)


def compiled(snippets, workplace):
    """The program of the snippets that compile, these, and the errors of the others."""
    errors = {}
    command = compile_command(workplace.build)
    while snippets:
        done = compile_program(command, program(snippets, workplace), workplace)
        if done.returncode == 0:
            break
        found = PLACE.findall(done.stderr)
        wrong = {id(each): f"{file}, line {line}: {message}" for file, line, message in reversed(found)
                 for each in snippets if file == each.file and 0 <= int(line) - each.line <= each.text.count("\n")}
        if not wrong:
            raise Failed(done.stderr)
        errors.update(wrong)
        snippets = [each for each in snippets if not any(id(one) in errors for one in each.chain())]
    return link(command, workplace), snippets, errors


def link(command, workplace):
    libraries = subprocess.run(["pkg-config", "--static", "--libs", str(workplace.build / "packaging" / "xtape.pc")],
                               capture_output=True, text=True, check=True).stdout.split()
    target = workplace.folder / "snippets"
    done = subprocess.run([*command, str(workplace.folder / "snippets.o"), "-o", str(target),
                           f"-L{workplace.build}/src", *libraries], cwd=workplace.build, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failed(done.stderr)
    return target


def run(number, snippet, target, workplace):
    place = workplace.new()
    workplace.prepare(place, snippet.needs())
    code, output = workplace.run(place, [str(target), str(number)])
    snippet.printed = output
    if code != 0:
        raise Failed(f"exit code {code}\n{output[-2000:]}")
