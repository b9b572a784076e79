#!/bin/bash
# The commands that draw pictures: their content, valid SVG, and errors.
# usage: pictures.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export OMP_NUM_THREADS=1
sound() { python3 -c 'import sys, xml.dom.minidom as xml; xml.parse(sys.argv[1])' "$1"; }
# Prints every text of the picture, one per line, without XML escapes.
texts() {
  python3 -c '
import sys, xml.dom.minidom as xml
for text in xml.parse(sys.argv[1]).getElementsByTagName("text"):
    print("".join(node.data for node in text.childNodes if node.nodeType == node.TEXT_NODE).strip())' "$1"
}
shows() { # shows PICTURE TEXT…
  local picture=$1 all
  shift
  all=$(texts "$picture") || return 1
  for text in "$@"; do grep -q -x -F -e "$text" <<<"$all" || { echo "$picture does not show: $text"; return 1; }; done
}
how_often() { texts "$1" | grep -c -x -F -e "$2"; }

# Words with all characters that are special in XML.
cat >words.src <<'END'
say "hello" \ a_b x^2 {y} @home &amp; <b> it's 100%d $HOME `ls` çà ▁x #
END
tr ' ' '\n' <words.src >words.tgt
long=$(printf 'é%.0s' $(seq 800))
for _ in $(seq 8); do cat words.src; echo "$long"; done >train.src
cp train.src train.tgt
recipe=$source/models/recipes/number_words.json
small=(--set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2 --set hyper.encoder_layers=1
  --set hyper.decoder_layers=2 --set 'measure=[]' --set steps=4 --set evaluate_every=2 --set schedule.warmup=1
  --set batch.size=4 --set epochs=100 --set search.max_length=12 --set 'tokenizer={"kind": "words"}')
data='{"kind": "pairs", "folder": ".", "source": "train.src", "target": "train.tgt", "validation_source": "words.src",
  "validation_target": "words.src"}'
expect 0 "^odd: step 4 " "step 4 of 4" train "$recipe" --out odd "${small[@]}" --set data="$data"

expect 0 "^observed: step 4 " "step 4 of 4" train "$recipe" --out observed "${small[@]}" --set data="$data" --set statistics_every=2

expect 0 "" "" plot observed --statistics --out statistics.svg
holds "the picture of statistics is valid" sound statistics.svg
mkdir unnamed && cd unnamed || exit 1
expect 0 "^statistics.svg$" "" plot ../observed --statistics
expect 0 "^learning_rate.svg$" "" plot ../observed --metric learning_rate
expect 0 "^attention.svg$" "" attention ../odd --source 'say it'\''s'
holds "pictures without a name have one of their own" eval 'sound statistics.svg && sound learning_rate.svg && sound attention.svg'
cd ..
holds "modules and kinds are named" shows statistics.svg "largest value" "largest gradient" "share of zeros" "share of masked rows" \
  update encoder.0.self_attention
