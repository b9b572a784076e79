#!/bin/bash
# Unpacks the archive of static.sh in a folder with nothing but busybox, runs the demo there, trains and uses another model,
# and continues the training. Needs root, for chroot, and Debian's busybox-static.
#
# usage: bash packaging/try_static.sh ARCHIVE
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,tmp,proc,dev}
cp "$(command -v busybox)" "$root/bin/busybox"
for command in sh tar xz mkdir cat ls seq date dirname rm sha256sum cut grep; do ln -s busybox "$root/bin/$command"; done
mknod -m 666 "$root/dev/null" c 1 3
cp "$1" "$root/tmp/xtape.tar.xz"
inside() { # runs the script of standard input in the folder
  unshare -m sh -c "mount -t proc proc '$root/proc' && exec chroot '$root' /bin/sh -e"
}
start=$(date +%s%N)
inside <<'S'
cd /tmp
xz -dc xtape.tar.xz | tar -xf -
mv xtape-*/ /opt
S
echo "unpacked in $((($(date +%s%N) - start) / 1000000)) ms"
inside <<'S'
set -o pipefail
PATH=/opt/bin:/bin
cd /tmp
xtape --version
i=0
while [ $i -lt 300 ]; do
  echo "the quick brown fox jumps over the lazy dog number $i"
  i=$((i + 1))
done >text.txt
xtape train shakespeare_char --set data.text=text.txt --set steps=60 --set schedule.warmup=10 --set evaluate_every=60 --out run | busybox tail -n 2
xtape generate run --prompt "the quick" --tokens 20 --temperature 0
xtape train --resume run --set steps=80 | busybox tail -n 1
xtape show gpt2 | busybox head -n 3
S
start=$(date +%s)
inside <<'S' | tee "$root/demo"
PATH=/bin
sh /opt/scripts/demo.sh
S
grep -q -- "-> three thousand and sixty$" "$root/demo"
echo "the demo took $(($(date +%s) - start)) s"
echo "used without any library of the system"
