#!/usr/bin/env python3
"""Writes the library xtape-core as two files, xtape-core.hpp and xtape-core.cpp. They also hold the headers of other
libraries that the core uses, so this command needs nothing but a compiler:
  g++ -std=c++20 -O1 -march=native -ffp-contract=off -pthread -pipe --param=ggc-min-heapsize=8388608 -c xtape-core.cpp
-DXTAPE_PART=1 to 4 compiles a quarter of the sources, so that several compilers share the work.
Writes CMakeLists.txt beside them, so that CMake's FetchContent takes the folder, or an archive of it, with the target xtape::core.

The sources follow each other as in one file of a unity build, after all headers. A name of an unnamed namespace that another
file declares too gets the name of its file: `inputs_of` of adam.cpp becomes `inputs_of_in_adam`. With --try, compiles them by
the command above, by one such command for each part at the same time, and by FetchContent, each with a program that trains.

usage: one_file.py BUILD OUT [--try]"""
import collections, itertools, json, os, re, subprocess, sys, tempfile, time
from pathlib import Path

# So much memory (KiB) that GCC collects no garbage, which takes time.
FLAGS = "-std=c++20 -O1 -march=native -ffp-contract=off -pthread -pipe --param=ggc-min-heapsize=8388608".split()
PARTS = range(1, 5)
ROOT = Path(__file__).resolve().parent.parent
TARGETS = ["separate", "ops", "heavy", "light_core", "core_extra", "kernels_baseline"]
INSIDE = ("xsimd/", "nlohmann/", "Random123/", "xxhash.h")  # libraries whose headers become part of the file
LICENCES = ["libxsimd-dev", "nlohmann-json3-dev", "librandom123-dev", "libxxhash-dev"]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.M)
# What concerns the file that has it. In one file, GCC would inline no function from before such an optimisation after it.
ONE_FILE = re.compile(r"\s*#pragma (once|GCC optimize)")
UNNAMED = re.compile(r"^namespace \{\n", re.M)
# What a line that begins in the first column declares: a type, an alias, a function or a variable.
DECLARED = re.compile(r"^(?:(?:struct|class|enum(?: class)?|union)\s+(?:alignas\(\w+\) )?(\w+)|using\s+(\w+)\s*=|"
                      r"(?![#}/ \n])(?!return\b|template|using|namespace|static_assert|friend|extern)(?:[^=;({<\n]|<[^()\n]*>)*?"
                      r"(?<!::)\b(?!alignas\b|decltype\b|__attribute__|operator\b)(\w+)\s*(?:\[[^\]]*\])*\s*(?:[={;]|\((?!\*)))", re.M)
CMAKE = """cmake_minimum_required(VERSION 3.14)
project(xtape-core VERSION {version} LANGUAGES CXX)
find_package(Threads REQUIRED)
add_library(xtape-core)
add_library(xtape::core ALIAS xtape-core)
target_compile_features(xtape-core PUBLIC cxx_std_20)
target_include_directories(xtape-core PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})
target_link_libraries(xtape-core PUBLIC Threads::Threads)
if(BUILD_SHARED_LIBS)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
foreach(part {parts})
  add_library(xtape-core-${{part}} OBJECT xtape-core.cpp)
  target_compile_features(xtape-core-${{part}} PRIVATE cxx_std_20)
  target_compile_options(xtape-core-${{part}} PRIVATE -ffp-contract=off)
  target_compile_definitions(xtape-core-${{part}} PRIVATE XTAPE_PART=${{part}})
  target_sources(xtape-core PRIVATE $<TARGET_OBJECTS:xtape-core-${{part}}>)
endforeach()
"""
CMAKE_PROGRAM = """cmake_minimum_required(VERSION 3.14)
project(program LANGUAGES CXX)
include(FetchContent)
FetchContent_Declare(xtape URL {out})
FetchContent_MakeAvailable(xtape)
add_executable(program ../program.cpp)
target_link_libraries(program PRIVATE xtape::core)
"""
UNREAD = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)  # comments and strings


def sources(build):
    """The files of the core, compiled for one instruction set."""
    targets = {target["name"]: target for target in json.loads(subprocess.check_output(["meson", "introspect", "--targets", build]))}
    for name in TARGETS:
        for part in targets["xtape_" + name]["target_sources"]:
            for source in part.get("sources", []) + part.get("generated_sources", []):
                if "-unity" in source:  # a file that includes the sources of its unit
                    yield from map(Path, re.findall(r"#include<(.*)>", Path(source).read_text()))
                elif source.endswith(".cpp"):
                    yield Path(source)


