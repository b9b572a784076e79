#!/usr/bin/env python3
"""Checks that the sources call none of the C library's functions whose bits differ between its versions and between
processors, except in the files below, and do not use long double, which has another width on AArch64.

usage: library_functions.py SOURCE_ROOT"""
import re, sys
from pathlib import Path

from counted import holds, report

# Functions of which the C library promises only that their error is small. (sqrt, fma, floor, fmod, frexp, ldexp … are exact.)
NAMES = ("exp exp2 exp10 expm1 log log2 log10 log1p pow sin cos sincos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh "
         "erf erfc gamma tgamma lgamma hypot cbrt").split()
# Where they may be called: the functions and distributions, and why no result depends on them.
ALLOWED = {
    "cli/commands/eval.cpp": ("exp log", "only printed"),
    "data/texts/bleu.cpp": ("exp log", "a score that is only printed"),
    "functions/gradcheck.cpp": ("normal_distribution", "the direction of a check"),
    "model/definition/read_back.cpp": ("normal_distribution", "the points of a check"),
    "optim/privacy.cpp": ("acos erfc exp lgamma log log1p", "the accountant's epsilon is only printed"),
}
FUNCTION = "(" + "|".join(NAMES) + r")(?:f|l|f_r|l_r|_r)?\b"
WRONG = re.compile(rf"\bstd\s*::\s*{FUNCTION}|(?<![\w>])::{FUNCTION}|\b__builtin_{FUNCTION}|\bxsimd\s*::\s*{FUNCTION}|"
                   r"\bstd\s*::\s*(\w+_distribution|legendre|beta|riemann_zeta)\b|\b(long double|lgamma_r)\b")


def calls(text):
    """The names of what may not be called, in code without its comments."""
    code = re.sub(r"//[^\n]*", "", text)
    return {next(filter(None, found.groups())).replace(" ", "_") for found in WRONG.finditer(code)}


def imported(symbols):
    """Those functions among the symbols that an object file imports from other libraries."""
    return {symbol for symbol in symbols if re.fullmatch(FUNCTION, symbol.split("@")[0])}


def main():
    source = Path(sys.argv[1])
    found = {}
    for path in [*(source / "src").rglob("*.?pp"), *(source / "include").rglob("*.hpp")]:
        if names := calls(path.read_text()):
            found["/".join(path.relative_to(source).parts[1:])] = names
    for path, names in sorted(found.items()):
        more = names - set(ALLOWED.get(path, ("",))[0].split())
        holds(f"{path} calls no function of the C library whose bits differ (use kernels().numbers)", not more, " ".join(more))
    for wrong in ["std::exp(x)", "y = std::powf(x, 2)", "f(std::sin)", " ::log(x)", "__builtin_tanhf(x)", "xsimd::erf(x)", "lgamma_r(x, &s)",
                  "long double y = 0;", "std::normal_distribution<double> normal;"]:
        holds(f"'{wrong}' is found", calls(wrong))
    for right in ["kernels().numbers.exp(x)", "vector_math::pow(x, y)", "std::sqrt(x)", "exp(x)  // std::exp", "std::logic_error(text)", "std::fmod(x, 2)"]:
        holds(f"'{right}' is not found", not calls(right))
    return report()


if __name__ == "__main__":
    sys.exit(main())
