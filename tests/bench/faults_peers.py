#!/usr/bin/env python3
"""The faults of tests/inspect/faults_test.cpp in PyTorch with detect_anomaly, and in JAX with debug_nans: which line do they
name? Prints a line for each fault: what the peer said, and whether it was the line at fault.
usage: faults_peers.py        needs torch and jax; the tests of xtape name the line in all cases"""
import contextlib
import io
import re
import sys
import traceback
import warnings

# The body of a function of x; the call at fault is marked. Names are those of PEERS below.
FAULTS = {
    "exp overflows": ([1, 2, 300], "y = exp(x)  # fault\nreturn mean(y)"),
    "scores of attention overflow": ([[1e20, 2e20], [3e20, 1]],
                                     "s = einsum('id,jd->ij', x, x)  # fault\np = softmax(s)\nreturn sum(einsum('ij,jd->id', p, x))"),
    "log of 0 behind a mask": ([0, 1, 2], "y = log(x)  # fault\nreturn sum(y * floats(x > 0))"),
    "log of 0 behind where, backward": ([0, 1, 2], "y = log(x)  # fault\nreturn sum(where(x > 0, y, 0.0))"),
    "division by a count of 0": ([1, 2, 3], "kept = floats(x > 5)\ny = sum(x * kept) / sum(kept)  # fault\nreturn y"),
    "variance of a constant row": ([[1, 2, 3], [4, 4, 4]],
                                   "c = x - mean1(x)\nr = rsqrt(mean1(c * c))  # fault\nreturn sum(c * r)"),
    "sqrt of 0 has an infinite gradient": ([0, 1, 4], "y = sqrt(x)  # fault\nreturn sum(y)"),
    "norm of a row of zeros, backward": ([[0, 0], [3, 4]], "s = sum1(x * x)\ny = sqrt(s)  # fault\nreturn sum(y)"),
    "NaN in the data": ([1, float("nan"), 3], "y = exp(x)  # fault\nreturn mean(y)"),
    "infinity in the data": ([1, float("inf"), 3], "y = exp(x)  # fault\nreturn mean(y)"),
    "index out of range": ([[1, 2], [3, 4]], "y = take(x, [0, 5])  # fault\nreturn sum(y)"),
    "target out of range": ([[1, 2], [3, 4]], "y = gather(x, [[0], [7]])  # fault\nreturn mean(y)"),
    "0 / 0": ([0, 1, 2], "y = x / x  # fault\nreturn sum(y)"),
    "difference of infinities": ([100, 1, 2], "y = exp(x)  # fault\nd = y - y\nreturn sum(d)"),
    "root of a negative number": ([-2, 1, 2], "y = x ** 0.5  # fault\nreturn sum(y)"),
    "log of a negative number": ([-2, 1, 2], "y = log(x)  # fault\nreturn sum(y)"),
    "variance below 0 by cancellation": ([[3000.1] * 3, [1, 2, 3]],
                                         "v = mean1(x * x) - mean1(x) ** 2 - 1e-3\ny = sqrt(v)  # fault\nreturn sum(y)"),
    "square overflows": ([1e25, 1, 2], "y = x * x  # fault\nreturn sqrt(mean(y))"),
    "sum overflows": ([3e38, 3e38, 1], "y = x + x  # fault\nreturn mean(y) * 0.5"),
    "product overflows in the backward pass": ([1e-30, 1, 2], "y = 1 / x  # fault\nreturn sum(y)"),
    "power has an infinite gradient at 0": ([0, 1, 2], "y = x ** 0.25  # fault\nreturn sum(y)"),
    "log1p of -1": ([-1, 0, 2], "y = log1p(x)  # fault\nreturn sum(y)"),
    "mean of nothing": ([1, 2, 3], "y = mean(x[:0])  # fault\nreturn y"),
    "sum of a running product": ([[90, 1, 1], [1, 2, 3]], "y = exp(cumsum1(x))  # fault\nreturn sum(y)"),
    "harmless infinity before the fault": ([200, 1, -2], "h = 1 / (1 + exp(x))\ny = log(x)  # fault\nreturn sum(h + y)"),
    "mask of -inf before the fault": ([[1, 2], [0, 4]],
                                      "m = softmax(where(x > 1, float('-inf'), x))\ny = rsqrt(x)  # fault\nreturn sum(m * y)"),
    "rsqrt of 0": ([0, 1, 2], "y = rsqrt(x)  # fault\nreturn sum(y)"),
    "cast overflows": ([1, 2, 3], "y = exp(x * 100)  # fault\nreturn sum(y)"),
    "a state explodes": ([3, 3, 3, 3, 3, 3, 3, 3],
                         "h = x[0] * 0 + 1\nfor i in range(8):\n    h = h * h * x[i]  # fault\nreturn sum(h)"),
}