def found(name, beside, quoted):
    """The file that an include means, or None for a header of the system."""
    folders = [beside] * quoted + [ROOT / "include", ROOT / "src"] + [Path("/usr/include")] * name.startswith(INSIDE)
    return next(((folder / name).resolve() for folder in folders if (folder / name).is_file()), None)


def names(text):
    return {name for groups in DECLARED.findall(text) for name in groups if name}


def unnamed_parts(text):
    """The text of the unnamed namespaces, and that of the rest. Comments and strings become spaces."""
    text = UNREAD.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    inside, outside, at = "", "", 0
    for begin in UNNAMED.finditer(text):
        end, depth = begin.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        inside += text[begin.end():end - 1] + "\n"
        outside += text[at:begin.start()]
        at = end
    return inside, outside + text[at:]


def clashes(files):
    """For each source, the names of its unnamed namespaces that other files declare."""
    inside, declared = {}, collections.Counter()
    for path in {*files, *(ROOT / "src").rglob("*.hpp"), *(ROOT / "include").rglob("*.hpp")}:
        hidden, shown = map(names, unnamed_parts(path.read_text()))
        inside[path] = hidden
        declared.update(hidden | shown)
        if path in files and hidden & shown:
            sys.exit(f"{path.relative_to(ROOT)} declares {', '.join(hidden & shown)} in an unnamed namespace and outside")
    return {path: {name for name in inside[path] if declared[name] > 1} for path in files}


class Writer:
    """Writes each file where it is first included. A file that was included under a condition is written again where this
    condition does not hold."""

    def __init__(self, seen=()):
        self.seen = [set(seen)]  # the last: the files seen since the innermost #if, #elif or #else
        self.within, self.text = [], []

    def renamed(self, line, path, clash):
        if not clash:
            return line
        word = rf'//.*|"(?:\\.|[^"\\])*"|(?<![.\w])(?<!->)(?<!::)(?:{"|".join(sorted(clash))})\b'
        return re.sub(word, lambda match: match[0] if match[0][0] in '/"' else f"{match[0]}_in_{path.stem}", line)

    def add_headers(self, path):
        """Writes the headers that a source includes unconditionally."""
        depth = 0
        for line in path.read_text().splitlines():
            depth += {"#if": 1, "#en": -1}.get(line[:3], 0)
            include = INCLUDE.match(line)
            file = include and depth == 0 and found(include[2], path.parent, include[1] == '"')
            if file and file not in self.seen[0]:
                self.seen[0].add(file)
                self.add(file)

    def add(self, path, clash=frozenset()):
        text = path.read_text()
        guarded = re.match(r"\s*#ifndef (\w+)\s*\n\s*#\s*define \1\b", UNREAD.sub("", text))
        depth = -1 if guarded else 0
        self.within.append(path)
        if path.is_relative_to(ROOT):
            self.text.append(f"// {path.relative_to(ROOT)}\n")
        for line in text.splitlines(keepends=True):
            include, condition = INCLUDE.match(line), re.match(r"\s*#\s*(if|el|endif)", line)
            if condition:
                depth += {"if": 1, "el": 0, "endif": -1}[condition[1]]
                if condition[1] != "if" and depth >= (condition[1] == "el"):
                    self.seen.pop()
                if condition[1] != "endif" and depth > 0:
                    self.seen.append(set())
            file = include and found(include[2], path.parent, include[1] == '"')
            if include and not file and include[2].startswith(INSIDE):
                sys.exit(f"{path} includes {include[2]}, which is not in /usr/include: bash scripts/setup.sh")
            if not file:
                self.text.append(line if include else "" if ONE_FILE.match(line) else self.renamed(line, path, clash))
            elif not any(file in seen for seen in self.seen) and file not in self.within:
                if len(self.seen) > 1 and file.is_relative_to(ROOT):
                    sys.exit(f"{path} includes {include[2]} under a condition")
                self.seen[-1].add(file)
                self.add(file)
        self.within.pop()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    build, out = sys.argv[1], Path(sys.argv[2])
    version = re.search(r" version: '([^']*)'", (ROOT / "meson.build").read_text())[1]
    files = list(dict.fromkeys(sources(build)))
    clash = clashes(files)
    out.mkdir(parents=True, exist_ok=True)
    about = f"// xtape-core {version}, as packaging/one_file.py writes it.\n"
    header = Writer()
    header.add(ROOT / "include/xtape/core.hpp")
    (out / "xtape-core.hpp").write_text(about + "#pragma once\n" + "".join(header.text))
    source = Writer(header.seen[0] | {ROOT / "include/xtape/core.hpp"})
    for path in files:
        source.add_headers(path)
    sizes = [0, *itertools.accumulate(path.stat().st_size for path in files)]
    source.text.append(f"#if defined(XTAPE_PART) && (XTAPE_PART < 1 || XTAPE_PART > {len(PARTS)})\n"
                       f'#error "XTAPE_PART is 1 to {len(PARTS)}, or not defined for all of xtape-core"\n#endif\n')
    for part in PARTS:
        source.text.append(f"#if !defined(XTAPE_PART) || XTAPE_PART == {part}\n")
        for path, begin in zip(files, sizes):
            if begin * len(PARTS) // sizes[-1] + 1 == part:
                source.add(path, clash[path])
        source.text.append("#endif\n")
    licences = [Path("/usr/share/doc", package, "copyright") for package in LICENCES]
    (out / "xtape-core.cpp").write_text(
        about + f'// g++ {" ".join(FLAGS)} -c xtape-core.cpp\n'
        f'#define XTAPE_LIBRARY\n#define XTAPE_KERNELS kernels_of_baseline\n#define XTAPE_VERSION "{version}"\n#define XXH_INLINE_ALL\n'
        '#include "xtape-core.hpp"\n' + "".join(source.text) + "\n/*\n" + (ROOT / "LICENSE").read_text() +
        "".join(f"\n{path.parent.name}:\n{path.read_text()}" for path in licences if path.is_file()).replace("*/", "* /") + "*/\n")
    for file in sorted(out.glob("xtape-core.?pp")):
        print(f"{file}: {file.stat().st_size / 1e6:.1f} MB, {file.read_text().count(chr(10))} lines")
    (out / "CMakeLists.txt").write_text(CMAKE.format(version=version, parts=" ".join(map(str, PARTS))))
    if "--try" in sys.argv:
        attempt(out.resolve())


