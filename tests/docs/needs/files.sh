# What the commands of the README read.
cp models/llama.json my_model.json
sed -i 's/"d_model": 768, "d_ff": 2048, "layers": 12/"d_model": 24, "d_ff": 32, "layers": 1/; s/"vocab_size": 32000/"vocab_size": 20/' my_model.json
for a in 0 1 2; do for b in 0 1 2; do for c in $(seq 30); do echo "$a$b=$(printf '%s\n' $a $b | sort | tr -d '\n')"; done; done; done >sorting.txt
for _ in $(seq 40); do printf 'German\tein hund und ein haus\nEnglish\ta dog and a house\n'; done >labelled.tsv
printf 'ein haus\nthe dog\n' >texts.txt
build/examples/data/sums sums
printf 'ein mann\n' >sentences.de
printf 'a man\n' >references.en
cp sentences.de lines.txt
python3 - <<'END'
import json, struct
shape = [1, 4]
header = {name: {"dtype": "I64", "shape": shape, "data_offsets": [32 * i, 32 * i + 32]} for i, name in enumerate(("tokens", "targets"))}
text = json.dumps(header).encode()
with open("arrays.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text + struct.pack("<8q", *range(8)))
END
