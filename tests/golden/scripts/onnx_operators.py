#!/usr/bin/env python3
"""Makes onnx/operators/VERSION.onnx and VERSION.safetensors: for each version of the operators, a model of many nodes whose
operands are initialisers, and the outputs that ONNX Runtime computes, or ONNX's reference where ONNX Runtime lacks the
operator or the dtype. Each output is named after its case. These are cases that ONNX's own operator data lacks: other
dtypes, attributes that are written out, empty arrays, and broadcasting. Needs onnx, onnxruntime and safetensors; the tests
do not."""
import os, warnings

import numpy as np, onnx, onnxruntime
from onnx import TensorProto as T, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from safetensors.numpy import save_file

warnings.simplefilter("ignore")
onnxruntime.set_default_logger_severity(4)
random = np.random.default_rng(1)
cases = {}  # by version: (name, node, arrays by name, outputs by name)


def numbers(*shape, dtype="float32"):
    """Numbers of few digits; positive if unsigned."""
    if dtype == "bool":
        return random.random(shape) < 0.5
    low = 0 if dtype.startswith("u") else -40
    return (random.integers(low, 41, shape) / (8 if dtype.startswith("f") else 1)).astype(dtype)


def integers(*values):
    return np.array(values, np.int64)


def add(version, name, op, inputs, outputs=1, **attributes):
    """Inputs are arrays, None where one is missing. The case counts if one of the programs computes it."""
    names = ["" if each is None else f"{name} {i}" for i, each in enumerate(inputs)]
    arrays = {key: np.asarray(each) for key, each in zip(names, inputs) if key}
    results = [name if i == 0 else f"{name}, output {i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, name=name, **attributes)
    graph = helper.make_graph([node], "g", [], [onnx.ValueInfoProto(name=each) for each in results],
                              [numpy_helper.from_array(each, key) for key, each in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9)
    try:
        wanted = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {})
    except Exception:
        wanted = ReferenceEvaluator(model).run(None, {})
    cases.setdefault(version, []).append((node, arrays, dict(zip(results, map(np.asarray, wanted)))))


# Integers where the formula has fractions, and results that keep the dtype of the operand.
for dtype in ("int8", "uint8", "int32"):
    x = np.array([[[[0, 40, 80]]]], dtype)
    add(9, f"Upsample linear {dtype}", "Upsample", [x, np.array([1, 1, 1, 2], "float32")], mode="linear")
    add(10, f"Resize linear {dtype}", "Resize", [x, np.array([1, 1, 1, 2], "float32")], mode="linear")
    add(18, f"Resize linear {dtype}", "Resize", [x, None, np.array([1, 1, 1, 2], "float32")], mode="linear")
    add(14, f"Add {dtype}", "Add", [np.array([100, 120], dtype), np.array([27, 120], dtype)])
    add(14, f"Sub {dtype}", "Sub", [np.array([3, 4], dtype), np.array([5, 1], dtype)])
    add(18, f"BitwiseNot {dtype}", "BitwiseNot", [np.array([3, 0, 100], dtype)])
    add(12, f"Max {dtype}", "Max", [numbers(3, dtype=dtype), numbers(3, dtype=dtype)])
    add(18, f"ReduceMax {dtype}", "ReduceMax", [numbers(2, 3, dtype=dtype), integers(1)])
    least = np.iinfo(dtype).min
    add(13, f"Mod fmod {dtype}", "Mod", [np.array([least, least, 100, 7], dtype), np.array([3, 7, 7, 9], dtype)], fmod=1)
add(9, "Shrink int32", "Shrink", [np.array([-3, 0, 3], "int32")], lambd=1.5, bias=0.5)
for dtype in ("uint16", "uint32"):
    add(11, f"BitShift {dtype}", "BitShift", [np.array([3, 60000], dtype), np.array([1, 8], dtype)], direction="LEFT")
    add(19, f"CastLike {dtype}", "CastLike", [np.array([-2.0, 70000.0], "float32"), np.zeros(1, dtype)])
for alpha, beta in ((1, 0), (2, 3), (0.5, 0.5)):
    for dtype in ("int32", "float32"):
        c = np.array([np.nan if beta == 0 and dtype == "float32" else 3]).astype(dtype)
        add(13, f"Gemm {dtype} {alpha} {beta}", "Gemm", [numbers(2, 3, dtype=dtype), numbers(3, 2, dtype=dtype), c],
            alpha=float(alpha), beta=float(beta))
for op in ("ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"):
    add(18, f"{op} int32", op, [np.array([[30000001, 30000003], [5, 8]], "int32") // (10**6 if "Exp" in op else 1),
                                integers(1)])
add(15, "Pow int64 to float32", "Pow", [np.array([94906267, 3], "int64"), np.array([2, 3], "float32")])
add(15, "Pow float16 to float32", "Pow", [np.array([2, 3], "float16"), np.array([0.3333, 2], "float32")])
add(15, "BatchNormalization float64 with float32", "BatchNormalization",
    [numbers(2, 3, dtype="float64")] + [np.array([1, 2, 3], "float32")] * 4)
for dtype in ("int16", "uint16", "int8", "uint8"):
    add(21, f"QuantizeLinear {dtype}", "QuantizeLinear", [numbers(2, 3) * 9000, np.array(1, "float32"), np.array(3, dtype)])

# Versions.
for scale in (0.6, 1.5):
    add(10, f"Resize nearest {scale}", "Resize", [numbers(1, 1, 2, 4), np.array([1, 1, scale, scale], "float32")])

# Zeros and nothing.
for p in (1, 2):
    add(18, f"LpNormalization {p}", "LpNormalization", [np.array([[0, 0], [3, -4]], "float32")], p=p)
for dtype in ("float32", "float16", "int32", "int64", "int8", "uint8", "bool"):
    for op in ("ReduceMax", "ReduceMin"):
        add(20, f"{op} {dtype} of nothing", op, [np.zeros((2, 0, 3), dtype), integers(1)], keepdims=0)
add(13, "Hardmax of nothing", "Hardmax", [np.zeros((2, 0), "float32")])
add(18, "Resize of nothing", "Resize", [np.zeros((0, 1, 2, 2), "float32"), None, np.array([1, 1, 2, 2], "float32")])

# Broadcasting and smaller operands.
for axis, shape in ((0, (2, 2)), (1, (1, 5)), (-1, (2, 0))):
    add(18, f"GatherElements {shape} along {axis}", "GatherElements",
        [numbers(3, 4), random.integers(-3, 3, shape)], axis=axis)
for equation, *shapes in (("ij,ij->ij", (1, 3), (2, 3)), ("ij,jk->ik", (2, 3), (1, 4)), ("ij,kj->", (2, 1), (2, 3))):
    add(18, f"Einsum {equation} {shapes}", "Einsum", [numbers(*each) for each in shapes], equation=equation)
for shapes in (((4,), (3, 4)), ((2, 3, 4), (1,)), ((3, 1), None), ((1, 1, 4), (2, 1, 1))):
    given = [None if each is None else numbers(*each) for each in shapes]
    add(18, f"LayerNormalization {shapes}", "LayerNormalization", [numbers(2, 3, 4)] + given, axis=1)
    if shapes[0] != (2, 3, 4):
        add(23, f"RMSNormalization {shapes[0]}", "RMSNormalization", [numbers(2, 3, 4), given[0]], axis=1)

# Blocks.
for axis, block, shape in ((1, 2, (2, 3)), (0, 3, (1, 5)), (-1, 9, (2, 1))):
    scale, zero = np.abs(numbers(*shape)) + 1, np.full(shape, 2, "int8")
    add(21, f"DequantizeLinear {axis} {block}", "DequantizeLinear",
        [numbers(2, 5, dtype="int8"), scale, zero], axis=axis, block_size=block)
    add(21, f"QuantizeLinear {axis} {block}", "QuantizeLinear", [numbers(2, 5) * 9, scale, zero], axis=axis,
        block_size=block)

# Attributes.
for policy in ("not_larger", "not_smaller"):
    add(18, f"Resize {policy}", "Resize", [numbers(1, 1, 2, 3), None, None, integers(5, 4)], mode="linear",
        axes=[2, 3], keep_aspect_ratio_policy=policy)
for mode in ("wrap", "reflect", "edge"):
    add(19, f"Pad {mode}", "Pad", [numbers(3, 2), integers(5, 0 if mode == "reflect" else -1, 4, 6)], mode=mode)
for order in (0, 1):
    add(12, f"MaxPool {order}", "MaxPool", [numbers(1, 2, 4, 5)], outputs=2, kernel_shape=[2, 3], pads=[0, 1, 1, 2],
        storage_order=order)
    add(12, f"MaxPool of 3 axes {order}", "MaxPool", [numbers(2, 1, 3, 3, 4)], outputs=2, kernel_shape=[2, 2, 2],
        dilations=[1, 2, 1], storage_order=order)
add(12, "MaxPool, window beyond both ends", "MaxPool", [numbers(1, 1, 3, 4)], outputs=2, kernel_shape=[3, 2],
    dilations=[2, 1], strides=[2, 1], pads=[0, 0, 1, 0], ceil_mode=1)
body = helper.make_graph(
    [helper.make_node("Add", ["s", "v"], ["t"]), helper.make_node("Mul", ["t", "v"], ["o"])], "b",
    [helper.make_tensor_value_info(each, T.FLOAT, [2]) for each in "sv"],
    [helper.make_tensor_value_info(each, T.FLOAT, [2]) for each in "to"])
for axis, direction in ((0, 0), (1, 1), (-1, 0)):
    x = numbers(3, 2)
    add(18, f"Scan {axis} {direction}", "Scan", [numbers(2), x if axis == 0 else x.T], outputs=2, body=body,
        num_scan_inputs=1, scan_input_axes=[axis], scan_output_axes=[axis], scan_input_directions=[direction],
        scan_output_directions=[1 - direction])
body = helper.make_graph(
    [helper.make_node("Add", ["s", "s"], ["t"]), helper.make_node("Cast", ["t"], ["o"], to=T.UINT8),
     helper.make_node("Identity", ["c"], ["d"])], "b",
    [helper.make_tensor_value_info("i", T.INT64, []), helper.make_tensor_value_info("c", T.BOOL, []),
     helper.make_tensor_value_info("s", T.FLOAT, [2])],
    [helper.make_tensor_value_info("d", T.BOOL, []), helper.make_tensor_value_info("t", T.FLOAT, [2]),
     helper.make_tensor_value_info("o", T.UINT8, [2])])
for steps in (0, 3):
    add(18, f"Loop of {steps} steps", "Loop", [np.array(steps), np.array(True), np.array([100, 3], "float32")],
        outputs=2, body=body)
for op, gates, settings in (
        ("RNN", 1, [{"activations": ["Relu"]}, {"clip": 0.5}, {"activations": ["Affine"], "activation_alpha": [0.5],
                                                               "activation_beta": [0.25]}]),
        ("GRU", 3, [{"clip": 0.5}, {"activations": ["HardSigmoid", "Softsign"], "activation_alpha": [0.3]}]),
        ("LSTM", 4, [{"clip": 0.5, "input_forget": 1},
                     {"activations": ["HardSigmoid", "ScaledTanh", "LeakyRelu"], "activation_alpha": [0.3, 0.5, 0.1],
                      "activation_beta": [0.4, 0.8]}])):
    for i, setting in enumerate(settings):
        for direction, count in (("forward", 1), ("bidirectional", 2)):
            both = {key: value * count if isinstance(value, list) else value for key, value in setting.items()}
            add(14, f"{op} {i} {direction}", op,
                [numbers(3, 2, 2) / 4, numbers(count, gates * 2, 2) / 4, numbers(count, gates * 2, 2) / 4],
                outputs=3 if op == "LSTM" else 2, hidden_size=2, direction=direction, **both)

# Sizes and corners as PyTorch exports them: 5 times 1.4 is 7 in float32, and the last elements meet.
x = np.sin(np.arange(25, dtype="float32")).reshape(1, 1, 5, 5)
for scale in (1.4, 1.5, 0.6):
    scales = np.array([1, 1, scale, scale], "float32")
    add(18, f"Resize asymmetric {scale}", "Resize", [x, None, scales], mode="nearest",
        coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    for mode in ("linear", "cubic"):
        add(18, f"Resize {mode}, align_corners {scale}", "Resize", [x, None, scales], mode=mode,
            coordinate_transformation_mode="align_corners")

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "onnx", "operators")
os.makedirs(folder, exist_ok=True)
for version, list_of_cases in cases.items():
    arrays, wanted = {}, {}  # by name
    for _, given, results in list_of_cases:
        arrays |= given
        wanted |= results
    graph = helper.make_graph(
        [node for node, _, _ in list_of_cases], "g", [],
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), None)
         for name, value in wanted.items()], [numpy_helper.from_array(each, name) for name, each in arrays.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=9)
    with open(f"{folder}/{version}.onnx", "wb") as file:
        file.write(model.SerializeToString(deterministic=True))
    save_file({name: np.array(value, order="C") for name, value in wanted.items()}, f"{folder}/{version}.safetensors")
