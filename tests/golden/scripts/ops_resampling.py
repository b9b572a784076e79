"""Golden values and gradients of interpolate, grid_sample and padded convolutions, from PyTorch. Run it to make
ops_resampling.json again."""
import torch
import torch.nn.functional as F

from golden import case, write

g = torch.Generator().manual_seed(17)
cases = []


def real(*shape):
    return (torch.randn(shape, dtype=torch.float64, generator=g) * 4).round() / 4 + 0.125


def resample(x, mode, corners, size=None, factor=None):
    has_corners = mode in ("linear", "bilinear", "bicubic", "trilinear")
    attributes = {"mode": mode, **({"size": size} if size else {"scale_factor": float(factor)})}
    if has_corners:
        attributes["align_corners"] = corners
    # Once differentiable, since the second gradients of linear functions are 0.
    cases.append(case("interpolate", attributes, [x],
                      lambda t: F.interpolate(t, size, factor, mode, corners if has_corners else None), g))


line, image, volume = real(1, 2, 5), real(2, 1, 3, 4), real(1, 1, 2, 3, 2)
for x, modes, sizes, factors in [
        (line, ["nearest", "nearest-exact", "linear"], [[7], [3], [1], [5], [15]], [1.7, 0.6]),
        (image, ["nearest", "nearest-exact", "bilinear", "bicubic"], [[5, 7], [2, 3], [1, 1], [3, 8]], [2.0, 0.7]),
        (volume, ["nearest", "trilinear"], [[3, 2, 5]], [1.5])]:
    for mode in modes:
        for corners in (False, True) if "linear" in mode or mode == "bicubic" else (False,):
            for size in sizes:
                resample(x, mode, corners, size=size)
            for factor in factors:
                resample(x, mode, corners, factor=factor)

for mode in ("bilinear", "nearest"):
    for padding in ("zeros", "border", "reflection"):
        for corners in (False, True):
            for x in (real(2, 2, 3, 4), real(2, 1, 1, 5)):
                grid = torch.rand(2, 2, 5, 2, dtype=torch.float64, generator=g) * 5 - 2.5
                cases.append(case("grid_sample", {"mode": mode, "padding_mode": padding, "align_corners": corners},
                                  [x, grid], lambda t, p: F.grid_sample(t, p, mode, padding, corners), g))

for mode in ("reflect", "replicate", "circular"):
    for padding, same in ([1, 2], False), ([2, 0], False), ("same", True):
        layer = torch.nn.Conv2d(2, 3, (2, 3), padding=padding, padding_mode=mode, dtype=torch.float64)

        def convolved(t, w, b):
            return torch.func.functional_call(layer, {"weight": w, "bias": b}, t)
        attributes = {"padding_mode": mode, **({"same": True} if same else {"padding": padding})}
        cases.append(case("conv", attributes, [real(2, 2, 4, 5), real(3, 2, 2, 3), real(3)], convolved, g))

write(cases, __file__)
