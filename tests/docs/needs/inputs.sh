# Arrays for the inputs of a small GPT-2.
python3 - <<'PYTHON'
import json, struct
header, data = {}, b""
for name in ("tokens", "targets"):
    header[name] = {"dtype": "I64", "shape": [2, 4], "data_offsets": [len(data), len(data) + 64]}
    data += struct.pack("<8q", *range(8))
text = json.dumps(header).encode()
open("inputs.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
