#!/usr/bin/env python3
"""The workloads of tests/bench/transformations.cpp in xtape, JAX (jit) and PyTorch (torch.func), in turn.

Prints the least milliseconds of all rounds. JAX sets its own number of threads, so that it is confined to processors.

usage: transformations.py [--program build/tests/transformations] [--threads 1] [--rounds 3]
"""
import argparse
import os
import subprocess
import sys

from best_of import best_of

BATCH, IN, HIDDEN, OUT = 64, 100, 512, 100
SECONDS = 1.0
NAMES = ["forward", "forward_of_one", "jvp", "vmap", "gradient", "gradient_per_example", "jacobian", "hessian", "hvp"]


def parsed():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", default="build/tests/transformations")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    parser.add_argument("--name", help=argparse.SUPPRESS)
    return parser.parse_args()


def arrays():
    import numpy

    draw = numpy.random.default_rng(1)
    uniform = lambda scale, *shape: (scale * (draw.random(shape) - 0.5)).astype("float32")
    return (uniform(2, BATCH, IN), uniform(2, IN), uniform(2, BATCH, IN), uniform(2, IN),
            (uniform(0.2, IN, HIDDEN), uniform(0.2, HIDDEN, HIDDEN), uniform(0.2, HIDDEN, OUT)))


def functions(tanh, jvp, vmap, grad, jacobian, hessian):
    """The workloads, given the transformations of a library; all take (x, one, direction, along, weights)."""
    forward = lambda w, x: tanh(tanh(x @ w[0]) @ w[1]) @ w[2]
    loss = lambda w, x: (forward(w, x) ** 2).sum()
    of_input = lambda w: lambda x: loss(w, x)
    return {
        "forward": lambda x, one, d, v, w: forward(w, x),
        "forward_of_one": lambda x, one, d, v, w: forward(w, one),
        "jvp": lambda x, one, d, v, w: jvp(lambda z: forward(w, z), (x,), (d,)),
        "vmap": lambda x, one, d, v, w: vmap(lambda z: forward(w, z))(x),
        "gradient": lambda x, one, d, v, w: grad(loss)(w, x),
        "gradient_per_example": lambda x, one, d, v, w: vmap(grad(loss), (None, 0))(w, x),
        "jacobian": lambda x, one, d, v, w: jacobian(lambda z: forward(w, z))(one),
        "hessian": lambda x, one, d, v, w: hessian(of_input(w))(one),
        "hvp": lambda x, one, d, v, w: jvp(grad(of_input(w)), (one,), (v,)),
    }


def torch_time(name, threads):
    import torch
    from torch.func import grad, hessian, jacrev, jvp, vmap

    torch.set_num_threads(threads)
    function = functions(torch.tanh, jvp, vmap, grad, jacrev, hessian)[name]
    *inputs, weights = arrays()
    given = [torch.from_numpy(each) for each in inputs] + [tuple(torch.from_numpy(each) for each in weights)]
    return best_of(lambda: function(*given), SECONDS)


def jax_time(name, threads):
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    os.environ["JAX_PLATFORMS"] = "cpu"
    import jax

    function = jax.jit(functions(jax.numpy.tanh, jax.jvp, jax.vmap, jax.grad, jax.jacrev, jax.hessian)[name])
    given = jax.device_put(arrays())
    return best_of(lambda: jax.block_until_ready(function(*given)), SECONDS)


def main():
    options = parsed()
    if options.peer:
        print({"jax": jax_time, "torch": torch_time}[options.peer](options.name, options.threads))
        return
    peer = lambda library, name: [sys.executable, __file__, "--peer", library, "--name", name, "--threads",
                                  str(options.threads)]
    print(f"{'milliseconds':22}{'xtape':>10}{'JAX':>10}{'PyTorch':>10}")
    for name in NAMES:
        commands = [[options.program, name, str(options.threads)], peer("jax", name), peer("torch", name)]
        best = [1e9] * len(commands)
        for _ in range(options.rounds):
            for i, command in enumerate(commands):
                output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                best[i] = min(best[i], float(output.split()[-1]))
        print(f"{name:22}" + "".join(f"{each:10.3f}" for each in best), flush=True)


main()
