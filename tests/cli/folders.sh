#!/bin/bash
# Hugging Face model folders: show, train and export.
# usage: folders.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
folders=$source/tests/golden/data/hugging_face
export XTAPE_MODELS="$source/models"

expect 0 "^9,424 parameters$" "" show "$folders/tiny"
expect 0 "n_inner = 24" "" show "$folders/untied"
expect 0 "^ +lm_head +embedding +1,552" "" show "$folders/untied"

for i in $(seq 30); do echo "a rolling stone gathers no moss, and a stitch in time saves nine."; done >words.txt
small=(--set data.text=words.txt --set 'tokenizer={"kind": "character"}' --set data.block_size=16 --set steps=20
  --set schedule.rate=1e-2 --set schedule.warmup=1 --set batch.accumulate=1 --threads 1)
expect 0 "^run: step 20  validation loss" "9424 parameters, step 0 of 20" train gpt2_finetune --from "$folders/half" --out run "${small[@]}"
holds "the run has the folder's config" cmp -s run/hugging_face/config.json "$folders/half/config.json"
expect 0 "^a rolling stone" "" generate run --prompt "a rolling stone" --tokens 4 --temperature 0
expect 0 "^validation_loss [0-3]\." "" eval run
expect 0 "^folder$" "" export run folder
holds "the folder is complete" [ -s folder/config.json -a -s folder/model.safetensors -a -s folder/generation_config.json ]
expect 0 "^9,424 parameters$" "" show folder
expect 2 "" "folder already exists" export run folder
expect 0 "^run2: step 1 " "step 0 of 1" train gpt2_finetune --from folder --out run2 "${small[@]}" --set steps=1
expect 0 "^adapted: step 20 " "of them trained, step 0 of 20" train gpt2_lora_finetune --from "$folders/half" --out adapted "${small[@]}"
expect 0 "^merged$" "" export adapted merged
holds "adapters are merged: the names are those of the folder" same \
  "$(grep -ao '"transformer[^"]*"\|"lm_head[^"]*"' merged/model.safetensors | sort)" \
  "$(grep -ao '"transformer[^"]*"\|"lm_head[^"]*"' folder/model.safetensors | sort)"
expect 0 "^merged8$" "" export adapted merged8 --weights int8
sed '/"export"/d; s/else none)",$/else none)"/' "$source/models/gpt2_lora.json" >unmerged.json
expect 0 "^unmerged: step 1 " "step 0 of 1" train gpt2_lora_finetune --from "$folders/half" --out unmerged "${small[@]}" --set steps=1 \
  --set definition="$PWD/unmerged.json"
expect 0 "^surplus$" "unexpected: transformer.h.0.attn.c_attn.lora_A" export unmerged surplus
holds "a folder that transformers would misread has its definition" grep -q '"model_type": "xtape"' surplus/config.json
expect 2 "" "folder already exists" export unmerged folder
holds "an export leaves nothing else" [ ! -e surplus.writing ]
expect 2 "" "missing: h.0.attn.c_attn.lora_A" train gpt2_lora_finetune --from "$folders/half" --out run4 "${small[@]}" --set 'initialise=[]'
expect 2 "" "excludes|--resume" train run --from folder --resume
expect 0 "^again$" "" export "$folders/untied" again
holds "what is in several files or two bytes is in one file of four" \
  same "$("$xtape" show again)" "$("$xtape" show "$folders/untied")"

# ONNX files, if the program was built with xtape-onnx. Else each use says how to get such a program.
"$xtape" export folder whole.onnx --function logits --with b=1,t=6 >out 2>err
if grep -q "built without xtape-onnx" err; then
  cure="built without xtape-onnx, .*: install libprotozero-dev and build it in a new folder, as docs/how_to/installing.md says$"
  touch some.onnx
  expect 1 "" "$cure" export folder whole.onnx --function logits --with b=1,t=6
  expect 1 "" "$cure" ops --onnx
  expect 2 "" "^xtape: 'some.onnx' cannot be read: .*$cure" show some.onnx
  missing="xtape-onnx"
