#!/bin/bash
# Recipes on data of every kind: prompts, pairs, labels; pipes, test splits, removed kinds.
# usage: data.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
export OMP_NUM_THREADS=2
recipes=$source/models/recipes

# A prompt is not a target, so only the answer is learnt, and quickly. A pipe and a file give the same result.
for _ in $(seq 8); do for a in 0 1 2; do for b in 0 1 2; do
  echo "$a$b=$(printf '%s\n' $a $b | sort | tr -d '\n')"
done; done; done >sorting.txt
tail -n 9 sorting.txt >sorting_test.txt
sorting=(--set hyper.n_embd=16 --set hyper.n_layer=1 --set hyper.n_head=2 --set data.held_out=9 --set batch.size=9 --set steps=150
  --set evaluate_every=150 --set schedule.warmup=5 --set schedule.rate=0.01 --set data.test_text=sorting_test.txt)
expect 0 "^sorted: step 150 .* exact match 100.00 % of 9$" "step 150 of 150" train "$recipes/sorting.json" --out sorted "${sorting[@]}" \
  --set data.text=sorting.txt
cat sorting.txt | "$xtape" train "$recipes/sorting.json" --out piped "${sorting[@]}" --set data.text=- >out 2>err
holds "training from the standard input equals training from the file" cmp -s {sorted,piped}/checkpoints/00000150/weights.safetensors
expect 0 "^exact_match 1$" "" eval sorted --test
expect 2 "" "nowhere.txt: No such file" eval sorted --test --set data.test_text=nowhere.txt
expect 0 "^21=12$" "" generate sorted --prompt 21= --tokens 9
holds "the length of the rows is in the run" grep -q '"longest_row": 6' sorted/recipe.json
rm sorting.txt
expect 0 "^20=02$" "" generate sorted --prompt 20= --tokens 9
expect 2 "" "sorting.txt: No such file" eval sorted

# Pairs in one file.
for n in $(seq 12 60); do printf '%s\t%s\ta note\n' "$n" "$(rev <<<"$n")"; done >pairs.tsv
reversing=(--set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2 --set hyper.encoder_layers=1 --set hyper.decoder_layers=1
  --set data.held_out=5 --set batch.size=16 --set steps=4 --set evaluate_every=4 --set schedule.warmup=1)
expect 0 "^reversed: step 4 .* exact match [0-9.]+ % of 5$" "step 4 of 4" train "$recipes/reversing.json" --out reversed "${reversing[@]}" \
  --set data.pairs=pairs.tsv
echo "no tab" >>pairs.tsv
expect 2 "" "pairs.tsv, line 50: a row must have 2 fields separated by tabs, got 1" train "$recipes/reversing.json" --out none \
  "${reversing[@]}" --set data.pairs=pairs.tsv

# Labels.
for _ in $(seq 20); do
  printf 'German\tein hund und ein haus\nEnglish\ta dog and a house\nEnglish\tthe house\nGerman\tdas haus\n'
done >labelled.tsv
expect 0 "^classes: step [0-9]+ .* accuracy 100.00 %$" "step" train "$recipes/classify_texts.json" --out classes --set data.table=labelled.tsv \
  --set epochs=20 --set batch.size=8
expect 0 "^accuracy 1$" "" eval classes
expect 2 "" "classes has no test split: give its files with --set data.test_table=FILE" eval classes --test
printf 'ein haus\n\nthe dog\r\nzebra' | "$xtape" classify classes >out 2>err
holds "lines are labelled" [ "$(cut -f 1 out | sed -n 1p)" = German -a "$(cut -f 1 out | sed -n 3p)" = English -a "$(wc -l <out)" = 4 ]
holds "lines have probabilities" awk -F '\t' '$2 < 0.5 || $2 > 1 { exit 1 }' out
expect 2 "" "reversed is not a run on a table with one text and one label per row" classify reversed
expect 2 "" "line 1: the text is not UTF-8" classify classes <<<$'\xff'
holds "the labels are in the run" [ "$(tr -d ' \n' <classes/labels.json)" = '["English","German"]' ]
expect 2 "" "classes: logits.tokens. is .1, 2. for tokens .1, 2., and only .1, 2, vocabulary. continues texts" generate classes --prompt a --tokens 1
printf 'English\tthe dog\n\nein haus\n' | "$xtape" predict classes >out 2>err
holds "predictions of texts, with targets or without" [ "$(cut -f 1 out | tr '\n' ' ')" = "label English $(sed -n 3p out | cut -f 1) German " ]
holds "classify and predict agree" [ "$(tail -n 1 out)" = "$("$xtape" classify classes <<<'ein haus')" ]
expect 2 "" "standard input, line 2: a row must have 2 fields, or without targets 1, got more" predict classes <<<$'a\na\tb\tc'

