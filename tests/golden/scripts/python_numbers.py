#!/usr/bin/env python3
"""Makes python_numbers.json: Python's arithmetic of plain numbers.

"numbers" are the operands as Python writes them. "results" has for each operator a list of lists: row a, column b is
a OPERATOR b. A result is an integer or a float in hexadecimal digits, both as text, or what Python raises: "division by
zero", or "undefined" where it returns a complex number. Results that are integers in Python but not in int64, and
floats beyond float64, are "too large". The quotient of integers is "inexact" if it is not an integer."""
import json
import math
import operator
import os

NUMBERS = [0, 1, -1, 2, 3, -7, 10, 2**31, 2**53 + 1, 2**63 - 1, -2**63 + 1, 0.0, -0.0, 1.0, 0.1, -0.1, 0.2, 6.0, -1.5,
           1e20, 5e-324, -1e-310, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
             "%": operator.mod, "**": operator.pow}


def result(symbol, a, b):
    whole = isinstance(a, int) and isinstance(b, int)
    if symbol == "**" and whole and abs(a) > 1 and b > 64:
        return "too large"
    try:
        y = OPERATORS[symbol](a, b)
        if symbol == "/" and whole:
            y = a // b if a % b == 0 else "inexact"
    except ZeroDivisionError:
        return "division by zero"
    except OverflowError:
        return "undefined" if symbol == "**" and a < 0 and b != math.floor(b) else "too large"
    if isinstance(y, complex):
        return "undefined"
    if isinstance(y, int):
        return str(y) if -2**63 <= y < 2**63 else "too large"
    return y if isinstance(y, str) else y.hex()


def main():
    results = {symbol: [[result(symbol, a, b) for b in NUMBERS] for a in NUMBERS] for symbol in OPERATORS}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "python_numbers.json"), "w") as file:
        json.dump({"numbers": [each.hex() if isinstance(each, float) else str(each) for each in NUMBERS],
                   "results": results}, file)
        file.write("\n")


main()