fi
holds "a function of a folder is an ONNX file" grep -q -a h.0.attn.c_attn.weight whole.onnx
expect 0 "^step.onnx$" "" export run step.onnx --function logits --with b=2,t=1 --step tokens --capacity 8 --opset 20
holds "a step of a run has caches" grep -q -a "cache 3.next" step.onnx
"$xtape" show folder --tape logits --with b=1,t=6 --save tape >/dev/null
expect 0 "^tape.onnx$" "" export tape tape.onnx
expect 2 "" "step.onnx already exists" export run step.onnx
expect 2 "" "takes no --function" export tape other.onnx --function logits
expect 2 "" "--function names" export folder other.onnx
expect 2 "" "'logits'" export folder other.onnx --function lgits --with b=1,t=6
expect 0 "^open.onnx$" "" export folder open.onnx --function logits --with b=1
holds "sizes left out are open" grep -q -a sizes/Shape open.onnx
expect 0 "softmax" "" show open.onnx --with t=3
expect 2 "" "no size 'n'" export folder other.onnx --function logits --with b=1,n=2
expect 2 "" "--step and --capacity go together" export folder other.onnx --function logits --with b=1,t=1 --step tokens
expect 2 "" "18 to 23, got 17" export folder other.onnx --function logits --with b=1,t=6 --opset 17
expect 2 "" "--weights is for folders" export folder other.onnx --weights int8
expect 2 "" "are for ONNX files" export folder other --function logits
holds "a refused export leaves no file" [ ! -e other.onnx -a ! -e other ]
missing=

# Llama: tokenizer.json and tokenizer.model, configs of transformers 5 and 4.
llama=$source/tests/golden/data/llama
for name in nested flat; do
  expect 0 "^a stitch in time" "" generate "$llama/$name" --prompt "a stitch in time" --tokens 5 --temperature 0
  "$xtape" export "$llama/$name" "again-$name" >/dev/null
  holds "$name: what is exported untouched says the same" same \
    "$("$xtape" generate "again-$name" --prompt "a stitch" --tokens 20 --temperature 0)" \
    "$("$xtape" generate "$llama/$name" --prompt "a stitch" --tokens 20 --temperature 0)"
  expect 0 "^run-$name: step 20  validation loss" "parameters, step 0 of 20" train llama_finetune --from "$llama/$name" --out "run-$name" \
    --set data.text=words.txt --set data.block_size=16 --set steps=20 --set schedule.rate=1e-2 --set schedule.warmup=1 \
    --set batch.accumulate=1 --threads 1
  expect 0 "^a rolling stone" "" generate "run-$name" --prompt "a rolling stone" --tokens 4 --temperature 0
  expect 0 "^trained-$name$" "" export "run-$name" "trained-$name"
  holds "$name: what is exported generates as the run does" same \
    "$("$xtape" generate "run-$name" --prompt "a rolling" --tokens 8 --temperature 0 --seed 1)" \
    "$("$xtape" generate "trained-$name" --prompt "a rolling" --tokens 8 --temperature 0 --seed 1)"
