"""xtape in Python, by ctypes and NumPy, without a build: this file and the library libxtape-c.

The functions are those of xtape.h, and docs/how_to/python.md is the page for users. Arrays are NumPy arrays, or objects with
__dlpack__ such as tensors of PyTorch. Elements are not copied, except where a play reads its inputs. The environment variable
XTAPE_LIBRARY may name the library."""
import ctypes, functools, itertools, json, operator, os, sys, types
import numpy as np

NAMES = ("float32", "float64", "bfloat16", "float16", "int32", "int64", "int8", "bool", "Q8_0", "Q4_0", "Q4_K", "Q5_K", "Q6_K")
CODES = {name: code for code, name in enumerate(NAMES)}
_CODES = {np.dtype(name): code for name, code in CODES.items() if code < 8 and name != "bfloat16"}
class _Var(ctypes.Structure):
    _fields_ = [("tape", ctypes.c_uint32), ("serial", ctypes.c_uint32), ("node", ctypes.c_int32), ("output", ctypes.c_int32)]
class _View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64))]
# The functions of the library and their arguments: p a pointer or handle, s a text, i int32, l int64, u uint64, z size_t,
# d double, v a var.
PROTOTYPES = """release p, describe pp, op_table p, array_new pp, array_view pp, array_from_dlpack pip, array_to_dlpack pip,
store_new p, store_set psp, store_get psp, store_name pzp, store_initialise psiipsu, store_load sp, store_save ps, tape_new sp,
tape_load spp, tape_save psppz, var_named psp, var_type pvppp, input psiipp, parameter ppsp, constant ppp, op pspzspzp,
grad ppzpzpsp, jvp ppzpzpp, jacobian pvpzsp, hessian pvvsp, vmap ppppzspzp, scan ppppzpzspzp, checkpoint ppppzpzp,
player_new ppzpzsp, play pppz, player_view pzp, player_array pzp, player_carried pvp, player_set_step pu, step_new ppzpsp,
step_update pppzp, step_view pzp, optimizer_new psp, optimizer_update ppzddp, state pp, model_open ssp, weights pp,
model_inputs ppsspzp, model_record ppspzpzp, model_play pssppzp, model_load_weights ps, model_save pss, generate psspp,
onnx_save psppzs, run_new sssp, train pppp, evaluate pp"""
_TYPES = {"p": ctypes.c_void_p, "s": ctypes.c_char_p, "i": ctypes.c_int32, "l": ctypes.c_int64, "u": ctypes.c_uint64,
          "z": ctypes.c_size_t, "d": ctypes.c_double, "v": _Var}
_TOKEN = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
_UPDATE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_double)
def _load():
    folder = os.path.dirname(os.path.abspath(__file__))
    beside, models = os.path.join(folder, "libxtape-c.so"), os.path.join(folder, "../../../share/xtape/models")
    if os.path.isdir(models):  # where packages have them
        os.environ.setdefault("XTAPE_MODELS", models)
    library = ctypes.CDLL(os.environ.get("XTAPE_LIBRARY") or (beside if os.path.exists(beside) else "libxtape-c.so.0"))
    functions = {}
    for prototype in PROTOTYPES.split(","):
        name, arguments = prototype.split(maxsplit=1)
        function = functions[name] = getattr(library, "xtape_" + name)
        function.argtypes, function.restype = [_TYPES[letter] for letter in arguments], ctypes.c_int32
    library.xtape_number.argtypes, library.xtape_integer.argtypes = [ctypes.c_double], [ctypes.c_int64]
    library.xtape_number.restype = library.xtape_integer.restype = _Var
    library.xtape_version.restype = library.xtape_last_error.restype = ctypes.c_char_p
    library.xtape_at.argtypes = [ctypes.c_char_p, ctypes.c_int32]
    return library, functions
_library, _functions = _load()
version = _library.xtape_version().decode()

class Error(Exception):
    """An error of the library. `status` is its kind, as in xtape.h."""
    def __init__(self, status):
        super().__init__(_library.xtape_last_error().decode())
        self.status = status
def _call(name, *arguments):
    status = _functions[name](*arguments)
    if status:
        raise Error(status)
def _at(name, *arguments):  # a call that records nodes: their place is the line outside of this file
    frame = sys._getframe(1)
    while frame.f_code.co_filename == __file__:
        frame = frame.f_back
    _library.xtape_at(frame.f_code.co_filename.encode(), frame.f_lineno)
    _call(name, *arguments)
