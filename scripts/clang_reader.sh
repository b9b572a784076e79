#!/bin/bash
# clang++ that only reads what it should compile: an object file stays empty. Precompiled headers, and the programs with
# which Meson examines a compiler, are made as usual. scripts/read_with_clang.sh uses it.
for argument in "$@"; do
  [[ $argument != *.p/*.o ]] || object=$argument
done
[ -n "${object:-}" ] || exec clang++ "$@"
clang++ "$@" -fsyntax-only && : >"$object"
