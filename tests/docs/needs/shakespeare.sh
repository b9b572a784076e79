for _ in $(seq 100); do echo "ROMEO: is the day so young?"; done >text.txt
xtape train shakespeare_char --set data.text=text.txt --out runs/shakespeare --set hyper.n_embd=16 --set hyper.n_layer=1 \
  --set data.block_size=32