done
holds "the export has the tokenizer.json" cmp -s trained-nested/tokenizer.json "$llama/nested/tokenizer.json"
holds "the export has the tokenizer.model" cmp -s trained-flat/tokenizer.model "$llama/flat/tokenizer.model"
holds "nested keys stay nested" grep -q '"rope_parameters"' trained-nested/config.json
holds "flat keys stay flat" grep -q '^  "rope_theta": 300.0' trained-flat/config.json
mkdir queries && cp "$source"/tests/golden/data/qwen3/{config.json,model.safetensors} "$llama"/nested/tokenizer* queries
expect 0 "^a stitch in time" "" generate queries --prompt "a stitch in time" --tokens 5 --temperature 0
expect 2 "" "flat: the model has logits.tokens., and only logits.source, tokens. translates: use xtape generate" translate "$llama/flat"
mkdir odd && cp "$llama"/flat/* odd && sed -i 's/"mlp_bias"/"sliding_window": 7, "mlp_bias"/' odd/config.json
expect 0 "parameters" "^warning: odd/config.json has a key that .*llama.json does not know.*: 'sliding_window'$" show odd
rm odd/tokenizer.model
expect 2 "" "odd has no tokenizer: it needs tokenizer.json, tokenizer.model, spiece.model, vocab.json and merges.txt, or vocab.txt" generate odd --prompt a --tokens 1

# Files beside the weights: what ends a text, how to sample, what is not read, and what is not used.
mkdir aside && cp "$llama"/flat/* aside
free=$("$xtape" generate aside --prompt "a stitch" --tokens 8 --temperature 0 | tr '\0' 0)
printf '{"eos_token_id": [2, %s], "do_sample": false, "repetition_penalty": 1.3, "num_beams": 1}' "$(seq -s, 3 339)" >aside/generation_config.json
expect 0 "^a stitch$" "^warning: aside/generation_config.json has a key that xtape does not know and ignores: 'repetition_penalty'$" \
  generate aside --prompt "a stitch" --tokens 8
holds "many texts end there, too" same "$(printf 'a stitch\na stitch')" \
  "$("$xtape" generate aside --prompt "a stitch" --num-samples 2 --tokens 8 2>/dev/null)"
drawn() { "$xtape" generate aside --prompt "a stitch" --tokens 8 --seed 5 "$@" | tr '\0' 0; }
for sampling in '"do_sample": false' '"top_k": 1' '"top_p": 1e-9'; do
  echo "{$sampling}" >aside/generation_config.json
  holds "sampling is that of the file: $sampling" same "$free" "$(drawn)"
done
holds "options come before the file" [ "$free" != "$(drawn --temperature 9 --top-p 1)" ]
printf '{"top_p": 2}' >aside/generation_config.json
expect 2 "" "aside/generation_config.json, line 1: \"top_p\" must be above 0" generate aside --prompt a --tokens 1
rm aside/generation_config.json
touch aside/README.md aside/training_args.bin aside/rules.json aside/other.safetensors
expect 0 "parameters" "^warning: aside has files that are not read: 'other.safetensors', 'rules.json'$" show aside
printf '{"<new>": %s}' "$(("$("$xtape" show aside 2>/dev/null | sed -n 's/.*vocab_size = \([0-9]*\).*/\1/p' | head -1)" + 1))" >aside/added_tokens.json
holds "an added token is read both ways" same "a<new>b" "$(echo "a<new>b" | "$xtape" tokenize aside | "$xtape" tokenize aside --detokenize)"
expect 0 "no use for these tensors of the folder: bert.embeddings.position_ids, bert.pooler.dense.bias, bert.pooler.dense.weight, cls.seq_relationship.bias, cls.seq_relationship.weight$" "" \
  check "$source/tests/golden/data/encoders/old"
expect 0 "no mistake found" "" check "$folders/tiny"

# BERT that classifies, with sentencepiece's tokens.
cp -r "$source/tests/golden/data/encoders/classes" bert && cp "$source"/tests/golden/data/t5/relu/{spiece.model,tokenizer_config.json} bert
printf 'the quick brown fox jumps\n\na stitch' | "$xtape" classify bert >together
holds "a label and its probability for each line" [ "$(grep -cE $'^(bad|fair|good)\t0\.[0-9]+$' together)" = 3 ]
holds "padding changes no label and no probability" same "$(sed -n 3p together)" "$(echo "a stitch" | "$xtape" classify bert)"
holds "a line may have as many tokens as there are positions" [ "$(printf '%.0sa' {1..38} | "$xtape" classify bert | wc -l)" = 1 ]
expect 2 "" "line 2: [0-9]+ tokens, and the model reads at most 40" classify bert < <(echo a; printf '%.0sq ' {1..60})
touch picture.png
expect 2 "" "bert has a model that classifies texts: it reads lines" classify bert picture.png
expect 2 "" "--checkpoint needs a run: bert is a model folder" classify bert --checkpoint best
expect 2 "" "tiny has no model that classifies texts or images" classify "$folders/tiny"
for name in words states; do expect 2 "" "$name has no model that classifies texts or images" classify "$source/tests/golden/data/encoders/$name"; done
sed -i 's/"1": "fair"/"7": "fair"/' bert/config.json
expect 2 "" "config.json, line [0-9]+: there is no label 1: the keys count from 0" classify bert <<<a

