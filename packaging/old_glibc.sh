#!/bin/bash
# Links a shared library of a build again, with Zig and the symbols of glibc 2.28, so that it also loads on systems that are
# older than this one. libstdc++ and libgcc become part of it.
#
# usage: bash packaging/old_glibc.sh ZIG BUILD LIBRARY OUTPUT      LIBRARY is a target of the build that Ninja has built
set -euo pipefail
cd "$(dirname "$0")/.."
zig=$(realpath -s "$1") build=$2 library=$3 output=$(realpath "$4")
read -ra words <<<"$(ninja -C "$build" -t commands "$library" | tail -n 1)"
linker=() arguments=()
for word in "${words[@]}"; do
  case $word in
    "$library") arguments+=("$output") ;;
    -static-lib* | -Wl,-O1) ;; # of g++ only
    -o) arguments+=(-o) ;;
    *) if [ ${#arguments[@]} = 0 ]; then linker+=("$word"); else arguments+=("$word"); fi ;;
  esac
done
for name in libstdc++.a libgcc_eh.a libgcc.a; do arguments+=("$("${linker[@]}" -print-file-name=$name)"); done
"${linker[@]}" -x c -std=c11 -O2 -Wall -Wextra -Werror -fPIC -c packaging/old_glibc.c -o "$output.o"
arguments+=("$output.o")
cd "$build"
"$zig" cc -target "$("${linker[@]}" -dumpmachine).2.28" "${arguments[@]}" -lm -ldl
needed=$(readelf --version-info --wide "$output" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
echo "$output needs $needed"
[ "$(printf 'GLIBC_2.28\n%s\n' "$needed" | sort -V | tail -n 1)" = GLIBC_2.28 ]
