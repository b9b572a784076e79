#!/usr/bin/env python3
"""Makes recurrent.safetensors: recurrent layers of PyTorch and Keras, in float64, on rows of different lengths.

PyTorch's RNN, LSTM and GRU as one layer (torch.KIND.one_way) and as two layers in both directions (torch.KIND.both_ways), on
packed sequences: every row ends, and begins in reverse, at its own length. Keras's SimpleRNN, LSTM, and GRU with the reset
gate behind the product and before it (keras.KIND.one_way), with a mask, whose outputs are zeros where it is false.

Every case, under its name, holds the weights as models/blocks/recurrent.json names and stores them, x [b, t, in], the
first states h and c [layers and directions, b, units], lengths, the outputs ys, the last states last_h and last_c, what each
of these is multiplied by in the sum whose gradients are wanted (by.NAME), and every gradient: of weights (grad.NAME), and of
x, h and c (input_grad.NAME). Needs torch and tensorflow; the tests do not."""
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras, numpy as np, tensorflow as tf, torch, torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from golden import in_data, save

IN, UNITS, LENGTHS, STEPS = 3, 4, (5, 2, 4), 5
torch.set_default_dtype(torch.float64)
keras.backend.set_floatx("float64")


def drawn(*shape):
    """Random numbers that float32 holds exactly."""
    return (0.6 * torch.randn(shape)).float().double()


def case_of(states, layers):
    case = {"x": drawn(len(LENGTHS), STEPS, IN), "lengths": torch.tensor(LENGTHS)}
    case.update({state: drawn(layers, len(LENGTHS), UNITS) for state in states})
    case["by.ys"] = drawn(len(LENGTHS), STEPS, UNITS * (2 if layers == 4 else 1))
    case.update({f"by.last_{state}": drawn(layers, len(LENGTHS), UNITS) for state in states})
    return case


def torch_case(kind, both_ways):
    net = kind(IN, UNITS, num_layers=2 if both_ways else 1, batch_first=True, bidirectional=both_ways)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(drawn(*p.shape))
    states = ("h", "c") if kind is nn.LSTM else ("h",)
    case = case_of(states, 4 if both_ways else 1)
    given = [case[name].clone().requires_grad_() for name in ("x", *states)]
    packed = pack_padded_sequence(given[0], case["lengths"], batch_first=True, enforce_sorted=False)
    ys, last = net(packed, tuple(given[1:]) if len(states) == 2 else given[1])
    ys = pad_packed_sequence(ys, batch_first=True, total_length=STEPS)[0]
    results = dict(zip(("ys", *(f"last_{state}" for state in states)), (ys, *(last if len(states) == 2 else (last,)))))
    sum((value * case["by." + name]).sum() for name, value in results.items()).backward()
    case.update({name: value.detach() for name, value in results.items()})
    case.update({"input_grad." + name: value.grad for name, value in zip(("x", *states), given)})
    for layer in range(net.num_layers):
        for way, end in (("forward", ""), ("backward", "_reverse"))[:2 if both_ways else 1]:
            for ours, theirs in (("input", "ih"), ("recurrent", "hh")):
                for part in ("weight", "bias"):
                    p = getattr(net, f"{part}_{theirs}_l{layer}{end}")
                    name = f"{way}.{layer}.{ours}.{part}" if both_ways else f"layer.{ours}.{part}"
                    case[name], case["grad." + name] = p.detach().float(), p.grad
    return case


def keras_case(kind, **settings):
    layer = kind(UNITS, return_sequences=True, return_state=True, zero_output_for_mask=True, **settings)
    layer.build((None, STEPS, IN))
    for weight in layer.trainable_variables:
        weight.assign(drawn(*weight.shape).numpy())
    states = ("h", "c") if kind is keras.layers.LSTM else ("h",)
    case = case_of(states, 1)
    given = [tf.constant(case["x"].numpy())] + [tf.constant(case[state][0].numpy()) for state in states]
    weights = [weight.value for weight in layer.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(given)
        ys, *last = layer(given[0], initial_state=given[1:], mask=tf.sequence_mask(LENGTHS, STEPS))
        results = dict(zip(("ys", *(f"last_{state}" for state in states)), (ys, *(each[None] for each in last))))
        total = sum(tf.reduce_sum(value * case["by." + name].numpy()) for name, value in results.items())
    found = tape.gradient(total, given + weights)

    def array(value):
        return torch.from_numpy(np.array(value, order="C"))

    case.update({name: array(value) for name, value in results.items()})
    case["input_grad.x"] = array(found[0])
    case.update({"input_grad." + state: array(each)[None] for state, each in zip(states, found[1:])})

    def put(prefix, values):
        kernel, recurrent, bias = (array(value) for value in values)
        named = {"input.weight": kernel, "input.bias": bias if bias.dim() == 1 else bias[0], "recurrent.weight": recurrent}
        if bias.dim() == 2:
            named["recurrent.bias"] = bias[1]
        if settings.get("reset_after") is False:
            named["recurrent.weight"], named["candidate.weight"] = recurrent[:, :2 * UNITS], recurrent[:, 2 * UNITS:]
        case.update({f"{prefix}layer.{name}": value for name, value in named.items()})

    put("", weights)
    put("grad.", found[len(given):])
    return case


if __name__ == "__main__":
    torch.manual_seed(3)
    cases = {f"torch.{kind.__name__.lower()}.{'both_ways' if both_ways else 'one_way'}": torch_case(kind, both_ways)
             for kind in (nn.RNN, nn.LSTM, nn.GRU) for both_ways in (False, True)}
    cases["keras.rnn.one_way"] = keras_case(keras.layers.SimpleRNN)
    cases["keras.lstm.one_way"] = keras_case(keras.layers.LSTM)
    cases["keras.gru.one_way"] = keras_case(keras.layers.GRU, reset_after=True)
    cases["keras.gru_reset_before.one_way"] = keras_case(keras.layers.GRU, reset_after=False)
    save(in_data("recurrent.safetensors"),
         {f"{case}.{name}": value for case, arrays in cases.items() for name, value in arrays.items()})
