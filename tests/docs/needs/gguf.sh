# A GGUF file as the package gguf wrote it, and a text.
cp "$SOURCE/tests/golden/data/gguf/llama_nested.gguf" llama.gguf
for _ in $(seq 30); do echo "a rolling stone gathers no moss."; done >text.txt
