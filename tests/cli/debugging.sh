#!/bin/bash
# Capsules of failed trainings, and the commands replay, shadow, explain and diff with arrays of PyTorch.
# usage: debugging.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export XTAPE_MODELS="$source/models"
NEEDS="$source/tests/docs/needs"
. "$NEEDS/story.sh"

# A failed training writes a capsule.
expect 1 "" "not finite: -inf in #[0-9]+ log .* at loss \(.*function 'loss', line [0-9]+\)" train entropy_recipe.json --out run
expect 0 "^where it came from:$" "" replay run/capsule
expect 0 "#[0-9]+ softmax .*480 of 1024 zero" "" replay run/capsule
expect 0 "the same bits$" "" replay run/capsule
expect 0 "the same bits$" "" replay run/capsule --threads 3
expect 0 "fails too|the same bits" "" replay run/capsule --isa baseline
expect 2 "" "--isa must be one of baseline, avx2, .*, not 'avx51'; did you mean 'avx512'" replay run/capsule --isa avx51
XTAPE_ISA=baseline expect 2 "" "^xtape: --isa avx2: (XTAPE_ISA limits the program to baseline|this processor has no avx2)" replay run/capsule --isa avx2
has_matrix_unit() { "$xtape" --version | grep -q "amx"; }
lacks_matrix_unit() { ! has_matrix_unit; }
needs "a processor without a matrix unit" lacks_matrix_unit
expect 2 "" "^xtape: --isa amx: this processor has no amx; its widest instruction set is " replay run/capsule --isa amx
needs_nothing
expect 0 "by definitions: " "" replay run/capsule --reference
expect 0 "in float64: it fails too, with other bits$" "" replay run/capsule --dtype float64
expect 0 "^output '#[0-9]+ log' #4" "" show run/capsule
expect 0 "^#[0-9]+ log: float32 \(4, 16, 16\)" "" run run/capsule
expect 0 "added" "" shadow run/capsule
expect 2 "" "is not a capsule" replay run
expect 2 "" "--dtype: float16 not in {float64}" replay run/capsule --dtype float16
cp -r run/capsule damaged
sed -i 's/"digests"/"digest"/' damaged/capsule.json
expect 2 "" "capsule.json" replay damaged

cp -r run/capsule outside
python3 - <<'PYTHON'
import json
capsule = json.load(open("outside/capsule.json"))
capsule["failure"]["element"] = [0, 0, 1000000]
json.dump(capsule, open("outside/capsule.json", "w"))
PYTHON
expect 2 "." "element. is outside" replay outside
cp -r run/capsule nameless
sed -i 's/^"outputs": .*/"outputs": {}/' nameless/tape.json
expect 2 "" "a capsule has outputs" replay nameless

# An error in an op gives a capsule too.
sed 's/"x = embedding(tokens)"/"x = embedding(tokens + 1)"/; s/ + penalty \* entropy//' entropy.json >range.json
sed 's/entropy.json/range.json/' entropy_recipe.json >range_recipe.json
expect 1 "" "take: index [0-9]+ .* is out of range" train range_recipe.json --out range
expect 0 "the same error$" "" replay range/capsule
expect 0 "#[0-9]+ add -> int64" "" replay range/capsule

# A masked target: the line of the mask is named too. Masked logits that reach the loss give a capsule with all calls.
sed 's/entropy(logits, targets, ignore=-1)"/entropy(x, targets, ignore=-1)", "added = sum(logits)"/; s/"total, count"/"total + added, count"/' masked.json >added.json
sed 's/masked/added/' masked_recipe.json >added_recipe.json
expect 1 "" "not finite: -inf in #[0-9]+ add .* from -inf in #[0-9]+ masked_fill .*; no call makes it of finite numbers$" train added_recipe.json --out added
expect 0 "the same bits$" "" replay added/capsule
expect 1 "" "not finite: inf in #[0-9]+ cross_entropy .* from -inf in #[0-9]+ masked_fill \[[0-3], [0-9]+, [0-8]\]  at loss \(" train masked_recipe.json --out masked
# Errors give the lines of the file that the run's definition was copied from, while it says the same.
line_of() { grep -n "$1" masked.json | cut -d: -f1; }
told="cross_entropy .*/masked.json, function 'loss', line $(line_of 'total, count = ')\), from .*line $(line_of 'masked_fill')\)$"
expect 1 "" "$told" train masked_recipe.json --out masked_again
expect 1 "" "$told" train masked_again --resume
sed -i '1s/^/\n\n/' masked.json
expect 1 "" "line $(line_of 'total, count = ')\), from .*line $(line_of 'masked_fill')\)$" train masked_again --resume
sed -i 's/< 9/< 8/' masked.json
expect 1 "" "cross_entropy .*masked_again/definition.json, function 'loss', line " train masked_again --resume
expect 0 "^  #[0-9]+ masked_fill -> .*, \[[0-3], [0-9]+, [0-8]\] is -inf  at loss " "" replay masked/capsule
expect 0 "the same bits$" "" replay masked/capsule --threads 1

