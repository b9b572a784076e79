#!/bin/bash
# Programs for AArch64 on an x86-64 machine: what compiles them, and what runs them under QEMU.
# usage: aarch64.sh setup              installs the cross compiler and the emulator, unpacks Debian's libraries for AArch64 in
#                                      build-aarch64/root, and writes build-aarch64/cross.ini for Meson
#        aarch64.sh run COMMAND…       runs the command with a kernel that hands each program for AArch64 to QEMU, also those
#                                      that a script starts. QEMU_CPU names another processor, such as cortex-a53.
# `run` makes a user namespace and registers the emulator there alone. That needs Linux 6.7.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
made=$here/build-aarch64
root=$made/root
packages=(busybox-static doctest-dev libcli11-dev libjpeg62-turbo-dev libopenblas-openmp-dev libpcre2-dev libpng-dev
  libprotozero-dev librandom123-dev libsentencepiece-dev libutf8proc-dev libxsimd-dev libxtensor-dev libxxhash-dev
  nlohmann-json3-dev python3 zlib1g-dev)

# Debian's packages cannot all be installed for two architectures at once, so they are unpacked.
unpack_libraries() {
  local apt link target package
  [ "$(cat "$root/packages" 2>/dev/null)" != "${packages[*]}" ] || return 0
  echo "unpacking libraries for AArch64" >&2
  rm -rf "$root" "$root.part" "$root.apt"
  mkdir -p "$root.part" "$root.apt"/{lists,archives}/partial
  : >"$root.apt/status"
  apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
    -o Dir::State="$root.apt" -o Dir::State::status="$root.apt/status" -o Dir::Cache="$root.apt")
  "${apt[@]}" update >&2
  "${apt[@]}" install -y --download-only --no-install-recommends "${packages[@]}" >/dev/null
  for package in "$root.apt"/archives/*.deb; do dpkg -x "$package" "$root.part"; done
  # Absolute paths would lead to the headers and libraries of this machine.
  sed -i "s|\"/usr\"|\"$root/usr\"|" "$root.part"/usr/lib/cmake/doctest/doctestTargets.cmake
  find "$root.part" -type l -lname '/*' -printf '%p %l\n' |
    while read -r link target; do ln -sf "$root$target" "$link"; done
  # Debian's alternatives make this link when the package is installed.
  ln -s openblas-openmp/libopenblas.so.0 "$root.part/usr/lib/aarch64-linux-gnu/libopenblas.so.0"
  echo "${packages[*]}" >"$root.part/packages"
  rm -rf "$root.apt"
  mv "$root.part" "$root"
}

write_cross_file() {
  local libraries=$root/usr/lib/aarch64-linux-gnu cache
  cache=$(command -v ccache || true)
  cat >"$made/cross.ini.part" <<END
[binaries]
c = [${cache:+'$cache', }'aarch64-linux-gnu-gcc', '--sysroot=$root']
cpp = [${cache:+'$cache', }'aarch64-linux-gnu-g++', '--sysroot=$root']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
pkgconfig = 'pkg-config'
cmake = 'cmake'
exe_wrapper = ['qemu-aarch64-static', '-L', '$root']
[built-in options]
cpp_args = ['-Wno-psabi'] # no notes on what GCC 10 changed
[properties]
sys_root = '$root'
pkg_config_libdir = ['$libraries/pkgconfig', '$libraries/openblas-openmp/pkgconfig', '$root/usr/share/pkgconfig']
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
  # Meson sets a folder up again if this file is newer.
  if cmp -s "$made/cross.ini.part" "$made/cross.ini"; then rm "$made/cross.ini.part"; else mv "$made/cross.ini.part" "$made/cross.ini"; fi
}

case ${1:-} in
  setup)
    bash "$here/scripts/setup.sh" qemu-user-static g++-aarch64-linux-gnu
    mkdir -p "$made"
    unpack_libraries
    write_cross_file ;;
  run)
    shift
    # What the emulator is for: the first bytes of an ELF file of 64 bits, little-endian, of a program or library, for AArch64.
    rule=':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
    rule+=':\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
    rule+=":$(command -v qemu-aarch64-static):FP" # F: also in another root; P: with the name under which it was started
    place=/proc/sys/fs/binfmt_misc
    # An arena reserves address space for all memory that a process may have. QEMU keeps 24 bytes for each page that ever was
    # reserved, and goes to new addresses until its range ends: without these two limits, suites take all memory of a machine.
    # A limit that Linux enforces (ulimit -d) would be QEMU's own, too: when it gets no memory for itself, it waits forever.
    ulimit -m $((4 << 20)) # KiB
    QEMU_RESERVED_VA=128G QEMU_LD_PREFIX=$root exec unshare --user --map-root-user --mount bash -c \
      'mount -t binfmt_misc none "$0" && printf %s "$1" >"$0/register" && exec "${@:2}"' "$place" "$rule" "$@" ;;
  *) sed -n '2,/^set /{/^#/s/^# //p}' "$0" >&2 && exit 2 ;;
esac
