#!/bin/bash
# Installs the missing Debian packages of the build, and the given packages. With --program, those of the tests, of
# MPI and of ONNX files are left out. Prints nothing if none is missing. usage: setup.sh [--program] [PACKAGE…]
set -euo pipefail

packages=(g++ meson ninja-build pkg-config libxtensor-dev libxsimd-dev nlohmann-json3-dev
  libcli11-dev librandom123-dev libsentencepiece-dev libpcre2-dev libjpeg62-turbo-dev libpng-dev libutf8proc-dev zlib1g-dev
  libxxhash-dev)
if [ "${1:-}" = --program ]; then
  shift
else
  packages+=(clang-format cmake doctest-dev libopenblas-openmp-dev openmpi-bin libopenmpi-dev
    libprotozero-dev libonnx-testdata)
fi
packages+=("$@")

missing=()
for package in "${packages[@]}"; do
  # pkgconf may provide pkg-config.
  if [ "$package" = pkg-config ] && command -v pkg-config >/dev/null; then continue; fi
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ]; then
  as_root=()
elif command -v sudo >/dev/null; then
  as_root=(sudo)
else
  echo "setup: missing packages, which need root or sudo to install: ${missing[*]}" >&2
  exit 1
fi
install() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }

echo "setup: installing ${missing[*]}" >&2
# The package lists are updated only if the installation fails with the present ones.
install "${missing[@]}" 2>/dev/null || {
  echo "setup: updating the package lists" >&2
  "${as_root[@]}" apt-get update -qq >/dev/null
  install "${missing[@]}"
}
