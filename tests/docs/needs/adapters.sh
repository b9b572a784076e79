# A folder of adapters beside its base, as PEFT saved it; a run of adapters.
cp -r "$SOURCE/tests/golden/data/llama/nested" llama-folder
cp -r "$SOURCE/tests/golden/data/adapters/llama" llama-adapter
for _ in $(seq 30); do echo "a rolling stone gathers no moss."; done >moss.txt
xtape train gpt2_lora_finetune --set definition=llama_lora --from llama-folder --set data.text=moss.txt --set data.block_size=16 \
  --set steps=20 --out runs/low
