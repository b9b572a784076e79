# Folders of the Hugging Face Hub; that of GPT-2 is a run exported, whose rows are as long as GPT-2's.
golden=$SOURCE/tests/golden/data
cp -r "$golden/llama/nested" llama-folder
cp -r "$golden/t5/relu" t5-folder
cp -r "$golden/encoders/classes" bert-folder && cp "$golden"/t5/relu/{spiece.model,tokenizer_config.json} bert-folder
cp -r "$golden/vit/model" vit-folder && cp "$golden"/vit/{photo,grey}.png .
for _ in $(seq 2000); do echo "the rain in spain stays mainly in the plain."; done >notes.txt
xtape train shakespeare_char --set data.text=notes.txt --out gpt2-run --set hyper.n_embd=16 --set hyper.n_layer=1 \
  --set data.block_size=1024 --set hyper.bias=true \
  --set "tokenizer={\"kind\": \"gpt2\", \"vocab\": \"$golden/gpt2_small/vocab.json\", \"merges\": \"$golden/gpt2_small/merges.txt\"}"
xtape export gpt2-run gpt2-folder
cp "$golden"/gpt2_small/* gpt2-folder
