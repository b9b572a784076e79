#!/bin/bash
# ONNX files in the place of saved tapes: show, run, plan, diff and shadow; and as blocks of definitions.
# usage: onnx.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
golden=$source/tests/golden/data/onnx
file=$golden/encoder.onnx

reads_onnx() { ! "$xtape" show "$file" 2>&1 | grep -q "built without xtape-onnx"; }
needs "xtape-onnx" reads_onnx

# Sizes that the file leaves open.
expect 2 "" "input 'x' has open sizes .b, t.: --with NAME=SIZE" show "$file"
expect 2 "" "input 'x' has open sizes .t." show "$file" --with b=4
expect 2 "" "no input has a size 'batch'" show "$file" --with batch=4,t=5
expect 0 "softmax\(.* at /encoder/.* \(encoder.onnx, Softmax\)$" "" show "$file" --with b=4,t=5
expect 0 "^31 steps, 0 of them again" "" plan "$file" --with b=4,t=5

# PyTorch's numbers.
for name in encoder convolutional causal; do
  expect 0 "^1 arrays match, 0 differ" "" diff "$golden/$name.onnx" "$golden/$name.safetensors"
done
python3 - "$golden/encoder.safetensors" <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header, arrays = json.loads(data[8 : 8 + length]), data[8 + length :]
def write(path, name, source):
    first, last = header[source]["data_offsets"]
    part = arrays[first:last]
    text = json.dumps({name: dict(header[source], data_offsets=[0, len(part)])}).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + part)
write("in.safetensors", "x", "x")
write("y.safetensors", "y", "y")
PYTHON
expect 0 "^y: float32 \([0-9, ]+\) .* …$" "" run "$file" --in in.safetensors
expect 0 "^1 arrays match, 0 differ$" "" diff "$file" y.safetensors --in in.safetensors
expect 0 "^all within rounding" "" shadow "$file" --in in.safetensors
expect 0 "^[0-9.]+ ms per play, the mean of 2$" "" profile "$file" --in in.safetensors --steps 2
holds "a profile of an ONNX file lists the rules" grep -q "^rule attention: 1$" out
expect 0 " /encoder/linear1/MatMul$" "" profile "$file" --in in.safetensors --steps 1 --sites
expect 0 '"plays": 1,' "" profile "$file" --in in.safetensors --steps 1 --json
expect 2 "" "input 'x' is not given" profile "$file" --with b=4,t=5
expect 2 "" "one play has no update" profile "$file" --in in.safetensors --ranks 2
expect 2 "" "a floating scalar as the first output, not float32" explain "$file" --in in.safetensors

# As a saved tape.
expect 0 "" "" show "$file" --with b=4,t=5 --save saved
expect 0 "" "" diff saved "$file" --with b=4,t=5
expect 1 "both.bias" "differ$" diff "$golden/causal.onnx" "$file" --with b=4,t=5
expect 2 "" "takes no --with" plan saved --with b=4

# What does not go with an ONNX file.
expect 2 "" "'$file' is an ONNX file, which takes no --mode" show "$file" --with b=4,t=5 --mode train
expect 2 "" "is an ONNX file, which takes no FUNCTION" run "$file" loss --in in.safetensors
expect 2 "" "cannot read 'none.onnx'" show none.onnx
expect 2 "" "has open sizes" run "$file" --in y.safetensors
echo broken >broken.onnx
expect 2 "" "broken.onnx" show broken.onnx
expect 2 "" "the model has no weight 'y'" run "$file" --in in.safetensors --weights y.safetensors
expect 0 "^Softmax$" "" ops --onnx
expect 0 "^softmax$" "" ops --onnx-written

# As a block of a definition: trained by a recipe, resumed without the file, and written as one network.
cp "$source"/examples/data/{tuned_digits.json,tuned_digits_recipe.json,digits.onnx,digits.safetensors} .
expect 0 "hidden.weight *.32, 64. *2,048  digits.onnx$" "" show tuned_digits.json --set classes=10
expect 0 "accuracy [4-9]" "." train tuned_digits_recipe.json --out run --set epochs=8
rm digits.onnx
expect 0 "accuracy [4-9]" "." train run --resume --set epochs=9
expect 0 "^tuned.onnx$" "" export run tuned.onnx --function logits --with b=1
expect 0 "features/" "" show tuned.onnx
expect 2 "" "block 'features', line 7: digits.onnx: cannot read 'digits.onnx'" show tuned_digits.json --set classes=10
needs_nothing
finish
