#!/bin/bash
# Saved tapes: the commands show, run and diff; digests.
# usage: tapes.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export XTAPE_MODELS="$source/models"

arrays() { # arrays FILE NAME DTYPE SHAPE FORMAT NUMBER…: writes a safetensors file with one array for each group up to `--`
  python3 - "$@" <<'PYTHON'
import json, struct, sys
header, data, words = {}, b"", sys.argv[2:]
while words:
    end = words.index("--") if "--" in words else len(words)
    name, dtype, shape, form, *numbers = words[:end]
    bytes_ = struct.pack(f"<{len(numbers)}{form}", *(float(n) if form in "fd" else int(n) for n in numbers))
    header[name] = {"dtype": dtype, "shape": json.loads(shape), "data_offsets": [len(data), len(data) + len(bytes_)]}
    data, words = data + bytes_, words[end + 1:]
text = json.dumps(header).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
PYTHON
}
small=(--set vocab_size=11 --set n_positions=8 --set n_embd=12 --set n_layer=1 --set n_head=3)
arrays in.safetensors tokens I64 '[1, 4]' q 1 2 3 4 -- targets I64 '[1, 4]' q 2 3 4 5

# A tape that is saved plays as the function does.
expect 0 "" "" show gpt2 "${small[@]}" --tape loss --with b=1,t=4 --grad --seed 3 --mode train --save loss
expect 0 "" "" run gpt2 loss "${small[@]}" --in in.safetensors --grad --seed 3 --mode train --step 5 --out of_function.safetensors
expect 0 "" "" run loss --in in.safetensors --seed 3 --step 5 --threads 2 --out of_tape.safetensors
holds "a saved tape gives the bits of the function" cmp of_function.safetensors of_tape.safetensors
expect 0 "^total: float32 \(\) [0-9.]+$" "" run loss --in in.safetensors
expect 0 "^grad\.h\.0\.attn\.c_attn\.weight: float32 \(12, 36\) .* …$" "" run loss --in in.safetensors
expect 0 "^#[0-9]+ cross_entropy\(.*at \(model\)|^#[0-9]+ cross_entropy\(" "" show loss
expect 0 "^output 'total' #[0-9]+" "" show loss
holds "a saved tape prints as the recorded one" diff <("$xtape" show loss) \
  <("$xtape" show gpt2 "${small[@]}" --tape loss --with b=1,t=4 --grad --mode train)
expect 0 '^"format": "xtape tape",$' "" show loss --format json
holds "--format json prints tape.json" cmp <("$xtape" show loss --format json) loss/tape.json
expect 0 "^digraph" "" show loss --format dot

# An output that is a pipe or a symbolic link stays one.
mkfifo pipe
timeout 60 cat pipe >piped.safetensors &
expect 0 "" "" run loss --in in.safetensors --seed 3 --step 5 --threads 2 --out pipe
wait $!
holds "a pipe gets what a file gets" cmp piped.safetensors of_tape.safetensors
holds "and stays a pipe" [ -p pipe ]
mkdir elsewhere
ln -s elsewhere/digests link.json
ln -s elsewhere/tape link
for _ in new old; do
  expect 0 "" "" run loss --in in.safetensors --out x.safetensors --digests link.json
  expect 0 "" "" show gpt2 "${small[@]}" --tape loss --with b=1,t=4 --save link
done
holds "links stay links" [ -L link -a -L link.json ]
holds "the file of a link is written" grep -q "xtape digests" elsewhere/digests
holds "so is the folder, and nothing else" same "$(ls elsewhere) $(ls elsewhere/tape)" "$(printf 'digests\ntape arrays.safetensors\ntape.json')"

# Gradients recorded after loading are the same.
expect 0 "" "" show gpt2 "${small[@]}" --tape loss --with b=1,t=4 --seed 3 --mode train --save plain
expect 0 "" "" run plain --in in.safetensors --grad --seed 3 --step 5 --out after.safetensors
values() { # values FILE: name and bytes of each array, in the order of the names
  python3 -c '
import json, struct, sys
bytes_ = open(sys.argv[1], "rb").read()
end = 8 + struct.unpack("<Q", bytes_[:8])[0]
for name, entry in sorted(json.loads(bytes_[8:end]).items()):
    if name != "__metadata__": print(name, bytes_[end + entry["data_offsets"][0]:end + entry["data_offsets"][1]].hex())' "$1"
}
holds "gradients recorded after loading have the same bits" cmp <(values of_function.safetensors) <(values after.safetensors)
expect 0 "" "" show plain --grad --save again
expect 0 "" "" diff loss again
expect 2 "" "^xtape: --grad: there is an output 'grad\.[a-z.0-9]+' already" show loss --grad

