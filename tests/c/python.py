#!/usr/bin/env python3
"""The module xtape.py: its prototypes, arrays in every form, errors, callbacks, and what lives how long. usage: python.py SOURCE_ROOT"""
import ctypes, gc, json, re, struct, sys, tempfile
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
    unaligned = np.frombuffer(b"?" + whole[0].tobytes(), np.float32, offset=1).reshape(2, 3)
    holds("elements without alignment are copied", np.array_equal(player({x: unaligned})[0], 2 * unaligned))
    fixed = whole[:2, :3].copy()
    fixed.flags.writeable = False
    holds("a read-only array is fed", np.array_equal(player({x: fixed})[0], 2 * fixed))
    copied = xtape.Store({"w": fixed})["w"]
    copied[0, 0] = 7
    holds("a read-only array is copied to an array that can be written", fixed[0, 0] == 0 and xtape.Array(fixed).numpy().flags.writeable)
    holds("a list is an array", xtape.Array([[1.0, 2.0]]).numpy().dtype == np.float64)
    holds("a wrong type has a Python error", raises(TypeError, "complex", xtape.Array, np.zeros(2, complex)))
    holds("a wrong dtype names both", raises(xtape.Error, "fed with float64", player, {x: np.zeros((2, 3))}))
    empty = xtape.Array(np.zeros((0, 3), np.float32)).numpy()
    holds("arrays without elements", empty.shape == (0, 3))
    for dtype in ("float32", "float64", "float16", "int32", "int64", "int8", "bool"):
        back = xtape.Array(np.ones(3, dtype)).numpy()
        holds(f"{dtype} and back", back.dtype == dtype and back.all())


