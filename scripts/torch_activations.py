"""Saves what the modules of a PyTorch model return, its parameters and their gradients, for `xtape diff`.

    from torch_activations import save_activations
    save_activations("reference.safetensors", model, lambda: model(tokens, labels=tokens).loss)

Names are those of `model.named_modules()` and `model.named_parameters()`, without `prefix`; gradients are "grad.NAME". Of
a module that returns several values the first tensor is saved; of a module that is called several times, the last call."""
import json
import struct

import torch

DTYPES = {torch.float32: "F32", torch.float64: "F64", torch.bfloat16: "BF16", torch.float16: "F16",
          torch.int64: "I64", torch.int32: "I32", torch.int8: "I8", torch.bool: "BOOL"}


def save_arrays(path, arrays):
    """Writes tensors by name as a safetensors file."""
    header, data = {}, b""
    for name, tensor in arrays.items():
        tensor = tensor.detach().cpu().contiguous()
        data += bytes(tensor.reshape(-1).view(torch.uint8).numpy()) if tensor.numel() else b""
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data) - size, len(data)]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def first_tensor(value):
    if isinstance(value, torch.Tensor):
        return value
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((found for found in map(first_tensor, values) if found is not None), None)


def save_activations(path, model, compute_loss, prefix=""):
    """Calls compute_loss(), which runs the model once and returns a scalar, and its backward pass."""
    arrays = {}

    def keep(name):
        def hook(module, inputs, output):
            tensor = first_tensor(output)
            if tensor is not None:
                arrays[name] = tensor.clone()
        return hook

    short = lambda name: name[len(prefix):] if name.startswith(prefix) else name
    hooks = [module.register_forward_hook(keep(short(name))) for name, module in model.named_modules() if name]
    model.zero_grad()
    loss = compute_loss()
    loss.backward()
    for hook in hooks:
        hook.remove()
    for name, parameter in model.named_parameters():
        arrays[short(name)] = parameter
        if parameter.grad is not None:
            arrays["grad." + short(name)] = parameter.grad
    save_arrays(path, arrays)
