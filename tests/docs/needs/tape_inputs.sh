# Tapes of a small GPT-2, and arrays for its inputs.
sed -i 's/"vocab_size": 50257/"vocab_size": 50/; s/"n_embd": 768/"n_embd": 12/; s/"n_head": 12/"n_head": 3/' models/gpt2.json
xtape show gpt2 --set n_layer=1 --tape loss --with b=2,t=4 --save small
xtape show gpt2 --set n_layer=1 --set activation=relu --tape loss --with b=2,t=4 --save relu
python3 - <<'PYTHON'
import json, struct
header, data = {}, b""
for name in ("tokens", "targets"):
    header[name] = {"dtype": "I64", "shape": [2, 4], "data_offsets": [len(data), len(data) + 64]}
    data += struct.pack("<8q", *range(8))
text = json.dumps(header).encode()
open("inputs.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
