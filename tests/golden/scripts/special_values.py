#!/usr/bin/env python3
"""Makes onnx/special_values.json: what ONNX Runtime plays from the files of the test of special values.

    XTAPE_ONNX_SPECIAL=FOLDER build/tests/onnx_test -tc="special values*"
    python3 tests/golden/scripts/special_values.py FOLDER

The test writes NAME.onnx, NAME.safetensors with the inputs of every play, and digests.json with the digest of what each
file computes and of its inputs. The golden file has for each NAME this digest and, per output, the bytes of all plays as base64, or the
reason why ONNX Runtime does not play the file. The test refuses results of another digest: run both commands again after
a change of what is written. Needs the packages onnx, onnxruntime and numpy; the test does not."""
import base64
import json
import os
import pathlib
import re
import sys

import numpy
import onnx
import onnxruntime

from onnx_written import load


class Lacking(Exception):
    pass


def played(path):
    graph = onnx.load(path).graph
    if any(value.type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16 for value in [*graph.input, *graph.output]):
        raise Lacking("NumPy has no bfloat16")
    onnx.checker.check_model(str(path), full_check=True)
    arrays = load(path.with_suffix(".safetensors"))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_outputs()]
    plays = max(int(name.rsplit(".", 1)[1]) for name in arrays) + 1 if arrays else 1
    results = [session.run(names, {value.name: arrays[f"{value.name}.{i}"] for value in session.get_inputs()})
               for i in range(plays)]
    return [base64.b64encode(b"".join(numpy.ascontiguousarray(play[k]).tobytes() for play in results)).decode()
            for k in range(len(names))]


def reason(error):
    if isinstance(error, Lacking):
        return str(error)
    text = str(error).splitlines()[0]
    known = [r"Could not find an implementation for \w+\(\d+\)", r"\w+ data type is not supported with \w+",
             r"Type '[^']*' of input parameter"]
    for each in known:
        if found := re.search(each, text):
            return found.group(0)
    raise error


def main():
    onnxruntime.set_default_logger_severity(4)
    folder = pathlib.Path(sys.argv[1])
    lines = []
    for name, digest in sorted(json.loads((folder / "digests.json").read_text()).items()):
        case = {"file": digest}
        try:
            case["y"] = played(folder / f"{name}.onnx")
        except Exception as error:  # each library has its own
            case["lacks"] = reason(error)
        lines.append(f"{json.dumps(name)}: {json.dumps(case)}")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "onnx/special_values.json"), "w") as file:
        file.write('{"onnxruntime": ' + json.dumps(onnxruntime.__version__) + ', "cases": {\n' + ",\n".join(lines) + "\n}}\n")


main()