# Adapters in the format of PEFT: of runs, and of PEFT.
adapters=$source/tests/golden/data/adapters
low=(train gpt2_lora_finetune --set definition=llama_lora --set data.text=words.txt --set data.block_size=16 --set steps=20
  --set schedule.rate=2e-2 --set schedule.warmup=1 --set batch.accumulate=1 --threads 1)
expect 0 "^low: step 20 " "544 of them trained, step 0 of 20" "${low[@]}" --from "$llama/nested" --out low --set hyper.rank=4
expect 0 "^low-adapter$" "" export low low-adapter --adapter
expect 0 "^low-merged$" "" export low low-merged
holds "adapters are two files" same "$(ls low-adapter)" "$(printf 'adapter_config.json\nadapter_model.safetensors')"
says() { "$xtape" generate "$@" --prompt "a rolling" --tokens 8 --temperature 0 | tr '\0' 0; }
of_run=$(says low)
holds "adapters change the text" [ "$of_run" != "$(says "$llama/nested")" ]
holds "adapters beside their base say what the run says" same "$of_run" "$(says "$llama/nested" --adapter low-adapter)"
holds "adapters name their base" same "$of_run" "$(says low-adapter)"
holds "merged adapters say the same" same "$of_run" "$(says low-merged)"
expect 0 "^low2: step 20 " "544 of them trained" "${low[@]}" --from low-adapter --out low2
expect 0 "^low3: step 20 " "544 of them trained" "${low[@]}" --from "$llama/nested" --adapter low-adapter --out low3
holds "both start with the adapters" same "$(says low2)" "$(says low3)"
expect 0 "^low2-adapter$" "" export low2 low2-adapter --adapter
holds "the base of adapters that went on is the first one" same \
  "$(grep base_model_name low2-adapter/adapter_config.json)" "$(grep base_model_name low-adapter/adapter_config.json)"