holds "modules are named once" [ "$(how_often statistics.svg encoder.0.self_attention)" = 1 ]
sed 's/"largest":[^,]*/"largest":null/' observed/metrics.jsonl >spoilt.jsonl
cp -r observed spoilt && mv spoilt.jsonl spoilt/metrics.jsonl
expect 0 "" "" plot spoilt --statistics --out spoilt.svg
holds "numbers that are not finite are red" eval 'grep -q d55e00 spoilt.svg && shows spoilt.svg "not finite" && ! grep -q d55e00 statistics.svg'
expect 2 "" "odd has no statistics of modules: train with --statistics" plot odd --statistics --out none.svg
expect 2 "" "--statistics draws one run" plot odd observed --statistics --out none.svg
expect 2 "" "takes no --metric and no --log" plot observed --statistics --log --out none.svg
expect 2 "" "takes no --metric and no --log" plot observed --statistics --metric loss --out none.svg
mkdir strange && cp odd/recipe.json strange
echo '{"step":1,"statistics":{"h":{"height":3}}}' >strange/metrics.jsonl
expect 2 "" "strange has no statistics that are drawn: largest, gradient_largest, zeros" plot strange --statistics --out none.svg
expect 0 " arena$" "" plan odd --out plan.svg
holds "what lives when is drawn" shows plan.svg step "MiB of the arena" "backward part" "No step runs again."
holds "the largest buffers are named" grep -q -E "1: .*[a-z_]+.*, [0-9.]+ (bytes|KiB|MiB), steps [0-9]+ to [0-9]+" plan.svg
wide=(--set hyper.d_model=64 --set batch.size=64 --set data="$data")
expect 0 " arena$" "" plan "$recipe" "${small[@]}" "${wide[@]}"
least=$(grep -oE "^ +[0-9.]+ MiB" out | tail -1 | tr -dc 0-9.)
expect 0 " arena$" "" plan "$recipe" "${small[@]}" "${wide[@]}" --out little.svg --memory "$(python3 -c "print($least + 0.1)") MiB"
holds "what runs again is marked" grep -q -E "[0-9]+ steps? runs? again, shaded in grey" little.svg
bar_differs() { # the labels that begin farthest to the right are those of the colour bar
  python3 - "$1" <<'END'
import re, sys
labels = [(float(x), text) for x, text in re.findall(r"<text x='([0-9.]+)'[^>]*>([0-9.]+)</text>", open(sys.argv[1]).read())]
right = max(x for x, _ in labels)
bar = [text for x, text in labels if x == right]
assert len(bar) >= 2 and len(set(bar)) == len(bar), labels
END
}
expect 0 "the largest relative error" "" shadow odd --out errors.svg
holds "the errors are drawn" shows errors.svg "relative error" "added by the node" "of the value"
expect 0 "" "" attention odd --source "$(cat words.src)" --target "$(cat words.src)" --out odd.svg
holds "the picture of special words is valid" sound odd.svg
holds "the labels of a map's colour bar differ" bar_differs odd.svg
mapfile -t words <words.tgt
holds "every special word is shown literally" shows odd.svg "${words[@]}" "cross attention, layer 2 of 2, mean of 2 heads"
holds "words are on both axes" [ "$(how_often odd.svg '"hello"')" = 2 -a "$(how_often odd.svg '</s>')" = 2 -a "$(how_often odd.svg '<s>')" = 1 ]
expect 0 "" "" attention odd --source 'say it'\''s' --out own.svg --checkpoint best
holds "without a target, the run's translation is drawn" shows own.svg source target "it's" "<s>"
expect 0 "" "" attention odd --source "say x^2" --target "" --out all.svg --head all --layer 1
holds "every head has its map" shows all.svg "head 1" "head 2" "cross attention, layer 1 of 2"
holds "an empty target is its end token" [ "$(how_often all.svg '</s>')" = 3 ]
expect 0 "" "" attention odd --source "say x^2" --target "# say" --which decoder --head 2 --out decoder.svg
holds "the decoder attends to the tokens that it reads" \
  [ "$(how_often decoder.svg '<s>')" = 2 -a "$(how_often decoder.svg '</s>')" = 0 -a "$(how_often decoder.svg '#')" = 2 ]
expect 0 "" "" attention odd --source "say x^2" --target "# say" --which encoder --out encoder.svg
holds "the encoder attends to the source" [ "$(how_often encoder.svg 'x^2')" = 2 -a "$(how_often encoder.svg '#')" = 0 ]
expect 0 "" "" attention odd --source "$long unheard" --target say --out long.svg
holds "long words are cut, unknown ones named" shows long.svg "$(printf 'é%.0s' $(seq 30))…" "<unk>"

# A text of characters: a space, a line end, and a character that is not allowed in XML.
for _ in $(seq 60); do printf 'the rain\001\n'; done >text.txt
expect 0 "text: step 2 " "step 2 of 2" train "$source/models/recipes/shakespeare_char.json" --out text --set data.text=text.txt \
  --set steps=2 --set schedule.warmup=1 --set data.block_size=16 --set hyper.n_embd=16 --set hyper.n_layer=1
expect 0 "" "" attention text --source "$(printf 'the\001\nt')" --out text.svg
holds "what cannot be seen has a picture" shows text.svg t h e ␁ ␊ text
holds "the picture of a text is sound" sound text.svg

# Errors leave no picture.
expect 2 "" "is not a run" attention none --source say --out no.svg
expect 2 "" "there is no attention 'dekoder'; did you mean 'decoder'\?; this model has cross, encoder, decoder" \
  attention odd --source say --which dekoder --out no.svg