# Labels of words.
for _ in $(seq 20); do printf 'we O\ncan V\n\nthe O\ncan N\nagain O\n\n'; done >tags.txt
expect 0 "^tagged: step [0-9]+ .* accuracy 100.00 %$" "step" train "$recipes/tag_words.json" --out tagged --set data.tags=tags.txt \
  --set epochs=20 --set batch.size=8
expect 0 "^accuracy 1$" "" eval tagged
printf 'the\ncan\tX\nagain\n\n\nwe O\r\ncan' | "$xtape" predict tagged >out 2>err
holds "words are labelled" [ "$(tr '\t\n' ' /' <out)" = "the O/can N/again O//we O/can V//" ]
holds "blank lines alone are no sentences" [ -z "$("$xtape" predict tagged <<<'')" ]
expect 2 "" "standard input, line 3: a line must be a word, or have 2 fields, not more" predict tagged <<<$'the\n\nwe O O'
holds "a document begins a sentence" [ "$(printf 'the\ncan\n-DOCSTART- O\nwe\ncan' | "$xtape" predict tagged | tr '\t\n' ' /')" = "the O/can N//we O/can V//" ]
expect 2 "" "standard input, line 2: 'New.York' must be one word" predict tagged <<<$'the\nNew\u00a0York'
expect 2 "" "standard input, line 2: the text is not UTF-8" predict tagged <<<$'the\n\xff'
expect 2 "" "tagged: logits.tokens. is .1, 2, [0-9]. for .* the tokenizer has [0-9]+ tokens$" generate tagged --prompt a --tokens 1
expect 2 "" "tagged is not a run on a table with one text and one label per row: use xtape predict" classify tagged <<<'we can'

printf ' \thund\n' | cat labelled.tsv - >unlabelled.tsv
expect 2 "" "unlabelled.tsv, line 81: column 'label': the label is empty" train "$recipes/classify_texts.json" --out none \
  --set data.table=unlabelled.tsv --set data.held_out=2 --set data.split=null
echo "a label alone" >>labelled.tsv
expect 2 "" "labelled.tsv, line 81: a row must have 2 fields" eval classes

# A table without a header, with a label that is missing, and another character between fields.
for _ in $(seq 20); do printf '1;2;low\n3;9;high\n0;1;low\n4;8;high\n'; done >plain.csv
printf '2;3;\n' | cat plain.csv - >gap.csv
plain=(--set data.header=false --set 'data.delimiter=";"' --set data.inputs.label.labels=2 --set hyper.layers=0 --set epochs=30)
expect 0 "^plain: step .* accuracy 100.00 %$" "^2 labels: high, low$" train "$recipes/classification.json" --out plain "${plain[@]}" \
  --set data.arrays=plain.csv
expect 0 "^low" "" predict plain <<<'1;2'
printf '4;9;\n1;1;low\n' >new.csv
expect 0 "^high" "" predict plain new.csv
expect 2 "" "gap.csv, line 81: column '2': the label is empty; remove the row, or set \`missing\`" train "$recipes/classification.json" \
  --out none "${plain[@]}" --set data.arrays=gap.csv
expect 0 "^gap: step .* accuracy 100.00 %$" "^2 labels: high, low$" train "$recipes/classification.json" --out gap "${plain[@]}" \
  --set data.arrays=gap.csv --set data.missing=true
expect 0 "^	nan$" "" predict gap <<<';9'
expect 2 "" "has no column 'lable'; did you mean 'label'\? .columns: a, label.*; name another one with --set data.inputs.label.labels=COLUMN$" train "$recipes/classification.json" --out none --set data.inputs.label.labels=lable \
  --set data.arrays=<(printf 'a,label\n1,b\n')

# Images: a folder for each label, with a bright left or right half.
pgm() { printf 'P5 4 4 255\n'; for _ in 1 2 3 4; do printf "\\x$1\\x$1\\x$2\\x$2"; done; }
for i in $(seq 16); do
  mkdir -p halves/left halves/right
  pgm "e$((i % 8))" "1$((i % 4))" >halves/left/$i.pgm
  pgm "1$((i % 4))" "e$((i % 8))" >halves/right/$i.pgm
done
expect 0 "^halved: step [0-9]+ .* accuracy 100.00 %$" "step" train "$recipes/digits.json" --out halved --set data.images=halves \
  --set data.channels=1 --set data.held_out=8 --set data.crop=0 --set batch.size=8 --set epochs=20
