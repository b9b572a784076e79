#!/bin/bash
# Unpacks the archive of static.sh in a folder with nothing but busybox, runs the demo there, trains and uses another model,
# and continues the training. Needs Debian's busybox-static. A program for AArch64 runs under QEMU (scripts/aarch64.sh).
#
# usage: bash packaging/try_static.sh ARCHIVE
set -euo pipefail
scripts=$(cd "$(dirname "$0")/../scripts" && pwd)
case $1 in
  *-"$(uname -m)".tar.xz) busybox=$(command -v busybox) space=(unshare --user --map-root-user --mount) ;;
  *-aarch64.tar.xz) busybox=$scripts/../build-aarch64/root/bin/busybox space=(bash "$scripts/aarch64.sh" run) ;;
  *) echo "$1 is for no processor that this machine can try" >&2 && exit 2 ;;
esac
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,tmp,proc,dev}
cp "$busybox" "$root/bin/busybox"
for command in sh tar xz mkdir cat ls seq date dirname rm sha256sum cut grep; do ln -s busybox "$root/bin/$command"; done
touch "$root/dev/null"
cp "$1" "$root/tmp/xtape.tar.xz"
inside() { # runs the script of standard input in the folder
  "${space[@]}" sh -c "mount --rbind /proc '$root/proc' && mount --bind /dev/null '$root/dev/null' && exec chroot '$root' /bin/sh -e"
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
xtape train shakespeare_char --set data.text=text.txt --set data.block_size=16 --set hyper.n_embd=16 --set hyper.n_layer=1 \
  --set hyper.n_head=2 --set batch.size=4 --set steps=60 --set schedule.warmup=10 --set evaluate_every=60 --out run | busybox tail -n 2
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
