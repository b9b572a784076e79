#!/usr/bin/env python3
"""Writes gradbench.jsonl: small inputs of GradBench's evals, with the outputs of its tool `manual`, and what it expects
of saddle and particle. Needs a checkout of GradBench in which `make -C tools/manual` has made the programs.

usage: gradbench.py CHECKOUT
"""
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

draw = random.Random(1)


def numbers(*shape):
    return [numbers(*shape[1:]) for _ in range(shape[0])] if shape else round(draw.uniform(-1, 1), 3)


def hand(points, complicated, mirrored=False):
    """Five fingers of four bones, and 7 vertices that move with all of them."""
    bones, vertices = 22, 7
    parents = [-1] + [0 if i % 4 == 1 else i - 1 for i in range(1, 21)] + [0]
    weights = [[abs(each) / 10 for each in row] for row in numbers(vertices, bones)]
    last = [[0.0, 0.0, 0.0, 1.0]]
    model = {"bone_count": bones, "bone_names": [f"bone{i}" for i in range(bones)], "parents": parents,
             "base_relatives": [m + last for m in numbers(bones, 3, 4)],
             "inverse_base_absolutes": [m + last for m in numbers(bones, 3, 4)],
             "base_positions": [v + [1.0] for v in numbers(vertices, 3)], "weights": weights,
             "triangles": [[0, 1, 2], [2, 3, 4], [4, 5, 6]], "is_mirrored": mirrored}
    data = {"model": model, "points": numbers(points, 3), "correspondences": [i % 3 for i in range(points)]}
    return {"theta": numbers(26), "data": data, "us": numbers(points, 2) if complicated else []}


d, k = 3, 2
evals = {
    "hello": (["square", "double"], [3.5]),
    "lse": (["primal", "gradient"], [{"x": numbers(5)}, {"x": [700.0, 710.0, 720.0]}]),
    "llsq": (["primal", "gradient"], [{"x": numbers(4), "n": 16}]),
    "kmeans": (["cost", "dir"], [{"points": [[0.1, 0.2], [0.3, 0.1], [2.5, 2.2], [2.4, 2.9], [5.1, 0.3], [5.5, 0.2]],
                                  "centroids": [[0.0, 0.0], [2.0, 2.0], [5.0, 0.5]]}]),
    "gmm": (["objective", "jacobian"], [{"d": d, "k": k, "n": 6, "m": 2, "gamma": 1.3, "x": numbers(6, d),
                                         "alpha": numbers(k), "mu": numbers(k, d), "q": numbers(k, d), "l": numbers(k, d * (d - 1) // 2)}]),
    "ode": (["primal", "gradient"], [{"x": [0.7, 0.4, 0.9], "s": 10}]),
    "lstm": (["objective", "jacobian"], [{"main_params": numbers(4, 12), "extra_params": numbers(3, 3),
                                          "state": numbers(4, 3), "sequence": [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0],
                                                                               [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}]),
    "ba": (["objective", "jacobian"], [{"n": 2, "m": 3, "p": 11, "cam": numbers(11), "x": [0.3, -0.2, 4.0], "w": 0.8,
                                        "feat": numbers(2)},
                                       {"n": 1, "m": 1, "p": 10, "cam": [0.0] * 3 + numbers(8), "x": [0.3, -0.2, 4.0],
                                        "w": 0.8, "feat": numbers(2)}]),
    "ht": (["objective", "jacobian"], [hand(3, False), hand(4, True)]),
    "ht mirrored": (["objective"], [hand(2, True, True)]),  # the derivatives of `manual` are not mirrored
    "det": (["primal", "gradient"], [{"A": numbers(16), "ell": 4}]),
}


def manual(folder, module, function, given):
    with tempfile.NamedTemporaryFile("w") as file:
        json.dump(given, file)
        file.flush()
        done = subprocess.run([folder / module, file.name, function], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[0])


def main():
    folder = Path(sys.argv[1]).resolve() / "tools/manual/bin"
    with open(Path(__file__).parents[1] / "data/gradbench.jsonl", "w") as file:
        def write(module, function, given, output):
            message = {"kind": "evaluate", "module": module, "function": function, "input": given}
            print(json.dumps({"message": message, "output": output}), file=file)

        for module, (functions, inputs) in evals.items():
            for given in inputs:
                for function in functions:
                    name = module.split()[0]
                    write(name, function, given, manual(folder, name, function, given))
        for function in "rr", "rf", "fr", "ff":
            write("saddle", function, {"start": [1.0, 1.0]}, [8.246324826140356e-06] * 4)
            write("particle", function, {"w": 0.0}, 0.2071918746486116)


main()