expect 0 "^left	[01]" "" classify halved halves/left/1.pgm
expect 0 "^right	[01]" "" classify halved halves/left/2.pgm halves/right/1.pgm
expect 0 "^label	probability$" "" predict halved halves/left/1.pgm
expect 2 "" "halved is a run on images: name the files" classify halved
printf 'P5 2 1 255\nab' >wide.pgm
expect 2 "" "wide.pgm, prepared as the run's recipe says, has 1 channel of 1 x 2 .height x width., and the model reads 1 channel of 4 x 4" classify halved wide.pgm
expect 2 "" "classes is not a run on images: it reads lines" classify classes halves/left/1.pgm
expect 2 "" "this run has no tokenizer: its data is images" generate halved --prompt a --tokens 1

# Numbers: predictions for tables with and without the target, in any order of the columns.
for i in $(seq 60); do echo "$((i % 7)),$((i % 5)),$((2 * (i % 7) - i % 5))"; done | sed '1i a,b,y' >numbers.csv
expect 0 "^fitted: step [0-9]+ " "step" train "$recipes/regression.json" --out fitted --set data.arrays=numbers.csv --set epochs=1 --set schedule.warmup=0
(head -n 1 numbers.csv; tail -n 2 numbers.csv) | "$xtape" predict fitted >whole 2>err
printf 'b\ta\n\n4\t3\n0\t4\n' >rows.tsv
expect 0 "^y$" "" predict fitted rows.tsv
holds "a prediction for each row, by the names of columns" cmp -s whole out
expect 0 "^y	y.std$" "^note: all samples are equal" predict fitted rows.tsv --mode train --samples 3
expect 2 "" "--samples needs --mode train" predict fitted rows.tsv --samples 3
expect 2 "" "tagged labels words$" predict tagged --mode train
expect 2 "" "line 5: column 'a': 'x' is not a finite number" predict fitted <(cat rows.tsv; printf '1\tx\n')
expect 0 "^fitted: [0-9]+ functions" "" check fitted
python3 -c "
import json, struct
head = json.dumps({'x': {'dtype': 'F32', 'shape': [2, 2], 'data_offsets': [0, 16]}}).encode()
open('rows.safetensors', 'wb').write(struct.pack('<Q', len(head)) + head + struct.pack('<4f', 3, 4, 4, 0))"
expect 0 "^y$" "" predict fitted rows.safetensors
holds "a prediction for each row of arrays" cmp -s whole out
expect 0 "^predict: float32 .2, 1. $(sed -n 2p whole | cut -c 1-5)" "" run fitted predict --in rows.safetensors
(echo a,b; yes 1,2 | head -n 130; echo 1,) | "$xtape" predict fitted >out 2>err
holds "bad numbers in later parts have their line" grep -q "standard input, line 132: column 'b': the value is missing" err
holds "rows before them are predicted" [ "$(wc -l <out)" = 129 ]
expect 2 "" "standard input has no column 'b'" predict fitted <<<$'a\n1'
expect 2 "" "standard input has no column" predict fitted <<<'1,2'
expect 0 "^rows 6$" "" eval fitted

# Files are read and checked before a model's weights are made.
before() { # before FILE: the error about --in FILE, if the program then has taken less than 200 MB
  python3 - "$xtape" "$1" <<'PROGRAM'
import resource, subprocess, sys
made = subprocess.run([sys.argv[1], "run", "gpt2", "logits", "--in", sys.argv[2]], capture_output=True, text=True)
if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200000: print(made.stderr)
PROGRAM
}
holds "a file that is missing is reported at once" grep -q "cannot read 'none.safetensors'" <(before none.safetensors)
holds "a file with other arrays is reported at once" grep -q "has no array 'tokens'" <(before rows.safetensors)
printf '\xef\xbb\xbf21=\n12=\n2\xff=\n' >prompts.txt
expect 2 "" "^xtape: prompts.txt, line 3: the text is not UTF-8 at byte 1" generate sorted --prompts prompts.txt --tokens 3
expect 2 "" "^xtape: prompts.txt, line 3: the text is not UTF-8 at byte 1" bleu prompts.txt prompts.txt
expect 2 "" "^xtape: prompts.txt, line 3: the text is not UTF-8 at byte 1" eval sorted --text prompts.txt
sed -i 3d prompts.txt
expect 0 "^21=12$" "" generate sorted --prompts prompts.txt --tokens 9

