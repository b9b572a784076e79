"""Golden values of the incomplete gamma function, from mpmath: PyTorch has 9 digits. Run it to make
ops_incomplete_gamma.json again."""
import mpmath
import torch

from golden import array, write

mpmath.mp.dps = 40
cases = []
for a in (0.03, 0.5, 1.0, 2.5, 9.0, 11.0, 60.0, 900.0, 2e4):
    x = torch.tensor([0.3, 0.7, 0.95, 1.0, 1.05, 1.4], dtype=torch.float64) * a
    y = [float(mpmath.gammainc(a, 0, each, regularized=True)) for each in x.tolist()]
    shape, values = torch.tensor([a], dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    cases.append({"op": "gammainc", "attributes": {}, "inputs": [array(shape), array(x)], "outputs": [array(values)]})
write(cases, __file__)
