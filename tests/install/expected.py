#!/usr/bin/env python3
"""Whether an example printed what it should. usage: expected.py EXAMPLE < OUTPUT"""
import math, re, sys

NUMBER = r"-?(?:\d+\.?\d*(?:e[+-]?\d+)?|inf|nan)"


def numbers(name, text):
    """The numbers that follow `name`."""
    return [float(number) for number in re.findall(rf"{name}:? ({NUMBER})", text)]


def last(name, text):
    return (numbers(name, text) or [math.nan])[-1]


def falls(text):
    losses = numbers("loss", text)
    return len(losses) > 1 and losses[-1] < 0.9 * losses[0]


def near(text, expected, tolerance):
    """Whether all numbers of the text are the expected ones."""
    found = [float(number) for number in re.findall(NUMBER, text)]
    return len(found) == len(expected) and all(abs(a - b) < tolerance for a, b in zip(found, expected))


ATTENTION = [0.2992, 0.5329, 0.1679, 0.2228, 0.7070, 0.0702, 0.2645, 0.2645, 0.4711,  # every row attends to every row
             1, 0.1, 0.1, 0.8,                                                         # one row
             1, 0, 0, 0.2396, 0.7604, 0, 0.2645, 0.2645, 0.4711,                       # causal mask
             0.3595, 0.6405, 0, 0.2396, 0.7604, 0, 0.5, 0.5, 0,                        # padding mask
             0.4922, 0.5078, 0, 0.4989, 0.5011, 0, 0.4496, 0.5504, 0]                  # additive


def predicts_sines(text):
    rows = [[float(word) for word in line.split()] for line in text.split("\n")[2:-1]]
    near_sines = all(abs(prediction - sine) < 0.3 for _, prediction, _, sine in rows)
    return len(rows) == 11 and near_sines and 0.1 < last("noise", text) < 0.3


EXPECTED = {
    "attention_from_ops": lambda text: near("\n".join(re.findall(r"^  .*", text, re.M)), ATTENTION, 2e-4),
    "custom_op": lambda text: numbers("becomes", text) == [1.99951] * 2 and last("gradient", text) < 1e-6,
    "digits": lambda text: last("accuracy", text) > 0.9,
    "finetune_onnx": lambda text: last("after epoch 39", text) > 0.9,
    "gaussian_process": predicts_sines,
    "hessian_vector": lambda text: last("gradient", text) < 1e-9,
    "hypergradient": lambda text: abs(last("slope", text)) < 0.01,
    "linear_regression": lambda text: last("loss", text) < 1e-3
    and near(text.split("weight")[-1], [1.5, -2, 0.5, 0.25], 0.01),
    "mlp_csv": lambda text: last("held-out accuracy", text) > 0.9,
    "neural_ode": lambda text: last("loss", text) < 0.05,
    "newton": lambda text: last("gradient", text) < 1e-10 and last("iteration", text) < 12
    and near(text.split("at")[-1], [1] * 4, 1e-6),
    "own_kernel": lambda text: last("of the gradient", text) < 1e-6
    and near(re.sub(".*gradient.*|end.0.|start.0.", "", text), [0.459022] * 3, 1e-5),
    "private_sgd": lambda text: last("accuracy", text) > 0.85 and last("epsilon", text) < 3,
    "train_distributed": falls,
    "train_gpt2": falls,
    "train_mlp": lambda text: last("loss", text) < 2e-3,
    "train_seq2seq": falls,
    "train_transformer": lambda text: last("accuracy", text) > 0.7,
    "vae": lambda text: last("-ELBO", text) < 30,
}

if __name__ == "__main__":
    printed = sys.stdin.read()
    print(printed)
    sys.exit(0 if EXPECTED[sys.argv[1]](printed) else f"{sys.argv[1]} prints something else than tests/install/expected.py says")