def _text(name, *arguments):
    text = ctypes.c_char_p()
    _call(name, *arguments, ctypes.byref(text))
    return text.value.decode()
def _call_back(name, kind, each, before, after=()):  # a call that `each` ends by returning True, or by its exception
    raised = []
    def call(_, *values):
        try:
            return bool(each(*values))
        except BaseException as error:
            return not raised.append(error)
    status = _functions[name](*before, kind(call), None, *after)
    if raised or status:
        raise raised[0] if raised else Error(status)
def _options(options): return json.dumps(options, default=lambda each: np.dtype(each).name).encode()
def _code(dtype): return CODES[dtype] if isinstance(dtype, str) and dtype in CODES else _CODES[np.dtype(dtype)]
def _whole(number): return int(np.int64(operator.index(number)))  # ctypes would cut a number of more than 64 bits
def _sizes(shape): return (ctypes.c_int64 * len(shape))(*map(_whole, shape))
def _view(array):  # keeps the array
    array = np.asarray(array)
    if array.dtype not in _CODES:
        raise TypeError(f"arrays are {', '.join(NAMES[:8])}, not {array.dtype}")
    if not array.flags.aligned or any(stride % array.itemsize for stride in array.strides):
        array = array.copy()
    strides = None if array.flags.c_contiguous else _sizes([stride // array.itemsize for stride in array.strides])
    view = _View(array.ctypes.data, _CODES[array.dtype], array.ndim, _sizes(array.shape), strides)
    view.array = array
    return view
def _numpy(view, owner, writable=True):  # the array keeps the owner
    kind, shape = np.dtype(NAMES[view.dtype]), tuple(view.shape[:view.rank])
    strides = tuple(stride * kind.itemsize for stride in view.strides[:view.rank])
    memory = types.SimpleNamespace(owner=owner, __array_interface__={
        "version": 3, "typestr": kind.str, "shape": shape, "strides": strides, "data": (view.data or 0, not writable)})
    return np.asarray(memory)
class Handle:
    def __del__(self):
        _functions["release"](getattr(self, "handle", None))
    def describe(self):
        """What is in the object, as xtape_describe says it."""
        return json.loads(_text("describe", self.handle))
def _make(kind, name, *arguments, call=_call):
    made = object.__new__(kind)
    made.handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(made.handle))
    return made

class Array(Handle):
    """Elements of the library: a copy of values, or the memory of an object with __dlpack__ that is not of NumPy. numpy() and
    __dlpack__ share the elements. NumPy has no bfloat16."""
    def __new__(cls, values):
        if not hasattr(values, "__dlpack__") or isinstance(values, np.ndarray):
            return _make(cls, "array_new", ctypes.byref(_view(values)))
        try:
            capsule = values.__dlpack__(max_version=(1, 0))
        except TypeError:  # of a library that knows no versions
            capsule = values.__dlpack__()
        return _array_of(id(capsule))
    def numpy(self):
        return _elements("array_view", self, writable=self.describe()["writable"])
    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned, managed = int(max_version is not None and max_version[0] >= 1), ctypes.c_void_p()
        _call("array_to_dlpack", self.handle, versioned, ctypes.byref(managed))
        return _python.PyCapsule_New(managed, _CAPSULES[versioned], ctypes.cast(_drop, ctypes.c_void_p))
    def __dlpack_device__(self): return (1, 0)

_python, _CAPSULES = ctypes.PyDLL(None), (b"dltensor", b"dltensor_versioned")
_USED = [ctypes.create_string_buffer(b"used_" + name) for name in _CAPSULES]  # a capsule keeps the pointer to its name
_python.PyCapsule_New.restype, _python.PyCapsule_GetPointer.restype = ctypes.py_object, ctypes.c_void_p
_python.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
for _function in (_python.PyCapsule_GetPointer, _python.PyCapsule_IsValid, _python.PyCapsule_SetName):
    _function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
def _array_of(capsule):  # takes the tensor, and renames the capsule, as the protocol of DLPack says
    versioned = _python.PyCapsule_IsValid(capsule, _CAPSULES[1])
    made = _make(Array, "array_from_dlpack", _python.PyCapsule_GetPointer(capsule, _CAPSULES[versioned]), versioned)
    _python.PyCapsule_SetName(capsule, ctypes.cast(_USED[versioned], ctypes.c_char_p))
    return made
@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _drop(capsule):  # of a capsule that nobody has read
    if any(_python.PyCapsule_IsValid(capsule, name) for name in _CAPSULES):
        _array_of(capsule)

class Store(Handle):
    """Arrays by name. store[name] is a NumPy array that shares the elements, store.array(name) an Array."""
    def __new__(cls, arrays=()):
        store = _make(cls, "store_new")
        for name, array in dict(arrays).items():
            store[name] = array
        return store
    def array(self, name):
        return _make(Array, "store_get", self.handle, name.encode())
    def __getitem__(self, name):
        return self.array(name).numpy()
    def __setitem__(self, name, array):
        array = array if isinstance(array, Array) else Array(array)
        _call("store_set", self.handle, name.encode(), array.handle)
    def __iter__(self): return iter(self.describe())
    def initialise(self, name, shape, initialiser, seed=0, dtype="float32"):
        _call("store_initialise", self.handle, name.encode(), _code(dtype), len(shape), _sizes(shape), _options(initialiser), seed)

class Var:
    """A value on a tape. Its methods are the ops: x.softmax(axis=-1), x + 1, x @ w."""
    __array_ufunc__ = None  # so that NumPy leaves `array + x` to this class
    def __init__(self, tape, raw):
        self.tape, self.raw = tape, raw
    @property
    def shape(self):
        dtype, rank, shape = ctypes.c_int32(), ctypes.c_int32(), (ctypes.c_int64 * 10)()
        _call("var_type", self.tape.handle, self.raw, ctypes.byref(dtype), ctypes.byref(rank), shape)
        return tuple(shape[:rank.value])
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return functools.partial(op, name, self)
    def __bool__(self):
        raise TypeError("a var has no truth value while it is recorded: use x.where(…)")
for _pair in ("add add,radd add,sub sub,rsub sub,mul mul,rmul mul,truediv div,rtruediv div,pow pow,rpow pow,matmul matmul,rmatmul matmul,"
              "floordiv floor_divide,rfloordiv floor_divide,mod mod,rmod mod,neg neg,abs abs,lt less,le less_equal,gt greater,"
              "ge greater_equal").split(","):
    _method, _op = _pair.split()
    setattr(Var, f"__{_method}__", lambda *pair, name=_op, step=-1 if _method[0] == "r" else 1: op(name, *pair[::step]))
def _raw(tape, operand):
    if isinstance(operand, Var):
        return operand.raw
    if isinstance(operand, (float, int)):
        return _library.xtape_number(operand) if isinstance(operand, float) else _library.xtape_integer(_whole(operand))
    return tape.constant(operand).raw
def _list(tape, operands): return (_Var * len(operands))(*[_raw(tape, operand) for operand in operands])
def _vars(name, tape, *arguments, most=256):  # a call that gives a varying number of vars: one, or a tuple
    results, count = (_Var * most)(), ctypes.c_size_t()
    _at(name, *arguments, results, most, ctypes.byref(count))
    made = tuple(Var(tape, _Var.from_buffer_copy(results[i])) for i in range(count.value))
    return made[0] if len(made) == 1 else made
@functools.lru_cache(None)
def _inputs(): return {name: [each["name"] for each in spec["inputs"]] for name, spec in json.loads(_text("op_table")).items()}
def op(name, *operands, tape=None, **attributes):
    """Records an op: op("einsum", x, w, equation="ij,jk->ik"). Operands are vars, numbers and arrays; inputs may be named."""
    names = _inputs().get(name, []) if attributes else []
    following = itertools.takewhile(attributes.__contains__, names[len(operands):])
    operands += tuple(attributes.pop(key) for key in following)
    if wrong := [key for key, value in attributes.items() if key in names or isinstance(value, (Var, np.ndarray))]:
        raise TypeError(f"{name}({', '.join(names)}) cannot take '{wrong[0]}' here")
    tape = tape or next((each.tape for each in operands if isinstance(each, Var)), None)
    if tape is None:
        raise TypeError(f"{name}: give the tape as tape=…, as no operand is a var")
    return _vars("op", tape, tape.handle, name.encode(), _list(tape, operands), len(operands), _options(attributes))

class Tape(Handle):
    def __new__(cls, **options):
        return _make(cls, "tape_new", _options(options))
    def _var(self, name, *arguments):
        raw = _Var()
        _at(name, self.handle, *arguments, ctypes.byref(raw))
        return Var(self, raw)
    def input(self, name, shape, dtype="float32"):
        return self._var("input", name.encode(), _code(dtype), len(shape), _sizes(shape))
    def parameter(self, store, name):
        return self._var("parameter", store.handle, name.encode())
    def constant(self, values):
        return self._var("constant", ctypes.byref(_view(values)))
def grad(output, inputs, cotangent=None, **options):
    """Gradients of an output, one for each of the inputs."""
    tape, results = output.tape, (_Var * len(inputs))()
    along = None if cotangent is None else _list(tape, [cotangent])
    _at("grad", tape.handle, _list(tape, [output]), 1, _list(tape, inputs), len(inputs), along, _options(options), results)
    return [Var(tape, _Var.from_buffer_copy(raw)) for raw in results]

def _feeds(feeds):  # the arguments of a play, and what must outlive it
    views = [_view(values) for values in feeds.values()]
    return ((_Var * len(feeds))(*[var.raw for var in feeds]), (_View * len(feeds))(*views), len(feeds)), views
def _elements(name, handle, *arguments, writable=True):
    view = _View()
    _call(name, handle.handle, *arguments, ctypes.byref(view))
    return _numpy(view, handle, writable)

class Player(Handle):
    """A compiled computation. player({x: array}) returns its outputs, in memory that the next call writes."""
    def __new__(cls, outputs, carries=(), **options):
        tape, flat = outputs[0].tape, [var for pair in carries for var in pair]
        made = _make(cls, "player_new", tape.handle, _list(tape, outputs), len(outputs), _list(tape, flat), len(carries), _options(options))
        made.count, made.arrays = len(outputs), []
        return made
    def __call__(self, feeds={}):
        arguments, views = _feeds(feeds)
        _call("play", self.handle, *arguments)
        self.arrays += [_make(Array, "player_array", self.handle, i).numpy() for i in range(len(self.arrays), self.count)]
        return list(self.arrays)
    def carried(self, var): return _elements("player_carried", self, var.raw)

class Step(Handle):
    """A training step. step({x: array}) updates the weights, and returns the loss before."""
    def __new__(cls, results, weights, **options):
        results = results if isinstance(results, (list, tuple)) else [results]
        tape = results[0].tape
        return _make(cls, "step_new", tape.handle, _list(tape, results), len(results), weights.handle, _options(options), call=_at)
    def __call__(self, feeds={}):
        loss, (arguments, views) = ctypes.c_double(), _feeds(feeds)
        _call("step_update", self.handle, *arguments, ctypes.byref(loss))
        return loss.value

class Model(Handle):
    """A model from a definition, a folder, an ONNX or GGUF file, or a run."""
    def __new__(cls, source, **options):
        return _make(cls, "model_open", os.fsencode(source), _options(options))
    @property
    def weights(self):
        return _make(Store, "weights", self.handle)
    def inputs(self, tape, function=None, **sizes):
        made = _vars("model_inputs", tape, self.handle, tape.handle, function and function.encode(), _options(sizes))
        return made if isinstance(made, tuple) else (made,)
    def record(self, tape, function, *inputs):
        return _vars("model_record", tape, self.handle, tape.handle, function and function.encode(), _list(tape, inputs), len(inputs))
    def play(self, function=None, mode="eval", **arrays):
        views, names = [_view(array) for array in arrays.values()], [name.encode() for name in arrays]
        results = _make(Store, "model_play", self.handle, function and function.encode(), mode.encode(),
                        (ctypes.c_char_p * len(names))(*names), (_View * len(names))(*views), len(names))
        return {name: results[name] for name in results}
    def save(self, path, **options):
        _call("model_save", self.handle, os.fsencode(path), _options(options))
    def generate(self, prompt, each=lambda token, text: False, **options):
        """The text that continues a prompt, a text or a list of tokens. each(token, text) may return True to stop."""
        prompt, options = (prompt, options) if isinstance(prompt, str) else (None, {"prompt": list(prompt), **options})
        texts = []
        _call_back("generate", _TOKEN, lambda token, text: texts.append(text.decode()) or each(token, texts[-1]),
                   (self.handle, None if prompt is None else prompt.encode(), _options(options)))
        return "".join(texts)
    def train(self, each=lambda update, loss: False):
        """Trains a run to its end, or until each(update, loss) returns True. Returns whether it is at its end."""
        finished = ctypes.c_int32()
        _call_back("train", _UPDATE, each, (self.handle,), (ctypes.byref(finished),))
        return finished.value == 1
    def evaluate(self):
        return json.loads(_text("evaluate", self.handle))

def run(recipe, folder, **settings):
    """A new run: run("shakespeare_char", "runs/a", **{"data.text": "a.txt"}). It is a Model."""
    return _make(Model, "run_new", os.fsencode(recipe), _options(settings), os.fsencode(folder))