expect 0 "^again-adapter$" "" export low-adapter again-adapter --adapter
holds "adapters that are written again are the same" cmp -s again-adapter/adapter_model.safetensors low-adapter/adapter_model.safetensors
expect 0 "^named-adapter$" "" export low named-adapter --adapter --base someone/llama
holds "the base has the name that is given" grep -q '"base_model_name_or_path": "someone/llama"' named-adapter/adapter_config.json
expect 2 "" "--base requires --adapter" export low other --base someone/llama
cp -r low moved-base && sed -i 's|"from": ".*"|"from": "/none"|' moved-base/recipe.json
expect 0 "^moved-adapter$" "^warning: /none is gone, so that the adapters were not read back" export moved-base moved-adapter --adapter
cp low-adapter/* again-adapter && cp "$llama"/nested/* again-adapter
expect 0 "parameters" "^warning: again-adapter has a config.json and an adapter_config.json: its adapters are ignored" show again-adapter
holds "they are read when they are asked for" same "$of_run" "$(says again-adapter --adapter again-adapter 2>&1)"
expect 0 "^perplexity [0-9.]+$" "" eval "$llama/nested" --adapter "$adapters/all" --text words.txt
expect 0 "^ +targets = \('c_attn',\)" "" show "$adapters/gpt2"
expect 0 "no mistake found" "" check "$adapters/every"
expect 0 "^[0-9 ]+$" "" tokenize "$adapters/llama" <<<"a stitch"
expect 2 "" "--adapter needs the model folder that it adapts, and plain is none" generate plain --adapter low-adapter --prompt a --tokens 1
expect 2 "" "low-adapter has adapters itself" generate low-adapter --adapter low-adapter --prompt a --tokens 1
expect 2 "" "needs the model folder that it adapts, and low is none" generate low --adapter low-adapter --prompt a --tokens 1
expect 2 "" "--adapter writes a folder, not an ONNX file" export low low.onnx --adapter --function logits
expect 2 "" "--adapter excludes --weights" export low other --adapter --weights int8
expect 2 "" "model .llama. has no \"adapter\": add it to save adapters" export run-flat other --adapter
expect 2 "" "model 'llama_lora' has no linear map 'transformer.h.0.attn.c_attn'" \
  generate "$llama/nested" --adapter "$adapters/gpt2" --prompt a --tokens 1
cp -r "$adapters/llama" dora && sed -i 's/"use_dora": false/"use_dora": true/' dora/adapter_config.json
expect 2 "" "dora/adapter_config.json, line [0-9]+: 'use_dora' is true" generate "$llama/nested" --adapter dora --prompt a --tokens 1
expect 2 "" "'base_model_name_or_path' is \"../../llama/nested\", which is no folder" generate dora --prompt a --tokens 1
"$xtape" export "$llama/nested" nested-int8 --weights int8 >/dev/null
expect 2 "" "nested-int8 stores weights as int8" generate nested-int8 --adapter low-adapter --prompt a --tokens 1
"$xtape" export "$llama/nested" nested-half --weights bfloat16 >/dev/null
expect 0 "^a rolling" "" generate nested-half --adapter low-adapter --prompt "a rolling" --tokens 8
holds "a refused export of adapters leaves nothing" [ ! -e other -a ! -e low.onnx ]

# Weights of halves and int8: exported, opened as they are stored, and made so when a model is opened.
for dtype in bfloat16 float16 int8; do
  expect 0 "^small-$dtype$" "" export run-flat "small-$dtype" --weights "$dtype"
  holds "$dtype: the folder generates as the run does with such weights" same \
    "$("$xtape" generate "small-$dtype" --prompt "a rolling" --tokens 8 --temperature 0)" \
    "$("$xtape" generate run-flat --prompt "a rolling" --tokens 8 --temperature 0 --weights "$dtype")"
  expect 0 "^perplexity [0-9.]+$" "" eval "small-$dtype" --text words.txt --precision bf16
  holds "$dtype: the file is smaller" \
    [ "$(stat -c %s "small-$dtype/model.safetensors")" -lt "$(stat -c %s trained-flat/model.safetensors)" ]
done
expect 0 "^a rolling" "" generate small-bfloat16 --prompt "a rolling" --tokens 4 --weights int8
expect 0 "^a rolling" "" generate small-bfloat16 --prompt "a rolling" --tokens 4 --weights Q4_K
expect 2 "" "the weights are stored as int8 and cannot become bfloat16" generate small-int8 --prompt a --tokens 1 --weights bfloat16
expect 2 "" "int4 not in" generate small-int8 --prompt a --tokens 1 --weights int4
expect 2 "" "is stored as int8 and cannot be trained: freeze it" train llama_finetune --from small-int8 --out run-int8 --set data.text=words.txt \
  --set data.block_size=16 --set steps=20 --set schedule.warmup=1 --threads 1
"$xtape" export "$folders/tiny" tiny-int8 --weights int8 >/dev/null
# Adapters on weights in blocks: the run keeps them, exports merge the adapters, and a folder of blocks can be the start.
"$xtape" train gpt2_lora_finetune --from "$folders/tiny" --out run-blocks --set 'weights={"*": "Q4_K"}' "${small[@]}" >/dev/null 2>&1
expect 0 "^blocks$" "" export run-blocks blocks
expect 0 "^blocks-adapter$" "" export run-blocks blocks-adapter --adapter
expect 0 "^validation_loss [0-9.]+$" "" eval run-blocks
expect 2 "" "as Q8_0 already: --weights needs weights in float32" shadow run-blocks --weights int8
expect 0 " einsum -> float32 " "" shadow run-blocks
"$xtape" export "$folders/tiny" tiny-blocks --weights Q8_0 >/dev/null
expect 0 "^run-start: step 20  validation loss" "4096 of them trained, step 0 of 20" train gpt2_lora_finetune --from tiny-blocks --out run-start "${small[@]}"
expect 0 "^validation_loss [0-9.]+$" "" eval run-start
expect 2 "" "tiny-int8 stores weights as int8: it cannot be trained" train gpt2_lora_finetune --from tiny-int8 --out run-int8 "${small[@]}"

# T5: translate, train and export.
t5=$source/tests/golden/data/t5
translations() { "$xtape" translate "$1" --beam 1 --max-length 12 <pairs/train.source; }
mkdir pairs && for side in train validation; do
  printf '%s\n' "a rolling stone gathers no moss" "the quick brown fox jumps over the lazy dog" "pack my box with five dozen liquor jugs" >pairs/$side.source
  printf '%s\n' "no moss" "lazy dog" "five jugs" >pairs/$side.target
done
holds "translations equal those of transformers" [ "$(translations "$t5/relu")" = "w jubthe
Emmmmmmmmmmm
nelaneEneEnenenenenene" ]
expect 0 "validation loss" "parameters, step 0 of 150" train t5_finetune --from "$t5/relu" --out run-t5 --set data.folder=pairs \
  --set epochs=150 --set batch.size=4 --set schedule.rate=1e-2 --set hyper.dropout_rate=0 --threads 1
holds "training changes the translations" [ "$(translations run-t5)" = "$(cat pairs/train.target)" ]
expect 0 "^trained-t5$" "" export run-t5 trained-t5
holds "what is exported translates as the run does" same "$(translations run-t5)" "$(translations trained-t5)"
holds "with its tokenizer" cmp -s trained-t5/spiece.model "$t5/relu/spiece.model"
expect 2 "" "relu: the model translates: use xtape translate" generate "$t5/relu" --prompt a --tokens 1
expect 0 "^[0-9 ]+$" "" tokenize "$t5/relu" <<<"translate"
expect 0 "^gated-again$" "" export "$t5/gated" gated-again

sed '/"definition"/d' "$source/models/recipes/gpt2_finetune.json" >bare.json
expect 2 "" "needs the key 'definition' or 'from'" train bare.json --out none "${small[@]}"
expect 2 "" "none has no config.json" train gpt2_finetune --from none --out run3 "${small[@]}"
mkdir broken && cp "$folders"/tiny/*.json broken
expect 2 "" "broken has no model.safetensors" export broken out-of-it
expect 2 "" "no_such_run is not a run" export no_such_run out-of-it
expect 2 "" "has no entry \"hugging_face\"" train "$source/models/recipes/gpt2_finetune.json" --from "$folders/tiny" --out run3 "${small[@]}" --set definition="$source/models/lstm_lm.json"

# ViT: labels of images as transformers gives them, training further on images of any size, and export.
vit=$source/tests/golden/data/vit
pictures=("$vit"/{photo,grey,transparent,palette,tall,turned}.png)
holds "labels and probabilities equal those of transformers" same "$("$xtape" classify "$vit/model" "${pictures[@]}")" "$(cat "$vit/labels.txt")"
holds "many images are labelled in parts" same \
  "$("$xtape" classify "$vit/model" $(printf "$vit/grey.png %.0s" {1..20}) "$vit/palette.png" | uniq -c | sed 's/^ *//')" \
  "$(sed -n '2s/^/20 /p; 4s/^/1 /p' "$vit/labels.txt")"
