"""Writes examples/data/digits.safetensors, scikit-learn's 1,797 handwritten digits of 8 x 8 pixels.

usage: digits.py [FILE]        (needs numpy and scikit-learn)

The digits are the test set of the "Optical Recognition of Handwritten Digits" (E. Alpaydin and C. Kaynak, 1998, UCI
Machine Learning Repository, doi.org/10.24432/C50P49, licence CC BY 4.0). Their values of 0 to 16 become bytes. The
order is that of scikit-learn. The last 360 digits (20 %) are by other writers than most of the rest."""
import json, struct, sys
from pathlib import Path

import numpy
from sklearn.datasets import load_digits

digits = load_digits()
arrays = {"images": numpy.round(digits.images * (255 / 16)).astype(numpy.uint8), "labels": digits.target.astype(numpy.uint8)}
header, at = {}, 0
for name, array in arrays.items():
    header[name] = {"dtype": "U8", "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
    at += array.nbytes
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "digits.safetensors")
path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))