# One meaning of rows and numbers: byte-order marks, quotes, blank lines, plus signs, tabs, underflow; plain, in a pipe or compressed.
mark=$'\xef\xbb\xbf'
printf '%s"a","no\nte",b\n\n+3,"x\n""y""\n",4.\n  \n" 4\t",z,1e-400\n\n' "$mark" >quoted.csv
expect 0 "^y$" "" predict fitted quoted.csv
holds "rows over several lines are rows" cmp -s whole out
gzip -k quoted.csv
expect 0 "^y$" "" predict fitted quoted.csv.gz
holds "rows of a compressed table are rows" cmp -s whole out
"$xtape" predict fitted <quoted.csv >out 2>err
holds "rows of the standard input are rows" cmp -s whole out
(echo a,b,c; for _ in $(seq 200); do printf '3,4,"x\n\n"\n'; done) | "$xtape" predict fitted >out 2>err
holds "rows over several lines are whole in parts" [ "$(wc -l <out)" = 201 -a ! -s err ]
expect 2 "" "the standard input is compressed by gzip: give the file's name" predict fitted <quoted.csv.gz
expect 2 "^y$" "standard input, line 3: a quotation mark is not closed" predict fitted <<<$'a,b\n1,2\n3,"4\n5,6'
expect 2 "" "line 2: column 'b': '1_0' is not a finite number: write a decimal number" predict fitted <<<$'a,b\n1,1_0'
expect 2 "" "cannot read the standard input: it is UTF-16" predict fitted < <(printf '\xff\xfea\0,\0b\0\n\0')
expect 2 "" "cannot read nowhere.csv: No such file" predict fitted nowhere.csv
expect 2 "" "cannot read nowhere.csv: No such file" predict nowhere nowhere.csv
for n in $(seq 20); do printf '%s,"a\n""b",%s\n\n' "+$n" "$((2 * n))"; done | sed "1s/^/$mark/" | gzip >marked.csv.gz
expect 0 "^marked: step [0-9]+ " "step" train "$recipes/regression.json" --out marked --set data.arrays=marked.csv.gz --set data.header=false \
  --set 'data.inputs={"x": [0], "y": [2]}' --set epochs=1 --set schedule.warmup=0
printf '\xef\xbb\xbfGerman\tein hund\n\nEnglish\ta dog\n\n' >marked.tsv
cat marked.tsv labelled.tsv | grep -v "a label alone" >all.tsv
expect 0 "^marked_labels: step" "^2 labels: English, German$" train "$recipes/classify_texts.json" --out marked_labels \
  --set data.table=all.tsv --set epochs=1 --set batch.size=8
expect 0 "^(German|English)	" "" classify classes < <(printf '\xef\xbb\xbfein haus\n')
holds "a byte-order mark is no text" [ "$(cat out)" = "$("$xtape" classify classes <<<'ein haus')" ]
holds "a mark alone is no line" [ -z "$(printf '\xef\xbb\xbf' | "$xtape" classify classes)" ]
printf '%s' "$mark" | cat - tags.txt >marked_tags.txt
expect 0 "^marked_tags: step" "labels: N, O, V$" train "$recipes/tag_words.json" --out marked_tags --set data.tags=marked_tags.txt \
  --set epochs=1 --set batch.size=8
holds "a byte-order mark is no part of a word" [ "$(grep -c $'\xef\xbb\xbf' marked_tags/tokenizer.json)" = 0 ]
printf 'a,b\xbb,y\n' >latin.csv
for n in $(seq 40); do echo "$n,2,3"; done >>latin.csv
expect 2 "" "latin.csv, line 1: the name of column 2, 'b.xBB': the text is not UTF-8 at byte 1" train "$recipes/regression.json" \
  --out none --set data.arrays=latin.csv
expect 2 "" "the path of a run must be UTF-8, because its files have it: none.xE9" train "$recipes/regression.json" \
  --out none$'\xe9' --set data.arrays=numbers.csv
printf '\n\nw\xe9\n' >words.txt
expect 2 "" "words.txt: line 1 of the vocabulary: there is no word" train "$recipes/tag_words.json" --out none --set data.tags=tags.txt \
  --set 'tokenizer={"kind": "words", "vocabulary": "words.txt"}'
expect 0 "^early: step 10 " "ended early .patience 1.: no evaluation after step 5 was better; --checkpoint best has its weights" \
  train "$recipes/regression.json" --out early --set data.arrays=numbers.csv --set patience=1 --set evaluate_every=5 \
  --set schedule.kind=constant --set schedule.rate=0 --set schedule.warmup=0 --set hyper.normalised=false
expect 0 '"name": "regression"' "" show regression
expect 0 '"steps": 70' "" show regression --set steps=70
expect 2 "" "is a recipe" show regression --tape loss
expect 0 "search.beam_size. . integer, 1 to 4096 . .1. . yes . " "" show --keys
expect 2 "" "DEFINITION excludes --keys" show regression --keys
expect 2 "" "reversed is a run on pairs of texts: xtape translate translates" predict reversed
expect 2 "" "sorted is a run on texts: xtape generate continues them" predict sorted
finish