expect 2 "" "--layer must be 1 to 2" attention odd --source say --layer 3 --out no.svg
expect 2 "" "--head must be 1 to 2, because this attention has 2 heads; got 3" attention odd --source say --head 3 --out no.svg
expect 2 "" "must be mean, all or a number, not 'first'" attention odd --source say --head first --out no.svg
expect 2 "" "the source is empty" attention odd --source "" --out no.svg
expect 2 "" "not UTF-8" attention odd --source "$(printf '\xff')" --out no.svg
expect 2 "" "has no target" attention text --source t --target h --out no.svg
expect 2 "" "pictures are SVG files: the name must end in .svg, not 'no.png'" attention odd --source say --out no.png
expect 2 "" "rsvg-convert -f pdf PICTURE.svg -o PICTURE.pdf converts them" plan odd --out no.pdf
expect 2 "" "pictures are SVG files" shadow odd --out no
expect 2 "" "cannot write 'missing/no.svg'" attention odd --source say --out missing/no.svg
cp -r odd without
sed -i '/"attention": {$/{N;s/"attention"\(.*"about"\)/"looks"\1/}' without/definition.json
expect 2 "" "has no function 'attention'" attention without --source say --out no.svg

# Curves.
expect 0 "" "" plot odd --out loss.svg
holds "the loss is drawn" shows loss.svg update loss training validation
holds "the best evaluation is marked" grep -q -E "^best: [0-9.]+ at update [24]$" <(texts loss.svg)
cp -r odd running
printf '{"step":5,"lo' >>running/metrics.jsonl
expect 0 "" "" plot running odd text --log --out several.svg
holds "the legend names the runs" shows several.svg "running, training" "odd, training" "odd, validation" "text, validation"
expect 0 "" "" plot odd ./running/ --metric learning_rate --out rate.svg
holds "a metric of updates is drawn" shows rate.svg "learning rate" odd running
expect 0 "" "" plot odd --metric perplexity --out perplexity.svg
holds "a metric of evaluations is drawn" shows perplexity.svg perplexity
expect 0 "" "" plot odd running --metric gradient_norm --out norm.svg
mkdir other && cp -r odd other
expect 0 "" "" plot odd other/odd running --out equal.svg
holds "runs of the same name are told apart" shows equal.svg "odd, training" "other/odd, training" "running, training"
expect 2 "" "'odd' is given twice" plot odd running odd --out no.svg
for picture in loss several rate perplexity norm; do holds "$picture.svg is sound" sound $picture.svg; done
mkdir "$(printf 'it'\''s\nodd')" && cp odd/metrics.jsonl odd/recipe.json it*
expect 0 "" "" plot odd it* --out "a 'name'.svg"
holds "a run's name stands as it is" shows "a 'name'.svg" "it's␊odd, training"
# Several losses, and a best evaluation that the recipe chooses: not that of the lowest loss.
mkdir chosen
echo '{"best": "accuracy on far"}' >chosen/recipe.json
for step in 1 2; do
  echo '{"step":'$step',"first":5,"second":0.5,"learning_rate":0.1}'
  echo '{"step":'$step',"validation_loss":'$((4 - step))',"tokens":2,"validation_first":'$((4 - step))',"validation_second":7,"accuracy on far":0.'$((9 - step))'}'
done >chosen/metrics.jsonl
expect 0 "" "" plot chosen --out chosen.svg
holds "each loss has its curves" shows chosen.svg "first, second" "first, training" "first, validation" "second, training"
holds "the best is that of the recipe" shows chosen.svg "first, best: 3 at update 1" "second, best: 7 at update 1"
expect 2 "" "odd has no metric 'accuracy on far'" plot chosen odd --metric "accuracy on far" --out sets.svg
expect 0 "" "" plot chosen --metric "accuracy on far" --out sets.svg
holds "a measure of a further set is drawn" shows sets.svg "accuracy on far" "best: 0.8 at update 1"
expect 2 "" "odd has no metric 'perplexty'; did you mean 'perplexity'\?; it has loss, learning_rate" \
  plot odd --metric perplexty --out no.svg
expect 2 "" "none is not a run: it has no metrics.jsonl" plot odd none --out no.svg
rm it*/metrics.jsonl
expect 2 "" "has no metrics: it has not been trained yet" plot it* --out no.svg
printf '{"step":1,"lo' >running/metrics.jsonl
expect 2 "" "running has no metrics: no update has been recorded" plot running --out no.svg
echo '{"step":1,"loss":0}' >running/metrics.jsonl
expect 2 "" "needs values above 0, but 'loss' in running has none" plot running --log --out no.svg
expect 0 "" "" plot running --out one.svg
mkfifo pipe.svg
timeout 60 cat pipe.svg >piped.svg &
expect 0 "" "" plot running --out pipe.svg
wait $!
holds "a pipe gets what a file gets, and stays a pipe" [ -p pipe.svg -a "$(cat piped.svg)" = "$(cat one.svg)" ]
for step in -1 -9223372036854775808 18446744073709551615 1.5 '"1"'; do
  printf '{"step":1,"loss":3}\n{"step":%s,"loss":1}\n' "$step" >running/metrics.jsonl
  expect 2 "" "running/metrics.jsonl, line 2: this is not a measurement" plot running --out no.svg
