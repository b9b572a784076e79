#!/usr/bin/env python3
"""Tries to include headers of higher layers with the compiler's words of each layer, which must fail.

usage: layers.py SOURCE_ROOT BUILD_ROOT

A public header must be refused by its #error, a private one must not be found. Both must be fine from their own layer."""
import json, os, re, shlex, subprocess, sys, tempfile
from pathlib import Path

from counted import holds, report

LAYERS = ["array", "kernels", "tape", "rewrite", "ops", "grad", "player", "inspect", "model", "decode", "train"]
# Text stands on array alone, and decode is the first that sees it.
SEES = {layer: LAYERS[:number + 1] for number, layer in enumerate(LAYERS)}
SEES["text"] = ["array", "text"]
SEES["decode"].append("text")
SEES["train"].append("text")
PUBLIC = {
    "array": ["array", "bfloat16", "communicator", "error", "literal", "mpi", "named", "owner", "precision", "safetensors", "shared_list", "xtensor"],
    "tape": ["call", "lowering", "op", "site", "tape", "terms"],
    "ops": ["ops", "scan"],
    "grad": ["grad"],
    "player": ["gradcheck", "player", "trace"],
    "inspect": ["inspect"],
    "model": ["hugging_face", "model"],
    "text": ["bleu", "text", "tokenizers"],
    "decode": ["decode", "predict"],
    "train": ["distributed", "optim", "profile", "train"],
}

source, build = Path(sys.argv[1]), Path(sys.argv[2])


def compilers():
    """Of each library, the compiler's words but for what it reads and writes."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        library = re.match(r"src/libxtape_(\w+)\.a\.p/.*\.o$", entry["output"])
        if not library or library[1] in found:
            continue
        words, kept = iter(shlex.split(entry["command"])), []
        for word in words:
            if word in ("-o", "-MF", "-MQ", "-c", "-include", "-include-pch"):
                next(words)
            elif word not in ("-MD", "-fpch-preprocess", "ccache"):
                kept.append(word)
        found[library[1]] = kept + ["-E", "-Wfatal-errors", "-o", os.devnull]
    return found


def included(words, text):
    """Whether a file of this text passes the preprocessor, and what it says."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "included.cpp"
        file.write_text(text)
        done = subprocess.run([*words, str(file)], cwd=build, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                              env={**os.environ, "LC_ALL": "C"})
    return done.returncode == 0, done.stderr


def none_of(paths):
    return "".join(f'#if __has_include("{path}")\n#error "{path} is seen"\n#endif\n' for path in paths)


def main():
    private = {layer: sorted(path.name for path in (source / "src" / layer).glob("*.hpp")) for layer in [*SEES, "cli"]}
    names = [name for each in private.values() for name in each]
    alone = {layer: [name for name in each if names.count(name) == 1] for layer, each in private.items()}
    listed = sorted(name + ".hpp" for each in PUBLIC.values() for name in each)
    there = sorted(path.name for path in (source / "include/xtape").glob("*.hpp") if path.name != "xtape.hpp")
    holds("every public header has its layer here", listed == there, str(set(listed) ^ set(there)))
    found = compilers()
    holds("every layer is built", {name.split("_")[0] for name in found} == set(SEES), str(found.keys()))
    for library, words in found.items():
        layer = library.split("_")[0]
        wrong = []
        for name in PUBLIC.get(layer, []):
            right, output = included(words, f'#include "xtape/{name}.hpp"\n')
            if not right:
                wrong.append(output)
        own = "".join(f'#if !__has_include("{name}")\n#error "no {name}"\n#endif\n' for name in private[layer])
        right, output = included(words, own)
        holds(f"{library} sees its own headers", right and not wrong, "".join(wrong) + output)
        for other in [*SEES, "cli"]:
            if other in SEES[layer]:
                continue
            wrong = []
            for name in PUBLIC.get(other, []):
                right, output = included(words, f'#include "xtape/{name}.hpp"\n')
                if right or f'#error "this layer of xtape may not see the {other} layer"' not in output:
                    wrong.append(f"xtape/{name}.hpp is not refused\n{output}")
            for path in [alone[other][0], f"{other}/{private[other][0]}"] if private[other] else []:
                right, output = included(words, f'#include "{path}"\n')
                if right or not re.search(r"No such file or directory|file not found", output):
                    wrong.append(f"{path} is found\n{output}")
            right, output = included(words, none_of(alone[other] + [f"{other}/{name}" for name in private[other]]))
            holds(f"{library} sees no header of {other}", right and not wrong, "".join(wrong) + output)
    around = subprocess.run(["grep", "-rnE", r'#include ["<](\.\./|.*/\.\./)', str(source / "src"), str(source / "include")],
                            stdout=subprocess.PIPE, text=True)
    holds("no include goes around by '..'", around.returncode == 1, around.stdout)
    return report()


if __name__ == "__main__":
    sys.exit(main())