expect 2 "" "model has a model that classifies images: name the files, as in xtape classify FOLDER IMAGE" classify "$vit/model"
expect 2 "" "nowhere.png" classify "$vit/model" nowhere.png
head -c 900 "$vit/photo.png" >cut.png
expect 2 "" "cut.png: not a PNG image that can be read: the file is cut off" classify "$vit/model" cut.png
expect 2 "" "--checkpoint needs a run" classify "$vit/model" cut.png --checkpoint best
cp -r "$vit/model" vit && rm vit/preprocessor_config.json
expect 2 "" "vit has no preprocessor_config.json, which says how images are prepared" classify vit "$vit/photo.png"
cp "$vit/bicubic/preprocessor_config.json" vit
expect 2 "" "photo.png, prepared as preprocessor_config.json says, has 3 channels of 30 x 17 .height x width., and the model reads 3 channels of 24 x 24" classify vit "$vit/photo.png"
echo '{"size": 24, "image_mean": [1, 2, 3], "do_solarize": true}' >vit/preprocessor_config.json
expect 2 "" "vit/preprocessor_config.json, line 1: 'do_solarize' is a way of preparing images that is not supported" classify vit "$vit/photo.png"
ppm() { printf 'P6 %s 5 255\n' "$1"; for _ in $(seq $((5 * $1))); do printf "\\x$2\\x$3\\x20"; done; }
for i in $(seq 10); do
  mkdir -p colours/red colours/green
  ppm "$i" "f$((i % 10))" 10 >colours/red/$i.ppm
  ppm "$((i + 3))" 10 "e$((i % 10))" >colours/green/$i.ppm
