#!/bin/bash
# Builds Debian packages from the committed files: xtape, xtape-models, libxtape0, libxtape-dev and python3-xtape. With
# --try, also installs them in a new Debian, and trains and compiles there (as root, by debootstrap and chroot).
#
# usage: bash packaging/debian.sh OUT [--try]
set -euo pipefail
cd "$(dirname "$0")/.."
out=$(mkdir -p "$1" && cd "$1" && pwd)
work=$PWD/build-debian  # always the same path, so that a compiler cache serves
rm -rf "$work" && mkdir "$work"
git archive --prefix=xtape/ HEAD | tar -C "$work" -xf -
mv "$work/xtape/packaging/debian" "$work/xtape/debian"
(cd "$work/xtape" && dpkg-buildpackage -b -us -uc) >"$out/debian.log" 2>&1 || { tail -n 30 "$out/debian.log" >&2 && exit 1; }
mv "$work"/*.deb "$work"/*.changes "$work"/*.buildinfo "$out"
ls -l "$out"/*.deb
# The project has no mail address of its own. Set DEBEMAIL and run dch for packages that others get.
! command -v lintian >/dev/null || lintian --allow-root --fail-on error,warning \
  --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog "$out"/xtape_*.changes
[ "${2:-}" != --try ] || bash packaging/try_debian.sh "$out"
