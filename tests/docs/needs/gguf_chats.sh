# A file of chats, and a small Llama in a GGUF file whose rows are whole blocks of 256 numbers.
for _ in $(seq 12); do
  echo '{"messages": [{"role": "user", "content": "Is it raining?"}, {"role": "assistant", "content": "Yes, take a coat."}]}'
  echo '{"messages": [{"role": "user", "content": "What is a moss?"}, {"role": "assistant", "content": "A small plant."}]}'
done >chats.jsonl
xtape train chat_finetune --set data.chats=chats.jsonl --set data.template=llama2 --set data.pack=64 --set epochs=null --set steps=2 --set schedule.warmup=1 \
  --set tokenizer.kind=saved --set tokenizer.path="$SOURCE/tests/golden/data/llama/nested" \
  --set 'hyper={"vocab_size": {"from": "vocabulary"}, "d_model": 256, "d_ff": 256, "layers": 1, "heads": 4, "tied": true, "max_positions": 128}' \
  --out runs/made >/dev/null 2>&1
xtape export runs/made model-Q4_K.gguf --quantise Q4_K >/dev/null
rm -r runs