done
for command in "train --out warm" check; do
  expect 2 "" "schedule: 3 epochs of this data are 3 updates, fewer than the 20 of schedule.warmup" $command vit_finetune \
    --set from="$vit/model" --set data.images=colours
done
holds "a refused recipe leaves no run" [ ! -e warm ]
mkdir -p beside/vit && sed 's|"../vit.json"|"vit"|' "$source/models/recipes/vit_finetune.json" >beside/recipe.json
expect 0 "recipe, data and definition fit" "" check beside/recipe.json --set from="$vit/model" --set data.images=colours --set schedule.warmup=1
further=(--set data.images=colours --set batch.accumulate=1 --set schedule.rate=1e-2 --set schedule.warmup=1 --threads 1)
expect 0 "accuracy 100.00 %$" "parameters, step 0 of" train vit_finetune --from "$vit/model" --out seen "${further[@]}" --set epochs=15
colours=(colours/red/3.ppm colours/green/4.ppm colours/red/9.ppm)
holds "images of any size are labelled" same "$("$xtape" classify seen "${colours[@]}" | cut -f 1)" "red
green
red"
expect 0 "^told$" "" export seen told
holds "what is exported labels as the run does" same "$("$xtape" classify seen "${colours[@]}")" "$("$xtape" classify told "${colours[@]}")"
expect 0 "^greys: step 20 " "parameters" train digits --out greys --set definition="$source/models/vit.json" --set steps=20 --set epochs=null \
  --set data.images="$source/examples/data/digits.safetensors" --set hyper.patch_height=4 --set hyper.d_model=8 --set hyper.heads=2 \
  --set hyper.layers=1 --threads 1
{ printf 'P5 8 8 255\n'; for i in $(seq 10 73); do printf "\\x$i"; done; } >grey.pgm
expect 0 "^told-greys$" "" export greys told-greys
holds "what is exported of grey images labels as the run does" same "$("$xtape" classify greys grey.pgm)" "$("$xtape" classify told-greys grey.pgm)"
sed -i '/image_mean/,/]/c\  "image_mean": [0.1, 0.2, 0.3],' told-greys/preprocessor_config.json
expect 2 "" "told-greys/preprocessor_config.json, line [0-9]+: 'image_mean' must be a number, or one for each channel, of which the model reads 1, not 3" \
  classify told-greys grey.pgm
expect 2 "" "of another shape: classifier.bias is .3,., the model's is .2,." train vit_finetune --from "$vit/model" --out unseen "${further[@]}" \
  --set 'initialise=[]'
expect 2 "" "colours/.*: all must have one size, or be resized to one" train vit_finetune --from "$vit/model" --out unseen "${further[@]}" \
  --set 'data.resize={}'
expect 2 "" "needs both 'height' and 'width', or neither" train vit_finetune --from "$vit/model" --out unseen "${further[@]}" --set data.resize.height=3
expect 2 "" "'data.resize.shorter' replaces 'height' and 'width'" train vit_finetune --from "$vit/model" --out unseen "${further[@]}" \
  --set 'data.resize={"height": 3, "width": 4, "shorter": 5}'
expect 2 "" "must be \"lanczos\", \"bilinear\" or \"bicubic\"" train vit_finetune --from "$vit/model" --out unseen "${further[@]}" \
  --set 'data.resize={"filter": "box"}'
finish
