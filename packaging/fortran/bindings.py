#!/usr/bin/env python3
"""Writes the interfaces of the Fortran module xtape.f90 from xtape.h, between its two marks.

usage: bindings.py [--check]   (--check writes nothing, and fails where the module does not have them)"""
import re, sys
from pathlib import Path

here = Path(__file__).resolve().parent
header, module = here / "../../include/xtape.h", here / "xtape.f90"
DECLARATION = re.compile(r"^(const char\*|xtape_status|xtape_var|void) (xtape_\w+)\(([^;]*?)\)\s*XTAPE_NOEXCEPT;", re.MULTILINE)
MARKS = "    ! What follows is written by bindings.py.\n", "    ! End of what bindings.py writes.\n"
RESULTS = {"const char*": "type(c_ptr)", "xtape_status": "integer(c_int32_t)", "xtape_var": "type(xtape_var)", "void": None}
VALUES = {"int32_t": "integer(c_int32_t)", "xtape_dtype": "integer(c_int32_t)", "int64_t": "integer(c_int64_t)",
          "uint64_t": "integer(c_int64_t)", "size_t": "integer(c_size_t)", "double": "real(c_double)",
          "xtape_var": "type(xtape_var)", "xtape_function": "type(c_funptr)"}
# The pointers that may be NULL in C: where the argument is absent, Fortran passes NULL.
OPTIONAL = {"attributes", "carries", "cotangents", "count", "finished", "function", "loss", "mode", "norm", "options", "prompt",
            "settings", "sizes"}


def parameters(text):
    """The types and names of parameters. A pointer to a function has the type 'xtape_function'."""
    text = re.sub(r"int32_t \(\*(\w+)\)\([^)]*\)", r"xtape_function \1", " ".join(text.split()))
    return [re.fullmatch(r"(.*?)\s?(\w+)", each.strip()).groups() for each in text.split(",") if each != "void"]


def declared(kind, name):
    """The declaration of a dummy argument."""
    handle = re.fullmatch(r"(?:const )?xtape_(?:array|store|tape|player|step|optimizer|model)(\*+)", kind)
    absent = ", optional" if name in OPTIONAL else ""
    if kind in VALUES:
        return f"{VALUES[kind]}, value :: {name}"
    if kind == "const char*":
        return f"character(c_char), intent(in){absent} :: {name}(*)"
    if kind in ("const xtape_var*", "const xtape_view*"):
        return f"type({kind[6:-1]}), intent(in){absent} :: {name}(*)"
    if kind in ("xtape_var*", "xtape_view*"):
        return f"type({kind[:-1]}), intent(inout) :: {name}" + ("" if name in ("var", "hessian", "view") else "(*)")
    if kind == "const int64_t*":
        return f"integer(c_int64_t), intent(in) :: {name}(*)"
    if kind[:-1] in VALUES:
        return f"{VALUES[kind[:-1]]}, intent(out){absent} :: {name}" + ("(*)" if name == "shape" else "")
    if kind in ("const char**", "void**") or handle and handle[1] == "**":
        return f"type(c_ptr), intent(out) :: {name}"
    return f"type(c_ptr), value :: {name}"  # a handle, or an address that may be null


def wrapped(start, names, end):
    """A line of at most 120 columns, continued on others."""
    lines = [start]
    for number, name in enumerate(names):
        word = name + (", " if number + 1 < len(names) else "")
        if len(lines[-1] + word) > 112:
            lines[-1] += "&"
            lines.append("        ")
        lines[-1] += word
    return "\n".join(lines) + end


def interface(match):
    result, name, given = RESULTS[match[1]], match[2], parameters(match[3])
    kind = "subroutine" if result is None else "function"
    first = wrapped(f"    {kind} {name}(", [each for _, each in given], ") bind(c)" + ("" if result is None else " result(answer)"))
    lines = ["      import"]
    for each in [*(declared(*each) for each in given), *([] if result is None else [f"{result} :: answer"])]:
        if len(lines[-1] + each) < 116:
            lines[-1] += "; " + each
        else:
            lines.append("      " + each)
    return "\n".join([first, *lines, f"    end {kind}\n"])


def main():
    text = module.read_text()
    before, after = text.index(MARKS[0]) + len(MARKS[0]), text.index(MARKS[1])
    written = text[:before] + "".join(map(interface, DECLARATION.finditer(header.read_text()))) + text[after:]
    if "--check" in sys.argv:
        return 0 if written == text else f"{module} is not that of {header}: python3 packaging/fortran/bindings.py"
    module.write_text(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
