#!/usr/bin/env python3
"""The module xtape.py: its prototypes, arrays in every form, errors, callbacks, and what lives how long. usage: python.py SOURCE_ROOT"""
import gc, re, sys, tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import numpy as np
import xtape
from counted import holds, report

source = Path(sys.argv[1])
KINDS = {"int32_t": "i", "xtape_dtype": "i", "int64_t": "l", "uint64_t": "u", "size_t": "z", "double": "d", "xtape_var": "v",
         "const char*": "s"}


def letter(parameter):
    """The letter of a parameter in xtape.PROTOTYPES."""
    kind = re.sub(r"\s*\w+$", "", parameter.strip())
    return KINDS.get(kind, "p")


def prototypes():
    found = {}
    for name, given in re.findall(r"^xtape_status xtape_(\w+)\(([^;]*?)\)\s*XTAPE_NOEXCEPT;", (source / "include/xtape.h").read_text(), re.M):
        given = re.sub(r"int32_t \(\*(\w+)\)\([^)]*\)", r"void* \1", " ".join(given.split()))
        found[name] = "".join(map(letter, given.split(",")))
    return found


def raises(kind, words, function, *arguments, **options):
    try:
        function(*arguments, **options)
    except kind as error:
        return words in str(error)
    return False


def arrays():
    tape = xtape.Tape()
    x = tape.input("x", (2, 3))
    player = xtape.Player([x * 2], threads=1)
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    for values in (whole[:2, :3], whole[::2, ::2], whole[::-2, 5::-2], whole.T[:2, :3], np.asfortranarray(whole[:2, :3]),
                   np.broadcast_to(whole[0, :3], (2, 3)), whole[1:3, 2:5].copy()):
        holds(f"strides {values.strides}", np.array_equal(player({x: values})[0], 2 * values))
    packed = np.zeros(6, np.dtype([("a", "f4"), ("b", "i1")]))["a"].reshape(2, 3)
    holds("elements with odd strides are copied", np.array_equal(player({x: packed})[0], packed * 0))
    holds("a list is an array", xtape.Array([[1.0, 2.0]]).numpy().dtype == np.float64)
    holds("a wrong type has a Python error", raises(TypeError, "complex", xtape.Array, np.zeros(2, complex)))
    holds("a wrong dtype names both", raises(xtape.Error, "fed with float64", player, {x: np.zeros((2, 3))}))
    empty = xtape.Array(np.zeros((0, 3), np.float32)).numpy()
    holds("arrays without elements", empty.shape == (0, 3))
    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "bool"):
        back = xtape.Array(np.ones(3, dtype)).numpy()
        holds(f"{dtype} and back", back.dtype == dtype and back.all())


def lifetimes():
    store = xtape.Store({"w": np.ones(4, np.float32)})
    view, shared = store["w"], np.from_dlpack(store.array("w"))
    del store
    gc.collect()
    view[0] = 7
    holds("arrays keep the memory of a store that is gone", shared[0] == 7)
    for _ in range(50):  # capsules that nobody reads
        capsule = xtape.Array(np.ones(1000)).__dlpack__(max_version=(1, 0))
        old = xtape.Array(np.ones(1000)).__dlpack__()
    del capsule, old
    copied = xtape.Array(xtape.Array(np.arange(3.0)))  # by DLPack
    gc.collect()
    holds("arrays pass through capsules", np.array_equal(copied.numpy(), [0, 1, 2]))
    tape = xtape.Tape()
    x = tape.input("x", ())
    result = xtape.Player([x.exp()], threads=1)({x: np.float32(1)})[0]
    gc.collect()
    holds("a result keeps its player", abs(result - np.e) < 1e-6)


def calls():
    tape = xtape.Tape(dtype="float64")
    x, w = tape.input("x", (3,), "float64"), xtape.Store({"w": np.array([1.0, 2.0, 3.0])})
    y = (1 - x) ** 2 / 4 + x @ tape.parameter(w, "w") + np.array([1.0, 1, 1])
    slope, = xtape.grad(y.sum(), [x])
    given = np.array([3.0, 0.0, -1.0])
    values, slopes = xtape.Player([y, slope], threads=1)({x: given})
    holds("operators", np.allclose(values, (1 - given) ** 2 / 4 + given @ [1, 2, 3] + 1))
    holds("grad", np.allclose(slopes, (given - 1) / 2 + 3 * np.array([1, 2, 3])))
    first, order = x.sort()
    holds("several results", first.shape == order.shape == (3,))
    normed = xtape.op("layer_norm", x, weight=x, epsilon=1e-3)
    holds("inputs by name, and the operand's shape", normed.shape == (3,))
    holds("a dtype of NumPy", x.cast(dtype=np.float32).shape == (3,))
    holds("an error names the line here", raises(xtape.Error, "python.py, line ", lambda: x @ tape.input("z", (4,), "float64")))
    state = tape.input("state", (), "float64")
    player = xtape.Player([state], carries=[(state, state + 1.5)], threads=1)
    player(), player()
    holds("carries", player.carried(state) == 3.0)


def runs(folder):
    text = Path(folder) / "a.txt"
    text.write_text("abcdefgh\n" * 60)
    settings = {"hyper.n_layer": 1, "hyper.n_embd": 8, "hyper.n_head": 2, "data.text": str(text), "data.block_size": 8,
                "batch.size": 2, "steps": 3, "schedule.warmup": 0, "threads": 1}
    run = xtape.run("shakespeare_char", f"{folder}/run", **settings)
    seen = []
    holds("a training that a callback ends", not run.train(lambda update, loss: seen.append(loss) or update == 2) and len(seen) == 2)
    holds("a training to its end", run.train() and run.evaluate()["step"] == 3)
    holds("a text", len(run.generate("abc", tokens=5, seed=1)) == 5)
    holds("wrong settings are errors", raises(xtape.Error, "stepps", xtape.run, "shakespeare_char", f"{folder}/b", **settings, stepps=1))


if __name__ == "__main__":
    wanted = prototypes()
    ours = dict(each.split(maxsplit=1) for each in xtape.PROTOTYPES.split(","))
    holds("the prototypes are those of xtape.h", ours == wanted, str(set(ours.items()) ^ set(wanted.items())))
    arrays()
    lifetimes()
    calls()
    with tempfile.TemporaryDirectory() as work:
        runs(work)
    sys.exit(report())
