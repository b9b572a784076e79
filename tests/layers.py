#!/usr/bin/env python3
"""Checks that no file includes a header of a higher layer, and that compact.hpp, whose pragma concerns all code after
it, is the first include of a file.

usage: layers.py SOURCE_ROOT

The order is that of src/meson.build. A private header belongs to the layer whose directory it is in; of public headers,
the table below says it."""
import re, sys
from pathlib import Path

from counted import holds, report

PUBLIC = {
    "array": ["array", "attributes", "communicator", "error", "half", "literal", "minibatches", "mpi", "named", "npy", "owner", "precision", "safetensors", "shared_list", "small_vector", "xtensor"],
    "kernels": ["op/kernel"],
    "tape": ["file_block", "index", "op/call", "op/lowering", "op/op", "op/terms", "site", "tape"],
    "ops": ["custom_gradient", "linear_solve", "loops", "ops", "ops/activations", "ops/convolution", "ops/elementwise", "ops/indexing", "ops/linear_algebra", "ops/losses", "ops/order", "ops/random", "ops/reductions", "ops/resampling", "scan"],
    "grad": ["derivatives", "grad", "implicit", "odeint", "per_example", "vmap"],
    "player": ["compiled", "gradcheck", "player", "sparse", "trace"],
    "optim": ["optim", "privacy", "step"],
    "nn": ["core", "init", "nn", "parameters"],  # core includes all up to here
    "onnx": ["onnx"],
    "inspect": ["inspect"],
    "model": ["hugging_face", "model"],
    "text": ["array_batches", "bleu", "csv", "images", "text", "tokenizers"],
    "decode": ["decode", "predict"],
    "ranks": ["distributed"],
    "train": ["profile", "recipe", "train", "trainer"],
    "cli": ["xtape"],  # includes all
}

source = Path(sys.argv[1])
INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


def order():
    """The layers that each may see."""
    names = re.search(r"^layers = \[(.*)\]", (source / "src/meson.build").read_text(), re.MULTILINE)[1]
    layers = re.findall(r"'(\w+)'", names)
    below = [layer for layer in layers if layer != "text"]
    sees = {layer: set(below[:number + 1]) for number, layer in enumerate(below)}
    sees["text"] = {"array", "text"}
    for layer in ["decode", "train"]:
        sees[layer].add("text")
    core = set(below[:below.index("nn") + 1])
    return sees | {"cli": {*layers, "cli", "onnx"}, "mpi": {"array", "mpi"}, "onnx": core | {"onnx"}}


def wrong(path, text, layer, sees, owners):
    """The includes of a file that its layer may not have."""
    found = []
    names = INCLUDE.findall(text)
    if "compact.hpp" in names[1:]:
        found.append(f"{path} includes other files before compact.hpp")
    for name in names:
        if ".." in name.split("/"):
            found.append(f"{path} goes around by '..': {name}")
        # The directory of the file comes first, as it does for the compiler.
        owner = layer if (source / "src" / layer / name).exists() else owners.get(name)
        if owner and owner not in sees[layer]:
            found.append(f"{path}, of {layer}, includes {name}, of {owner}")
    return found


def main():
    sees = order()
    public = {f"xtape/{name}.hpp": layer for layer, names in PUBLIC.items() for name in names}
    there = {str(path.relative_to(source / "include")) for path in (source / "include/xtape").rglob("*.hpp")}
    holds("every public header has its layer here", public.keys() == there, str(public.keys() ^ there))
    owners, files = dict(public), []
    for layer in sees:
        for path in sorted((source / "src" / layer).rglob("*.?pp")):
            files.append((path, path.read_text(), layer))
            if path.suffix == ".hpp":
                owners.setdefault(str(path.relative_to(source / "src" / layer)), layer)
                owners[str(path.relative_to(source / "src"))] = layer
    files += [(source / "include" / name, (source / "include" / name).read_text(), layer) for name, layer in public.items()]
    for layer in sees:
        mine = [file for file in files if file[2] == layer]
        holds(f"{layer} has files", mine)
        found = [each for path, text, _ in mine for each in wrong(path, text, layer, sees, owners)]
        holds(f"{layer} includes no header of a higher layer", not found, "\n".join(found))
        # The check finds what it is for.
        for other in sees.keys() - sees[layer]:
            planted = [name for name, owner in owners.items()
                       if owner == other and not (source / "src" / layer / name).exists()]
            missed = [name for name in planted if not wrong("planted", f'#include "{name}"\n', layer, sees, owners)]
            holds(f"{layer} sees no header of {other}", not missed, str(missed))
    return report()


if __name__ == "__main__":
    sys.exit(main())
