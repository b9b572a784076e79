#!/usr/bin/env python3
"""Checks that every include names its room ("layer/room/file.hpp"), that no file includes a header of a higher layer, that
no two headers have one name, that no two files define one type (the linker would mix their functions), and that unrolled.hpp, whose pragma concerns all code after it, is the first include of a file.

usage: layers.py SOURCE_ROOT

The order is that of src/meson.build. The first word of an include is its layer; of public headers, the table below says it."""
import collections, re, sys
from pathlib import Path

from counted import holds, report

PUBLIC = {
    "base": "array attributes communicator error half layout literal minibatches mpi named npy owner precision safetensors shared_list small_vector xtensor",
    "kernels": "op/kernel",
    "tape": "file_block index op/call op/lowering op/op site tape",
    "ops": "custom_gradient linear_solve loops ops ops/activations ops/convolution ops/elementwise ops/indexing ops/linear_algebra ops/losses "
           "ops/order ops/random ops/reductions ops/resampling scan",
    "grad": "derivatives grad implicit odeint per_example vmap",
    "player": "player trace",
    "functions": "compiled gradcheck sparse",
    "optim": "optim privacy step",
    "nn": "core init nn parameters",  # core includes all up to here
    "onnx": "onnx",
    "gguf": "gguf",
    "inspect": "inspect team_profile",
    "model": "hugging_face model",
    "data": "array_batches bleu chats corruption csv images text tokenizers",
    "decode": "decode predict",
    "ranks": "distributed",
    "train": "profile recipe train trainer",
    "report": "report",
    "cli": "xtape",  # includes all
}
ROOMS = ["player/program", "player/plan", "player/run"]  # of the layer player, from the lowest to the highest
# Only this room includes headers of the operating system: files, locks, memory, threads, processes. The library xtape-mpi is
# linked with no other room, and asks for the number of its process.
SYSTEM_ROOM = "base/system/"
SYSTEM_HEADER = re.compile(r"(sys|linux|netinet|arpa|asm)/.*|(aio|cpuid|dirent|dlfcn|execinfo|fcntl|fnmatch|glob|link|malloc|netdb|poll|pthread|"
                           r"pwd|grp|sched|semaphore|signal|spawn|strings|syslog|termios|time|ucontext|unistd|utime|wait)\.h")
SYSTEM_ALLOWED = {"mpi/mpi.cpp": {"unistd.h"}}
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


def order(source):
    """The layers that each may see."""
    layers = re.findall(r"'(\w+)'", re.search(r"^layers = \[(.*)\]", (source / "src/meson.build").read_text(), re.MULTILINE)[1])
    below = [layer for layer in layers if layer not in ("data", "svg")]
    sees = {layer: set(below[:number + 1]) for number, layer in enumerate(below)} | {"data": {"base", "data"}, "svg": {"base", "kernels", "svg"}}
    sees["decode"].add("data")
    sees["train"].add("data")
    sees["report"].add("data")
    core = set(below[:below.index("nn") + 1])
    model = set(below[:below.index("model") + 1])
    return sees | {"cli": {*layers, "cli", "onnx", "gguf"}, "c": {*layers, "c", "onnx", "gguf"}, "mpi": {"base", "mpi"}, "onnx": core | {"onnx"},
                   "gguf": model | {"data", "gguf"}}


def wrong(path, text, sees, owners, headers):
    """The includes that a file of a layer which sees `sees` may not have."""
    names = INCLUDE.findall(text)
    found = [f"{path} includes other files before unrolled.hpp" for name in names[1:] if name.endswith("/unrolled.hpp")]
    for name in names:
        owner = owners.get(name, name.split("/")[0])
        if name.split("/")[-1] in headers and name not in owners and name not in headers.values():
            found.append(f"{path} does not name the room of {name}")
        elif owner in LAYERS and owner not in sees:
            found.append(f"{path} includes {name}, of {owner}")
    return found


def types_of(text):
    """The types that a file defines at the level of namespaces with names, each with its namespace."""
    within = []
    for line in text.splitlines():
        if begins := re.match(r"namespace (\S* ?)\{", line):
            within.append(begins[1].strip())
        elif line.startswith("}  // namespace"):
            within.pop()
        elif (type := re.match(r"(?:struct|class|enum class|enum|union) (?:alignas\(\w+\) )?(\w+)(?= (?:final|:|\{))(?!.*;$)", line)) and all(within):
            yield "::".join([*within, type[1]])


source = Path(sys.argv[1])
SEES = order(source)
LAYERS = SEES.keys()


def main():
    owners = {f"xtape/{name}.hpp": layer for layer, names in PUBLIC.items() for name in names.split()}
    there = {str(path.relative_to(source / "include")) for path in (source / "include/xtape").rglob("*.hpp")}
    holds("every public header has its layer here", owners.keys() == there, str(owners.keys() ^ there))
    files = [(path, str(path.relative_to(source / "src"))) for path in sorted((source / "src").rglob("*.?pp"))]
    names = collections.Counter(name.split("/")[-1] for _, name in files if name.endswith(".hpp"))
    twice = [name for name, count in names.items() if count > 1]
    holds("no two headers have one name", not twice, str(twice))
    headers = {name.split("/")[-1]: name for _, name in files if name.endswith(".hpp")}
    texts = [(path, path.read_text(), name.split("/")[0]) for path, name in files]
    texts += [(name, (source / "include" / name).read_text(), layer) for name, layer in owners.items()]
    types = collections.Counter(each for _, text, _ in texts for each in types_of(text))
    twice = [each for each, count in types.items() if count > 1]
    holds("no two files define one type", not twice and len(types) > 500, f"{twice} of {len(types)}")
    planted = "namespace a {\nstruct B {\n};\nstruct C;\nnamespace {\nclass D {\n}\n}  // namespace\nstruct E : B {}\n}  // namespace a\n"
    holds("types of unnamed namespaces, and those only declared, do not count", list(types_of(planted)) == ["a::B", "a::E"])
    for layer, sees in SEES.items():
        mine = [file for file in texts if file[2] == layer]
        holds(f"{layer} has files", mine)
        found = [each for path, text, _ in mine for each in wrong(path, text, sees, owners, headers)]
        holds(f"{layer} includes no header of a higher layer", not found, "\n".join(found))
        # The check finds what it is for.
        planted = [name for name in [*owners, *headers.values()] if owners.get(name, name.split("/")[0]) in LAYERS - sees]
        planted += [name for name, whole in headers.items() if whole.startswith(layer)]
        missed = [name for name in planted if not wrong("planted", f'#include "{name}"\n', sees, owners, headers)]
        holds(f"{layer} sees no header of other layers, and none without its room", planted and not missed, str(missed))
    systems = {name: [each for each in INCLUDE.findall(path.read_text()) if SYSTEM_HEADER.fullmatch(each)] for path, name in files}
    found = [f"{name} includes <{each}>" for name, each_of in systems.items() for each in each_of
             if not name.startswith(SYSTEM_ROOM) and each not in SYSTEM_ALLOWED.get(name, ())]
    holds("only the room of the system includes its headers", not found, "\n".join(found))
    holds(f"{SYSTEM_ROOM} has some", any(each for name, each in systems.items() if name.startswith(SYSTEM_ROOM)))
    found = [f"{name} includes {each}" for path, name in files for low, room in enumerate(ROOMS) if name.startswith(room)
             for each in INCLUDE.findall(path.read_text()) if each.startswith(tuple(ROOMS[low + 1:]))]
    holds("no room of the player includes a header of a higher room", not found, "\n".join(found))
    return report()


if __name__ == "__main__":
    sys.exit(main())