# The mended model.
sed -i 's/log(p)/log(maximum(p, 1e-9))/' entropy.json
expect 0 "mended: step 20" "run mended" train entropy_recipe.json --out mended
holds "no capsule without a failure" test ! -e mended/capsule
expect 0 "the largest relative error" "" shadow mended --top 3
expect 0 "^ *[0-9.e-]+ +([0-9.e-]+) +0\\.00e\\+00 +\\1 +#[0-9]+ parameter '(query|key).weight'" "" shadow mended --weights int8
expect 2 "" "--weights needs a run" shadow entropy_recipe.json --weights int8
expect 0 "^0 of 7 weights have no gradient$" "" explain mended
expect 0 "^the way to the loss" "" explain mended --weight key.weight
expect 2 "" "no weight .kei.weight.; did you mean 'key.weight'" explain mended --weight kei.weight
sed -i 's/query(x), key(x)/query(x), stop_gradient(key(x))/' entropy.json
expect 0 "^2 of 7 weights have no gradient$" "" explain entropy_recipe.json
expect 0 "stop_gradient passes no gradient on" "" explain entropy_recipe.json --weight key.weight

expect 0 "step 20" "warning: the loss does not depend on 2 weights, .*: key.weight, key.bias" train entropy_recipe.json --out stopped

# Runs and recipes.
sed 's/"seed": 1/"seed": 2/' entropy_recipe.json >other_recipe.json
expect 0 "same: step 20" "run same" train entropy_recipe.json --out same
expect 0 "other: step 20" "run other" train other_recipe.json --out other
expect 0 "^the losses of 20 updates are the same$" "" diff stopped same
expect 0 "^the weights of checkpoint 00000020 are the same$" "" diff stopped same
expect 1 "^the losses of 0 updates are the same; that of update 1 is" "differ$" diff same other
expect 1 "^[67] of 7 weights of checkpoint 00000020 differ" "differ$" diff same other
expect 1 "only the first has it" "differ$" diff same mended
expect 0 "^the tapes of an update are the same$" "" diff entropy_recipe.json other_recipe.json
expect 2 "" "there is no" diff same nowhere

expect 0 "short: step 10" "run short" train entropy_recipe.json --set steps=10 --out short
expect 1 "^the losses of 10 updates are the same; the first has 10 more$" "differ$" diff same short
expect 1 "^they have no checkpoint of the same update$" "differ$" diff same short
expect 2 "" "'run/capsule' is a capsule and 'same' is a run: diff takes two of one kind" diff run/capsule same
expect 2 "" "two definitions need --tape FUNCTION" diff entropy.json entropy.json
expect 2 "" "'entropy.json' is a definition$" shadow entropy.json
expect 2 "" "'run/capsule' is a capsule, which takes no --set" shadow run/capsule --set steps=3
expect 2 "" "'entropy_recipe.json' is a recipe, which takes no --in" shadow entropy_recipe.json --in nowhere.safetensors
expect 2 "" "there is no 'nowhere'" shadow nowhere
expect 2 "" "--top: " shadow run/capsule --top -1
expect 2 "" "--threads: " replay run/capsule --threads -1

# A play with `run`.
python3 - <<'PYTHON'
import json, struct
for name, numbers in (("bad", [1.0, 0.0, 4.0]), ("good", [1.0, 2.0, 4.0])):
    text = json.dumps({"x": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}}).encode()
    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(text)) + text + struct.pack("<3f", *numbers))
PYTHON
cat >logs.json <<'END'
{"xtape": 2, "name": "logs", "model": {"functions": {"f": {
  "inputs": {"x": "float [n]"},
  "do": ["y = log(x)"],
  "result": "sum(y)"
}, "g": {"inputs": {"x": "float [n]"}, "result": "sum(watch(x, x > 0))"}}}}
END
cat >integers.json <<'END'
{"xtape": 2, "name": "integers", "model": {"functions": {"f": {
  "inputs": {"x": "int32 [n]"},
  "do": ["y = dropout(cast(x, 'float'), 0.5)"],
  "result": "sum(y * y)"
}}}}
END
python3 - <<'PYTHON'
import json, struct
for name, numbers in (("wide", [1, 2, 2 ** 32 + 5]), ("fitting", [1, 2, -5])):
    text = json.dumps({"x": {"dtype": "I64", "shape": [3], "data_offsets": [0, 24]}}).encode()
    open(name + ".safetensors", "wb").write(struct.pack("<Q", len(text)) + text + struct.pack("<3q", *numbers))
