# An exported network, its input, and PyTorch's output beside it.
golden=$SOURCE/tests/golden/data/onnx
cp "$golden/encoder.onnx" .
cp "$golden/encoder.safetensors" reference.safetensors
python3 - <<'PYTHON'
import json, struct
data = open("reference.safetensors", "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8 : 8 + length])
first, last = header["x"]["data_offsets"]
text = json.dumps({"x": dict(header["x"], data_offsets=[0, last - first])}).encode()
part = data[8 + length + first : 8 + length + last]
open("inputs.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + part)
PYTHON
