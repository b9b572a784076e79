"""Golden values of Opacus' accountant of Rényi divergences: makes privacy.json.

Each case has the updates as [noise multiplier, sampling rate, number], delta, the divergences for a few orders, and
epsilon with the order that gives it. Needs opacus; the tests do not."""
import json
import os

from opacus.accountants.analysis.rdp import compute_rdp, get_privacy_spent

ORDERS = [1 + x / 10 for x in range(1, 100)] + list(range(12, 64))  # RDPAccountant.DEFAULT_ALPHAS
SHOWN = [1.1, 1.5, 2.5, 7.3, 12, 63]


def case(updates, delta):
    total = lambda orders: sum(compute_rdp(q=q, noise_multiplier=s, steps=n, orders=orders) for s, q, n in updates)
    epsilon, order = get_privacy_spent(orders=ORDERS, rdp=total(ORDERS), delta=delta)
    return {"updates": updates, "delta": delta, "orders": SHOWN, "divergences": [float(d) for d in total(SHOWN)],
            "epsilon": float(epsilon), "order": float(order)}


cases = [
    case([[1.1, 256 / 60000, 14062]], 1e-5),
    case([[0.7, 0.01, 1000]], 1e-5),
    case([[4.0, 0.01, 10000]], 1e-5),
    case([[0.4, 0.02, 100]], 1e-6),
    case([[2.0, 0.5, 10]], 1e-3),
    case([[2.0, 0.9, 10]], 1e-3),
    case([[1.0, 1.0, 5]], 1e-5),
    case([[10.0, 1e-4, 1]], 1e-9),
    case([[50.0, 0.1, 100000]], 1e-7),
    case([[1.3, 0.0, 3]], 1e-5),
    case([[0.8, 0.02, 100], [1.6, 0.02, 900], [0.8, 0.001, 5000]], 1e-5),
]
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "privacy.json"), "w") as file:
    json.dump({"cases": cases}, file, indent=1)
    file.write("\n")
