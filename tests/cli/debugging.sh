#!/bin/bash
# Capsules of failed trainings, and the commands replay, shadow, explain and diff with arrays of PyTorch.
# usage: debugging.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export XTAPE_MODELS="$source/models"
cp "$source"/examples/data/{entropy,entropy_recipe,masked}.json .
sed 's/entropy/masked/' entropy_recipe.json >masked_recipe.json
for _ in $(seq 100); do echo "ROMEO: is the day so young?"; done >text.txt

# A failed training writes a capsule.
expect 1 "" "not finite: -inf in #[0-9]+ log .* at loss \(.*function 'loss', line [0-9]+\)" train entropy_recipe.json --out run
expect 0 "^where it came from:$" "" replay run/capsule
expect 0 "#[0-9]+ softmax .*480 of 1024 zero" "" replay run/capsule
expect 0 "the same bits$" "" replay run/capsule
expect 0 "the same bits$" "" replay run/capsule --threads 3
read -r narrow wide _ <<<"$(instruction_sets)"
expect 0 "fails too|the same bits" "" replay run/capsule --isa "$narrow"
expect 2 "" "--isa must be one of $narrow, $wide.*, not '${wide}x'; did you mean '$wide'" replay run/capsule --isa "${wide}x"
XTAPE_ISA=$narrow expect 2 "" "^xtape: --isa $wide: (XTAPE_ISA limits the program to $narrow|this processor has no $wide)" replay run/capsule --isa "$wide"
sets=$(instruction_sets) widest=${sets##* }
lacks_widest() { ! "$xtape" --version | grep -q "$widest"; }
needs "a processor without $widest" lacks_widest
expect 2 "" "^xtape: --isa $widest: this processor has no $widest; its widest instruction set is " replay run/capsule --isa "$widest"
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
expect 2 "" "outside/capsule.json, line 1: no output has an element \[0, 0, 1000000\]" replay outside
cp -r run/capsule nameless
sed -i 's/^"outputs": .*/"outputs": {}/' nameless/tape.json
expect 2 "" "a capsule has outputs" replay nameless

# The whole play that the capsule is cut from.
expect 0 "^[1-9][0-9]* of [0-9]+ outputs are not finite$" "" replay run/capsule --whole
holds "the search finds the call again" grep -q -E "^-inf in #[0-9]+ log " out
expect 0 "^-inf in #[0-9]+ log " "" replay run/failed_play --threads 3
expect 0 "^-inf in #[0-9]+ log " "" replay run/failed_play --dtype float64
expect 0 "^-inf in #[0-9]+ log " "" replay run/capsule --whole --reference
expect 0 "outputs are not finite$" "" replay run/capsule --whole --isa "$narrow"
expect 0 "^0 of 7 weights have no gradient$" "" explain run/failed_play
expect 0 "^the way to the loss" "" explain run/failed_play --weight key.weight
expect 0 "added" "" shadow run/failed_play --top 3
expect 0 "" "" diff run/failed_play run/failed_play
expect 0 "^the tapes of an update are the same$" "" diff run/failed_play run
expect 0 "^#[0-9]+ log" "" show run/failed_play
expect 0 "^loss.0: float32 \(\) -?nan" "" run run/failed_play --in run/failed_play/inputs.safetensors
cp -r run/failed_play other_play
sed -i 's/"step": "0/"step": "1/' other_play/play.json
expect 1 "^the same tapes and inputs; the random numbers differ" "differ$" diff run/failed_play other_play
expect 2 "" "is a saved play, which takes no --seed" shadow run/failed_play --seed 3
expect 2 "" "which takes no --in" shadow run/failed_play --in run/failed_play/inputs.safetensors
cp -r run/capsule lonely
expect 2 "" "there is no './failed_play', the play that 'lonely' is cut from" replay lonely --whole
expect 2 "" "is neither a capsule nor a saved play" replay run --whole

# A number that is not finite in an evaluation alone.
sed 's/"total + penalty \* entropy, count"/"total if training else total + log(-total), count"/; s/"entropy = .*",/"entropy = 0",/' entropy.json >evaluated.json
sed 's/entropy.json/evaluated.json/' entropy_recipe.json >evaluated_recipe.json
expect 1 "" "^xtape: the loss of the evaluation after update 20, in its batch 1, is not finite: NaN in #[0-9]+ log .*, line [0-9]+\)" \
  train evaluated_recipe.json --out evaluated
holds "the updates before it are kept" test -d evaluated/checkpoints/00000020
expect 0 "the same bits$" "" replay evaluated/capsule
expect 0 "outputs are not finite$" "" replay evaluated/capsule --whole
expect 0 "^7 arrays match, 0 differ" "" diff evaluated/failed_play evaluated/checkpoints/00000020/weights.safetensors
expect 1 "" "the loss of the evaluation, in its batch 1, is not finite: NaN in" eval evaluated
expect 1 "" "the loss of the evaluation after update 20, in its batch 1" train evaluated --resume

# A moment of the optimiser that would overflow.
sed 's/log(p)/log(maximum(p, 1e-9))/' entropy.json >mended.json
sed 's/"total + penalty \* entropy, count"/"1e25 * total, count"/' mended.json >large.json
expect 1 "" "update 1 would make the second moment of '[a-z.]+' inf at \[[0-9, ]+\], where it is 0 and the gradient" \
  train evaluated_recipe.json --out overflow --set definition=large.json
expect 0 "^0 of [0-9]+ outputs are not finite$" "" replay overflow/failed_play

# Watched values and statistics.
expect 0 "watched: step 4 " "^update 3  loss.scores float32 \(4, 16, 16\): -?[0-9.e-]+ … [0-9.e-]+$" \
  train evaluated_recipe.json --out watched --set definition=mended.json --set steps=4 --watch loss.scores --watch query --watch-every 2
holds "every second update" [ "$(grep -c "loss.scores" err)" = 2 -a "$(grep -c "^update [13]  query float32" err)" = 2 ]
holds "the metrics have them" [ "$(grep -c '"watched":{"loss.scores":{"least":-*[0-9.e-]*,"largest":[0-9.e-]*,"not_finite":0}' watched/metrics.jsonl)" = 2 ]
expect 2 "" "computes no 'loss.score'; did you mean 'loss.scores'" \
  train evaluated_recipe.json --out unwatched --set definition=mended.json --watch loss.score
expect 2 "" "^xtape: --watch: the text is not UTF-8 at byte 1" train evaluated_recipe.json --out unwatched --watch $'l\xff'
holds "a wrong name leaves no run" test ! -e unwatched
expect 0 "observed: step 4 " "run observed" train evaluated_recipe.json --out observed --set definition=mended.json --set steps=4 --statistics
holds "the statistics are in the metrics" [ "$(grep -c '"statistics":{"embedding":{"largest":' observed/metrics.jsonl)" = 1 ]
losses() { grep -o '"step":[0-9]*,"loss":[^,]*' "$1/metrics.jsonl"; }
holds "they change no loss" same "$(losses watched)" "$(losses observed)"

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
expect 0 "^all within rounding: no call adds more than 1e-05$" "" shadow mended --top 3
for i in 0 1 2; do for j in 0 1 2; do for k in 0 1 2; do
  echo "$i$j$k=$(printf '%s\n' $i $j $k | sort | tr -d '\n')"
done; done; done >sorted.txt
expect 0 "^all within rounding" "" shadow sorting --top 1 --set data.text=sorted.txt --set data.held_out=4 --set batch.size=4
expect 0 "^ *[0-9.e-]+ +([0-9.e-]+) +0\\.00e\\+00 +\\1 +#[0-9]+ parameter '(query|key).weight'" "" shadow mended --weights int8
expect 2 "" "--weights needs a run" shadow entropy_recipe.json --weights int8
expect 0 "^0 of 7 weights have no gradient$" "" explain mended
expect 0 "^0 have a gradient that is 0 everywhere$" "" explain mended
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
expect 0 "^the losses and gradient norms of 20 updates are the same$" "" diff stopped same
expect 0 "^the weights of checkpoint 00000020 are the same$" "" diff stopped same
expect 1 "^the losses and gradient norms of 0 updates are the same; those of update 1 differ$" "differ$" diff same other
expect 1 "^[67] of 7 weights of checkpoint 00000020 differ" "differ$" diff same other
expect 1 "only the first has it" "differ$" diff same mended
expect 0 "^the tapes of an update are the same$" "" diff entropy_recipe.json other_recipe.json
expect 2 "" "there is no" diff same nowhere

expect 0 "short: step 10" "run short" train entropy_recipe.json --set steps=10 --out short
expect 1 "^the losses and gradient norms of 10 updates are the same; the first has 10 more$" "differ$" diff same short
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
python3 - "$source/tests/golden/data/gpt2_modules.safetensors" weights.safetensors <<'PYTHON'
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
golden="$source/tests/golden/data"
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
# One file with weights, inputs and what modules return, under PyTorch's names.
python3 - "$golden/lstm_modules.safetensors" "$golden/lstm_modules_inputs.safetensors" lstm.safetensors <<'PYTHON'
import json, struct, sys
header, body = {}, b""
for path in sys.argv[1:3]:
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        header[name] = {**entry, "data_offsets": [len(body), len(body) + end - begin]}
        body += data[8 + size + begin:8 + size + end]
text = json.dumps(header).encode()
open(sys.argv[3], "wb").write(struct.pack("<Q", len(text)) + text + body)
PYTHON
cat >lstm.json <<'END'
{"xtape": 2, "name": "small", "use": ["blocks/linear.json", "blocks/recurrent.json"], "hyper": {"order": "'i_f_g_o'"}, "model": {
  "modules": {
    "embedding": {"block": "embedding", "rows": 19, "width": 8},
    "lstm": {"block": "lstm_cell", "in": 8, "units": 8, "pass": ["order"]},
    "output": {"block": "linear", "in": 8, "out": 19}
  },
  "functions": {"loss": {
    "inputs": {"tokens": "int [b, t]", "targets": "int [b, t]"},
    "do": [
      "y, h, c = scan(lstm, lstm.input(embedding(tokens)), init=(zeros((b, 8)), zeros((b, 8))))",
      "total, count = cross_entropy(output(y), targets, ignore=-1)"
    ],
    "result": "total, count"
  }}}}
END
expect 0 "^17 arrays match, 0 differ$" "" diff lstm.json lstm.safetensors "${sizes[@]}" --grad
expect 1 "^'lstm' differs" "differ$" diff lstm.json lstm.safetensors "${sizes[@]}" --grad --set "order='i_g_f_o'"
expect 1 "^  the lines that apply these modules:$" "differ$" diff lstm.json lstm.safetensors "${sizes[@]}" --grad --set "order='i_g_f_o'"
expect 2 "" "input 't[a-z]+' is not given: --in FILE" diff lstm.json "$golden/lstm_modules.safetensors" "${sizes[@]}"
sed 's/"y = log(x)"/"y = log(x)", "y = 2 * y"/' logs.json >other_logs.json
expect 1 "other_logs.json, function 'f', line 3" "differ$" diff logs.json other_logs.json --tape f --with n=3
expect 0 "" "" diff logs.json other_logs.json --tape g --with n=3
expect 2 "" "--tape" diff logs.json other_logs.json --with n=3
expect 2 "" "is a saved tape, which takes no --tape" diff gelu other_logs.json --tape f --with n=3
finish