class Foreign:
    """An array of another library, with the strides and flags that NumPy's own arrays cannot give to the module."""
    all = []  # they live to the end, as there is no deleter
    def __init__(self, tensor, flags=0, versioned=True):
        Foreign.all.append(self)
        self.keeps, self.versioned = tensor, versioned
        strides = [each // tensor.itemsize for each in tensor.strides]
        self.sizes = (ctypes.c_int64 * (2 * tensor.ndim))(*tensor.shape, *strides)
        place = ctypes.addressof(self.sizes)
        fields = (tensor.ctypes.data, 1, tensor.ndim, 2 | 32 << 8 | 1 << 16, place, place + 8 * tensor.ndim, 0)
        self.bytes = ctypes.create_string_buffer((struct.pack("<IIQQQ", 1, 0, 0, 0, flags) if versioned else b"")
                                                 + struct.pack("<QqiIQQQ", *fields) + (b"" if versioned else bytes(16)))

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("this library knows no versions")
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.name = b"dltensor_versioned" if self.versioned else b"dltensor"
        return new(ctypes.addressof(self.bytes), self.name, None)


def foreign_arrays():
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    for values in (whole, whole[::-1], whole[::-2, ::-3], whole.T, whole[:, 1:4], whole[1:1]):
        for versioned in (True, False):
            got = xtape.Array(Foreign(values, 0, versioned)).numpy()
            holds(f"an array of another library with strides {values.strides}", np.array_equal(got, values) and got.flags.writeable)
    shared = xtape.Array(Foreign(whole)).numpy()
    shared[1, 2] = -5
    holds("without a copy", whole[1, 2] == -5)
    fixed = xtape.Array(Foreign(whole, flags=1))
    holds("a read-only array stays read-only", not fixed.describe()["writable"] and not fixed.numpy().flags.writeable)
    holds("and is no weight", raises(xtape.Error, "read-only", xtape.Store, {"w": fixed}))


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
    state, other = tape.input("state", (3,)), tape.input("other", (2, 2))
    player = xtape.Player([state + 1, other + 2], carries=[(state, state + 1), (other, other + 2)], threads=1)
    states = [player.carried(each) for each in (state, other)]
    results = player()
    holds("views at once keep their shapes", [each.shape for each in states + results] == [(3,), (2, 2)] * 2)
    states[0][1] = 5
    again = player()
    holds("results are in memory that the next play writes", results[0][1] == again[0][1] == 6 and results[1][0, 0] == 4)
    del player
    gc.collect()
    holds("which they keep", np.array_equal(results[1], [[4, 4], [4, 4]]))
    player = xtape.Player([tape.constant(np.arange(3.0))], threads=1)
    fixed, = player()
    fixed[:] = 7
    holds("a result that is a constant is written again", np.array_equal(player()[0], np.arange(3.0)))


def calls():
    tape = xtape.Tape(dtype="float64")
    x, w = tape.input("x", (3,), "float64"), xtape.Store({"w": np.array([1.0, 2.0, 3.0])})
    y = (1 - x) ** 2 / 4 + x @ tape.parameter(w, "w") + np.array([1.0, 1, 1])
    slope, = xtape.grad(y.sum(), [x])
    given = np.array([3.0, 0.0, -1.0])
    values, slopes = xtape.Player([y, slope], threads=1)({x: given})
    holds("operators", np.allclose(values, (1 - given) ** 2 / 4 + given @ [1, 2, 3] + 1))
    holds("grad", np.allclose(slopes, (given - 1) / 2 + 3 * np.array([1, 2, 3])))
    a, given = np.array([0.5, -2.0, 4.0]), np.array([3.0, 1.0, -1.0])
    operators = [lambda x: a + x, lambda x: x + a, lambda x: a - x, lambda x: x - a, lambda x: a * x, lambda x: a / x, lambda x: -x, abs,
                 lambda x: 7 % x, lambda x: x // 2, lambda x: 2 ** x, lambda x: x ** a[2], lambda x: a @ x, lambda x: np.float64(3) * x,
                 lambda x: x < a, lambda x: a < x, lambda x: x >= 0, lambda x: a <= x, lambda x: [1, 2, 3] + x]
    played = xtape.Player([each(x) for each in operators], threads=1)({x: given})
    for i, (each, got) in enumerate(zip(operators, played)):
        holds(f"operator {i} is that of NumPy", np.allclose(got, each(given)))
    holds("a sum in an array cannot be recorded", raises(TypeError, "", a.__iadd__, x))
    total = x
    total += a
    holds("a sum in place of a var is a var", isinstance(total, xtape.Var) and total.shape == (3,))
    holds("a var has no truth value", raises(TypeError, "truth value", bool, x > 0))
    holds("numbers have 64 bits", raises(OverflowError, "", lambda: x + 2 ** 64) and raises(OverflowError, "", tape.input, "l", (2 ** 64,)))
    first, order = x.sort()
    holds("several results", first.shape == order.shape == (3,))
    scale, shift = np.array([1.0, 2, 3]), tape.constant(np.array([5.0, 6, 7]))
    by_name = [x.layer_norm(weight=scale, bias=shift), x.layer_norm(bias=shift, weight=scale), xtape.op("layer_norm", bias=shift, x=x, weight=scale)]
    played = xtape.Player([x.layer_norm(scale, shift), *by_name], threads=1)({x: given})
    holds("inputs by name, in any order", all(np.array_equal(each, played[0]) for each in played))
    holds("an input by name and an attribute", x.layer_norm(weight=x, epsilon=1e-3).shape == (3,))
    holds("an input after one that is missing", raises(TypeError, "layer_norm(x, weight, bias) cannot take 'bias'", x.layer_norm, bias=shift))
    holds("an input given twice", raises(TypeError, "'weight'", x.layer_norm, scale, weight=scale))
    holds("a misspelt input", raises(TypeError, "'weigth'", x.layer_norm, weigth=scale))
    holds("a misspelt attribute", raises(xtape.Error, "epsilom", x.layer_norm, epsilom=1))
    holds("no var and no tape", raises(TypeError, "tape=", xtape.op, "add", 1, 2) and xtape.op("add", 1, 2, tape=tape).shape == ())
    holds("dtypes of NumPy for inputs", tape.input("n", (2,), np.float32).shape == tape.input("m", [2], np.dtype("int64")).shape == (2,))
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
                "batch.size": 2, "steps": 5, "schedule.warmup": 0, "threads": 1}
    run = xtape.run("shakespeare_char", f"{folder}/run", **settings)
    seen = []
    holds("a training that a callback ends", not run.train(lambda update, loss: seen.append(loss) or update == 2) and len(seen) == 2)
    def fails(*values):
        seen.append(values)
        raise KeyError("from the callback")
    seen.clear()
    holds("an exception of a callback ends a training", raises(KeyError, "from the callback", run.train, fails) and len(seen) == 1)
    holds("a training in a training", raises(xtape.Error, "is being trained", run.train, lambda update, loss: run.train()))
    holds("a training to its end", run.train() and run.evaluate()["step"] == 5)
    holds("a text", len(run.generate("abc", tokens=5, seed=1)) == 5)
    holds("an exception of a callback ends a text", raises(KeyError, "from the callback", run.generate, "abc", fails) and len(seen) == 2)
    letters = {chr(byte): byte for byte in [*range(33, 127), *range(161, 173), *range(174, 256)]}
    letters |= {chr(256 + i): byte for i, byte in enumerate(sorted(set(range(256)) - set(letters.values())))}
    (Path(folder) / "vocab.json").write_text(json.dumps(letters))
    (Path(folder) / "merges.txt").write_text("")
    text.write_text("äöü€ß" * 100)
    tokenizer = {"tokenizer.kind": "gpt2", "tokenizer.vocab": f"{folder}/vocab.json", "tokenizer.merges": f"{folder}/merges.txt"}
    run = xtape.run("shakespeare_char", f"{folder}/bytes", **settings, **tokenizer)
    calls = []
    for seed in range(12):  # single bytes, most of which are no character alone
        run.generate("ä", lambda token, text: calls.append(text) or True, tokens=9, seed=seed)
    holds("a callback that has asked to stop is not called again", len(calls) == 12 and "" in calls)
    holds("wrong settings are errors", raises(xtape.Error, "stepps", xtape.run, "shakespeare_char", f"{folder}/b", **settings, stepps=1))


if __name__ == "__main__":
    wanted = prototypes()
    ours = dict(each.split(maxsplit=1) for each in xtape.PROTOTYPES.split(","))
    holds("the prototypes are those of xtape.h", ours == wanted, str(set(ours.items()) ^ set(wanted.items())))
    arrays()
    foreign_arrays()
    lifetimes()
    calls()
    with tempfile.TemporaryDirectory() as work:
        runs(work)
    sys.exit(report())
