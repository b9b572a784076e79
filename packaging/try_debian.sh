#!/bin/bash
# Installs the packages of debian.sh in a new Debian 12, trains a model there, and compiles and runs a program. Needs
# root, for chroot, and Debian's debootstrap.
#
# usage: bash packaging/try_debian.sh FOLDER
set -euo pipefail
packages=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
debootstrap --variant=minbase bookworm "$root" >/dev/null
cp "$packages"/*.deb "$source/tests/install/core_program.cpp" "$source/examples/train_mlp.cpp" "$source/examples/languages/train.py" "$root/tmp"
inside() { # runs the script of standard input in the new Debian
  unshare -m sh -c "mount -t proc proc '$root/proc' && exec chroot '$root' /bin/bash -e -o pipefail"
}
start=$SECONDS
inside <<'S' >/dev/null
apt-get install -y -qq --no-install-recommends /tmp/xtape_*.deb /tmp/xtape-models_*.deb /tmp/libxtape0_*.deb
S
echo "the program was installed in $((SECONDS - start)) s"
inside <<'S'
cd /tmp
xtape --version
for i in $(seq 300); do echo "the quick brown fox jumps over the lazy dog number $i"; done >text.txt
xtape train shakespeare_char --set data.text=text.txt --set steps=40 --set schedule.warmup=10 --set evaluate_every=40 \
  --out run 2>&1 | tail -n 1
xtape generate run --prompt "the quick" --tokens 20 --temperature 0
S
inside <<'S' >/dev/null
apt-get install -y -qq --no-install-recommends /tmp/libxtape-dev_*.deb /tmp/python3-xtape_*.deb g++ pkg-config
S
inside <<'S'
cd /tmp
g++ -std=c++17 -O1 core_program.cpp $(pkg-config --cflags --libs xtape-core) -o core_program
./core_program
g++ -std=c++17 -O1 train_mlp.cpp $(pkg-config --cflags --libs xtape) -o train_mlp
./train_mlp | tail -n 1
python3 train.py
S
echo "programs were compiled with libxtape-dev, and Python used the library"
