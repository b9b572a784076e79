"""Lets transformers compute in float64 where its models go over to float32: norms, softmax, rotary angles."""
import contextlib

import torch


@contextlib.contextmanager
def in_double():
    single, to_single, default = torch.float32, torch.Tensor.float, torch.get_default_dtype()
    torch.float32 = torch.float = torch.float64
    torch.Tensor.float = torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.float32 = torch.float = single
        torch.Tensor.float = to_single
        torch.set_default_dtype(default)