done
echo '{"step":1,"loss":0}' >running/metrics.jsonl
sed -i 1s/loss/lo\"ss/ running/metrics.jsonl
echo '{"step":2,"loss":1}' >>running/metrics.jsonl
expect 2 "" "running/metrics.jsonl, line 1: this is not a measurement" plot running --out no.svg

# A NaN, as in README.md. The picture names files without their folders.
cp "$source"/examples/data/entropy*.json .
for _ in {1..100}; do echo "ROMEO: is the day so young?"; done >text.txt
expect 1 "" "-inf in #18 log" train entropy_recipe.json --out entropy
expect 0 "where it came from" "" replay entropy/capsule --out nan.svg
holds "the picture of the NaN is that of README.md" cmp nan.svg "$source/docs/images/nan.svg"
holds "its title is the failure" shows nan.svg "-inf in log: loss (entropy.json, function 'loss', line 21)" "softmax, line 20" "log, line 21" "not finite"
expect 0 "where it came from" "" replay entropy/failed_play --out whole.svg
holds "the whole play has the same picture" cmp whole.svg nan.svg

# Capsules from elsewhere.
spoil() { # spoil NAME EXPRESSION: a copy of the capsule, of which Python changes capsule.json (c)
  cp -r entropy/capsule "$1"
  python3 -c 'import json, sys; c = json.load(open(sys.argv[1])); exec(sys.argv[2]); json.dump(c, open(sys.argv[1], "w"))' "$1/capsule.json" "$2"
}
spoil far 'c["failure"]["element"][-1] = 1 << 40'
expect 2 "" "far/capsule.json, line .*: no output has an element \[" replay far --out no.svg
spoil deep 'c["failure"]["element"] += [0, 0, 0]'
expect 2 "" "no output has an element \[" replay deep --out no.svg
spoil many 'c["failure"]["range"]["nan"] = (1 << 63) - 1'
expect 2 "" "there are more zeros, NaN and infinities than elements" replay many --out no.svg
cp -r entropy/capsule empty && python3 - <<'END'
# Outputs with elements, and an operand that has none but the same last axes.
import json, struct
nan = [float("nan")] * 24
site = {"occurrence": 0, "key": "0000000000000000"}
def parameter(i, name, shape):
    return {"node": i, "op": "parameter", "name": name, "outputs": [{"dtype": "float32", "shape": shape}], "array": name, "site": site}
tape = {"format": "xtape tape", "version": 1, "tape": {"mode": "train", "default_dtype": "float32", "nodes": [
    parameter(0, "full", [2, 3, 4]), parameter(1, "none", [0, 3, 4])]}, "outputs": {"full": [0, 0]}}
json.dump(tape, open("empty/tape.json", "w"))
header = json.dumps({"full": {"dtype": "F32", "shape": [2, 3, 4], "data_offsets": [0, 96]},
                     "none": {"dtype": "F32", "shape": [0, 3, 4], "data_offsets": [96, 96]}}).encode()
open("empty/arrays.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + struct.pack("<24f", *nan))
capsule = json.load(open("empty/capsule.json"))
capsule["failure"]["element"] = [1, 2, 3]
json.dump(capsule, open("empty/capsule.json", "w"))
END
expect 0 "where it came from" "" replay empty --out empty.svg
holds "an operand without elements is not drawn" eval 'shows empty.svg full && ! shows empty.svg none >/dev/null'
cp "$recipe" plan_recipe.svg
expect 2 "" "--out plan_recipe.svg would replace the input './plan_recipe.svg'" plan ./plan_recipe.svg --out plan_recipe.svg
expect 2 "" "--out plan_recipe.svg would replace the input" shadow ./plan_recipe.svg --out plan_recipe.svg
holds "an input is left alone" cmp plan_recipe.svg "$recipe"
expect 2 "" "'odd' is a run, which takes no --seed" shadow odd --weights bfloat16 --seed 3

# The same data gives the same bytes, and a failure keeps the picture that is there.
expect 0 "" "" plot odd text --metric loss --out again.svg
expect 0 "" "" plot odd text --metric loss --out once_more.svg
holds "the same picture has the same bytes" cmp again.svg once_more.svg
expect 2 "" "has no metric" plot odd --metric none --out again.svg
holds "a failure keeps the existing picture" cmp again.svg once_more.svg
holds "failures leave nothing behind" [ -z "$(ls -A | grep -E '^\.|no\.|tmp')" ]
finish
