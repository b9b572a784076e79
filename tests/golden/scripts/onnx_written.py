"""Judges ONNX files that xtape has written by ONNX's checker and ONNX Runtime.

    XTAPE_ONNX_WRITTEN=FOLDER build/tests/onnx_test
    python3 tests/golden/scripts/onnx_written.py FOLDER

Needs the packages onnx, onnxruntime and numpy. Beside each NAME.onnx is NAME.safetensors with the inputs and the
outputs that xtape played. Outputs must agree to 1e-5 of the largest number,
those of halves to 2e-3. ONNX Runtime lacks some operators for float64 and float16; such files are only checked."""
import json
import pathlib
import struct
import sys

import numpy
import onnx
import onnxruntime

DTYPES = {"F64": "f8", "F32": "f4", "I64": "i8", "I32": "i4", "I8": "i1", "BOOL": "?", "F16": "f2"}


def load(path):
    bytes_ = path.read_bytes()
    size = struct.unpack("<Q", bytes_[:8])[0]
    header = json.loads(bytes_[8:8 + size])
    header.pop("__metadata__", None)
    arrays = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = numpy.frombuffer(bytes_[8 + size + begin:8 + size + end], DTYPES[entry["dtype"]])
        arrays[name] = data.reshape(entry["shape"])
    return arrays


def difference(found, wanted):
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return numpy.inf
    a, b = found.astype("f8").ravel(), wanted.astype("f8").ravel()
    other = ~((a == b) | (numpy.isnan(a) & numpy.isnan(b)))
    a, b = a[other], b[other]
    if not numpy.isfinite(a).all() or not numpy.isfinite(b).all():
        return numpy.inf
    return abs(a - b).max(initial=0)


def largest(array):
    return abs(array[numpy.isfinite(array)].astype("f8")).max(initial=0)


def judge(path):
    onnx.checker.check_model(str(path), full_check=True)
    arrays = load(path.with_suffix(".safetensors"))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    feeds = {value.name: arrays["in." + value.name] for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    found = session.run(names, feeds)
    wanted = [arrays["out." + name] for name in names]
    most = max(map(difference, found, wanted))
    return most and most / max(map(largest, wanted))


def main():
    onnxruntime.set_default_logger_severity(4)
    passed, failed, checked, most = 0, [], 0, 0.0
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.onnx")):
        try:
            found = judge(path)
            half = path.stem.endswith("float16")
            if found < (2e-3 if half else 1e-5):
                passed += 1
                most = max(most, 0 if half else found)
            else:
                failed.append(f"{path.stem}: {found:.1e} of the largest number")
        except Exception as error:  # each library has its own
            lacking = "NOT_IMPLEMENTED" in str(error) or "data type is not supported" in str(error)
            if lacking and path.stem.endswith(("float16", "float64")):
                checked += 1
                continue
            failed.append(f"{path.stem}: {str(error).splitlines()[0]}")
    print("\n".join(failed))
    print(f"{passed} passed, {checked} checked only, {len(failed)} failed; the largest difference of those that passed is {most:.1e}")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
