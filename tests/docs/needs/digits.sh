# 400 images of 8 x 8 pixels with labels, in place of the digits of the source tree.
mkdir -p examples/data
python3 -c "
import json, struct
count = 400
text = json.dumps({'images': {'dtype': 'U8', 'shape': [count, 8, 8], 'data_offsets': [0, 64 * count]},
                   'labels': {'dtype': 'U8', 'shape': [count], 'data_offsets': [64 * count, 65 * count]}}).encode()
images = bytes(i * 7919 // 64 % 256 for i in range(64 * count))
open('examples/data/digits.safetensors', 'wb').write(
    struct.pack('<Q', len(text)) + text + images + bytes(i % 10 for i in range(count)))"