def torch_names():
    import torch
    return torch, {
        "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "log1p": torch.log1p,
        "sum": torch.sum, "mean": torch.mean, "where": lambda c, a, b: torch.where(c, a, b), "einsum": torch.einsum,
        "sum1": lambda x: x.sum(-1), "mean1": lambda x: x.mean(-1, keepdim=True), "cumsum1": lambda x: x.cumsum(-1),
        "softmax": lambda x: x.softmax(-1), "floats": lambda x: x.float(),
        "take": lambda x, i: x[torch.tensor(i)], "gather": lambda x, i: x.gather(1, torch.tensor(i))}


def jax_names():
    import jax
    import jax.numpy as jnp
    return jax, {
        "exp": jnp.exp, "log": jnp.log, "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "log1p": jnp.log1p, "sum": jnp.sum,
        "mean": jnp.mean, "where": jnp.where, "einsum": jnp.einsum, "sum1": lambda x: x.sum(-1),
        "mean1": lambda x: x.mean(-1, keepdims=True), "cumsum1": lambda x: jnp.cumsum(x, -1),
        "softmax": lambda x: jax.nn.softmax(x, -1), "floats": lambda x: x.astype(jnp.float32),
        "take": lambda x, i: x[jnp.array(i)], "gather": lambda x, i: jnp.take_along_axis(x, jnp.array(i), 1)}


def function_of(body, names):
    lines = ["def f(x):"] + ["    " + line for line in body.split("\n")]
    scope = dict(names)
    exec(compile("\n".join(lines), "<fault>", "exec"), scope)
    at_fault = next(number for number, line in enumerate(lines, 1) if "# fault" in line)
    return scope["f"], at_fault


def lines_in(text):
    return [int(number) for number in re.findall(r'File "<fault>", line (\d+)', text)]


def ask_torch(f, x, torch):
    x = torch.tensor(x, dtype=torch.float32, requires_grad=True)
    said = io.StringIO()
    with contextlib.redirect_stderr(said), warnings.catch_warnings():
        warnings.simplefilter("always")
        try:
            with torch.autograd.detect_anomaly():
                f(x).backward()
        except Exception as error:
            return f"{type(error).__name__}: {error}", lines_in(said.getvalue() + traceback.format_exc())
    return "nothing", []


def ask_jax(f, x, jax):
    try:
        jax.grad(f)(jax.numpy.array(x, dtype=jax.numpy.float32))
    except Exception as error:
        return f"{type(error).__name__}: {error}", lines_in(traceback.format_exc())
    return "nothing", []


def main():
    peers = []
    torch, names = torch_names()
    peers.append(("detect_anomaly", lambda f, x: ask_torch(f, x, torch), names))
    jax, names = jax_names()
    jax.config.update("jax_debug_nans", True)
    jax.config.update("jax_traceback_filtering", "off")
    peers.append(("debug_nans", lambda f, x: ask_jax(f, x, jax), names))
    for peer, ask, names in peers:
        right = 0
        for fault, (x, body) in FAULTS.items():
            f, at_fault = function_of(body, names)
            said, lines = ask(f, x)
            is_right = at_fault in lines
            right += is_right
            print(f"{peer} | {fault} | {'the line' if is_right else 'another line' if lines else 'no line'} | "
                  f"{said.splitlines()[0][:100]}", flush=True)
        print(f"{peer}: the line at fault in {right} of {len(FAULTS)}")


if __name__ == "__main__":
    sys.exit(main())