PYTHON
expect 2 "" "input 'x' must be int32; the file has int64 with numbers that do not fit" run integers.json f --in wide.safetensors
expect 0 "^f: float32 \(\) 30$" "" run integers.json f --in fitting.safetensors
expect 2 "" "there is no file 'no_such_tape'" run no_such_tape
expect 0 "" "" show integers.json --tape f --with n=3 --mode train --save integers
expect 0 "1 again|steps" "" plan integers
expect 2 "" "input 'x' is not given: --in FILE" shadow integers
expect 0 "first output" "" shadow integers --in fitting.safetensors --seed 3 --step 4
expect 2 "" "which takes no --seed" shadow same --seed 3
expect 0 "^f: float32" "" run logs.json f --in good.safetensors --capsule of_run
holds "no capsule without a failure of a play" test ! -e of_run
expect 1 "" "^xtape: -inf in #1 log -> float32 \(3,\)  at f \(.*logs.json, function 'f', line 3\)" run logs.json f --in bad.safetensors --capsule of_run
expect 0 "^      \[0 … 2\]: 0 >-inf< " "" replay of_run
expect 1 "" "logs.json, function 'g', line 5.: watch: the condition is false at \[1\]" run logs.json g --in bad.safetensors --capsule of_check
expect 0 "the same error$" "" replay of_check

# A ported model against what PyTorch's modules return.
python3 - "$source/tests/golden/gpt2_modules.safetensors" weights.safetensors <<'PYTHON'
import json, struct, sys
data = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8:8 + size]), data[8 + size:]
weights = {name[5:] for name in header if name.startswith("grad.")}
text = json.dumps({name: entry for name, entry in header.items() if name in weights})
kept, out = {}, b""
for name in sorted(weights):
    begin, end = header[name]["data_offsets"]
    kept[name] = {**header[name], "data_offsets": [len(out), len(out) + end - begin]}
    out += body[begin:end]
text = json.dumps(kept).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + out)
PYTHON
gpt2=(--set vocab_size=19 --set n_positions=6 --set n_embd=8 --set n_layer=2 --set n_head=2 --set dropout_rate=0)
golden="$source/tests/golden"
for activation in gelu gelu_tanh; do
  expect 0 "" "" show gpt2 "${gpt2[@]}" --set activation=$activation --tape loss --with b=2,t=6 --mode train \
    --weights weights.safetensors --grad --save $activation
done
expect 0 "^79 arrays match, 0 differ$" "" diff gelu "$golden/gpt2_modules.safetensors" --in "$golden/gpt2_modules_inputs.safetensors"
expect 1 "^'h.0.mlp.act' differs" "differ$" diff gelu_tanh "$golden/gpt2_modules.safetensors" --in "$golden/gpt2_modules_inputs.safetensors"
expect 1 "gelu.*activation.json, block 'gelu_tanh', line [0-9]+" "differ$" \
  diff gelu_tanh "$golden/gpt2_modules.safetensors" --in "$golden/gpt2_modules_inputs.safetensors"

python3 - "$golden/gpt2_modules.safetensors" spoilt.safetensors <<'PYTHON'
import json, struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
size = struct.unpack("<Q", data[:8])[0]
begin = 8 + size + json.loads(data[8:8 + size])["h.0.mlp.act"]["data_offsets"][0]
data[begin + 8:begin + 12] = struct.pack("<f", float("nan"))
open(sys.argv[2], "wb").write(data)
PYTHON
expect 1 "by inf of its size, most at \[0, 0, 2\]: -?[0-9.]+, in the reference nan" "differ$" \
  diff gelu spoilt.safetensors --in "$golden/gpt2_modules_inputs.safetensors"

# Definitions, without saving their tapes.
sizes=(--tape loss --with b=2,t=6 --mode train)
expect 0 "^79 arrays match, 0 differ$" "" diff gpt2 "$golden/gpt2_modules.safetensors" "${gpt2[@]}" --set activation=gelu \
  "${sizes[@]}" --grad --weights weights.safetensors --in "$golden/gpt2_modules_inputs.safetensors"
sed 's/"y = log(x)"/"y = log(x)", "y = 2 * y"/' logs.json >other_logs.json
expect 1 "other_logs.json, function 'f', line 3" "differ$" diff logs.json other_logs.json --tape f --with n=3
expect 0 "" "" diff logs.json other_logs.json --tape g --with n=3
expect 2 "" "--tape" diff logs.json other_logs.json --with n=3
expect 2 "" "is a saved tape, which takes no --tape" diff gelu other_logs.json --tape f --with n=3
finish
