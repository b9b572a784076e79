"""The files of tests/golden/data/npy: arrays as NumPy writes them, for the readers of .npy and .npz files."""
import os

import numpy as np

folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data/npy")
os.makedirs(folder, exist_ok=True)


def path(name):
    return os.path.join(folder, name)


x = np.array([[1, 2, 3], [4, 5, 250]])
for dtype in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"):
    np.save(path(f"{dtype}.npy"), (x % 128 if dtype == "int8" else x).astype(dtype))
np.save(path("bool.npy"), x > 3)
np.save(path("scalar.npy"), np.float32(2.5))
np.save(path("empty.npy"), np.zeros((0, 4), np.float32))
for version in (1, 2, 3):
    with open(path(f"version_{version}.npy"), "wb") as file:
        np.lib.format.write_array(file, x, (version, 0))
# What is refused.
np.save(path("fortran.npy"), np.asfortranarray(x))
np.save(path("big_endian.npy"), x.astype(">f4"))
np.save(path("complex64.npy"), x.astype("complex64"))
np.save(path("uint64.npy"), x.astype("uint64"))
np.save(path("text.npy"), np.array(["a", "bc"]))
np.save(path("records.npy"), np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]))

images = np.arange(3 * 2 * 2, dtype=np.uint8).reshape(3, 2, 2)
labels = np.array([2, 0, 1])
for write, name in ((np.savez, "images.npz"), (np.savez_compressed, "images_compressed.npz")):
    write(path(name), images=images, labels=labels)
np.savez(path("other_names.npz"), x_train=images, y_train=labels)