# Weights.
expect 0 "" "" show gpt2 "${small[@]}" --tape loss --with b=1,t=4 --seed 4 --mode train --save other
expect 1 "the same nodes; [0-9]+ of 16 parameters have other elements, first 'wte\.weight'" "differ" diff plain other
expect 0 "" "" run plain --weights other/arrays.safetensors --in in.safetensors --step 5 --out first.safetensors
expect 0 "" "" run other --in in.safetensors --step 5 --out second.safetensors
holds "--weights replaces the weights of a saved tape" cmp first.safetensors second.safetensors

# Options that a tape or a definition does not take.
expect 2 "" "'loss' is a saved tape, which takes no FUNCTION" run loss loss --in in.safetensors
expect 2 "" "'loss' is a saved tape, which takes no --mode" run loss --mode train --in in.safetensors
expect 2 "" "'loss' is a saved tape, which takes no --with" show loss --with b=1
expect 2 "" "a definition needs a FUNCTION" run gpt2 --in in.safetensors
expect 2 "" "--save needs --tape FUNCTION, or a saved tape" show gpt2 --save nowhere
expect 2 "" "input 'tokens' is not given: --in FILE" run loss
expect 2 "" "exists and is not a saved tape" show plain --save .
arrays wrong.safetensors tokens I64 '[1, 3]' q 1 2 3 -- targets I64 '[1, 4]' q 2 3 4 5
expect 2 "" "play: input 'tokens' is int64 \(1, 4\), fed with int64 \(1, 3\)" run loss --in wrong.safetensors
arrays more.safetensors tokens I64 '[1, 4]' q 1 2 3 4 -- targets I64 '[1, 4]' q 2 3 4 5 -- token I64 '[1]' q 1
expect 2 "" "has 'token', which is not an input; did you mean 'tokens'" run loss --in more.safetensors
sed 's/"version": 1/"version": 9/' -i other/tape.json
expect 2 "" "other/tape.json, line 3: the format has version 9" show other

# Differences.
expect 0 "" "" show gpt2 "${small[@]}" --set activation=relu --tape loss --with b=1,t=4 --seed 3 --mode train --save relu
expect 1 "the ops are |only the (first|second) has it" "'plain' and 'relu' differ" diff plain relu
expect 1 "at h\.0\.mlp\.act \(.*activation\.json, block 'relu', line [0-9]+\)" "differ" diff plain relu
expect 2 "" "'in.safetensors' has no arrays to compare with, only inputs" diff plain in.safetensors

# Digests.
expect 0 "total" "" run plain --in in.safetensors --step 5 --threads 1 --digests one.json
expect 0 "total" "" run plain --in in.safetensors --step 5 --threads 2 --digests two.json
expect 0 "threads: 1 and 2" "" diff one.json two.json
expect 0 "values in both, of which 0 differ; 0 only in the first, 0 only in the second" "" diff one.json two.json
expect 0 "total" "" run plain --in in.safetensors --step 6 --digests six.json
expect 1 "^first: #[0-9]+ dropout.* at logits \(.*line [0-9]+\)" "differ" diff one.json six.json
expect 1 "step: 5 and 6" "differ" diff one.json six.json
arrays near.safetensors tokens I64 '[1, 4]' q 1 2 3 5 -- targets I64 '[1, 4]' q 2 3 4 5
expect 0 "total" "" run plain --in near.safetensors --step 5 --digests near.json
expect 1 "^first: tokens \(input\) -> int64 \(1, 4\)" "differ" diff one.json near.json
expect 0 "total" "" run plain --in in.safetensors --step 5 --unfused --digests unfused.json
expect 1 "only in the second" "differ" diff one.json unfused.json
holds "each call has a digest" [ "$(grep -c '"hash"' unfused.json)" -gt "$(grep -c '"hash"' one.json)" ]
sed 's/"hash":"0/"hash":"x/; s/"hash":"[1-9a-f]/"hash":"x/' one.json >damaged.json
expect 2 "" "damaged.json, line [0-9]+: 16 lower-case hexadecimal digits" diff one.json damaged.json
expect 2 "" "is a file of a saved tape: give the folder" diff one.json loss/tape.json
expect 2 "" "is digests and 'loss' is a saved tape" diff one.json loss

finish