def attempt(out):
    """Compiles the two files and a program, which must learn, by one command and by CMake."""
    begin = time.time()
    subprocess.run(["g++", *FLAGS, "-c", "xtape-core.cpp"], cwd=out, check=True)
    print(f"compiled in {time.time() - begin:.0f} s")
    begin = time.time()
    compilers = [subprocess.Popen(["g++", *FLAGS, f"-DXTAPE_PART={part}", "-c", "xtape-core.cpp", "-o", f"part{part}.o"], cwd=out)
                 for part in PARTS]
    if any(compiler.wait() for compiler in compilers):
        sys.exit("a part does not compile")
    print(f"{len(PARTS)} parts at the same time, on {os.cpu_count()} processors, in {time.time() - begin:.0f} s")
    with tempfile.TemporaryDirectory() as work:
        program = (ROOT / "tests/install/core_program.cpp").read_text()
        Path(work, "program.cpp").write_text(program.replace("<xtape/core.hpp>", '"xtape-core.hpp"'))
        for objects in [[out / "xtape-core.o"], [out / f"part{part}.o" for part in PARTS]]:
            subprocess.run(["g++", *FLAGS, "-I", out, "program.cpp", *objects, "-o", "program"], cwd=work, check=True)
            subprocess.run(["./program"], cwd=work, check=True)
        project = Path(work, "cmake")
        project.mkdir()
        subprocess.run(["tar", "-czf", project / "xtape.tar.gz", "xtape-core.hpp", "xtape-core.cpp", "CMakeLists.txt"], cwd=out, check=True)
        (project / "CMakeLists.txt").write_text(CMAKE_PROGRAM.format(out=project / "xtape.tar.gz"))
        subprocess.run(["cmake", "-S", project, "-B", project / "build", "-DCMAKE_CXX_FLAGS=-O1"], check=True)
        subprocess.run(["cmake", "--build", project / "build", "--parallel"], check=True)
        subprocess.run([project / "build/program"], check=True)

main()
