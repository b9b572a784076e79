#!/usr/bin/env python3
"""Packs a wheel (PEP 427): the files of the program's folder go to the environment's bin and share, xtape.py and the C
library beside each other to site-packages.

usage: wheel.py FOLDER LIBRARY OUT      FOLDER is that of packaging/static.sh, whose name ends in the processor"""
import base64, hashlib, re, sys, zipfile
from pathlib import Path

folder, library, out = map(Path, sys.argv[1:])
root = Path(__file__).resolve().parents[2]
version = re.search(r"version: '([^']*)'", (root / "meson.build").read_text())[1]
info, data = f"xtape-{version}.dist-info", f"xtape-{version}.data"
tag = f"py3-none-linux_{folder.name.split('-')[-1]}"
metadata = f"""Metadata-Version: 2.1
Name: xtape
Version: {version}
Summary: Trains and runs neural networks on CPUs: the program xtape, and the module xtape
License: MIT
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/markdown

{(root / 'docs/how_to/python.md').read_text()}"""

files = {"xtape.py": root / "packaging/python/xtape.py", "libxtape-c.so": library}
files |= {f"{data}/scripts/{path.name}": path for path in (folder / "bin").iterdir()}
files |= {f"{data}/data/{path.relative_to(folder)}": path for path in sorted((folder / "share").rglob("*")) if path.is_file()}
files |= {f"{info}/licenses/LICENSE": root / "LICENSE"}
texts = {f"{info}/METADATA": metadata, f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: xtape\nRoot-Is-Purelib: false\nTag: {tag}\n"}

out.mkdir(parents=True, exist_ok=True)
record = []
with zipfile.ZipFile(out / f"xtape-{version}-{tag}.whl", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
    def add(name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))  # the same bytes from the same files
        entry.external_attr, entry.compress_type = (0o100000 | mode) << 16, zipfile.ZIP_DEFLATED
        wheel.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(content)}")

    for name, path in files.items():
        add(name, path.read_bytes(), 0o755 if "/scripts/" in name or name.endswith(".so") else 0o644)
    for name, text in texts.items():
        add(name, text.encode())
    wheel.writestr(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,"]) + "\n")
