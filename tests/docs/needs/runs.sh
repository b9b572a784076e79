# A run that translates, and one that continues texts, of tiny models.
. "$NEEDS/shakespeare.sh"
for i in $(seq 40); do printf 'ein mann mit einem hut %d .\ta man with a hat %d .\n' $i $i; done >pairs.tsv
xtape train number_words --set data.pairs=pairs.tsv --set data.validation_pairs=pairs.tsv --out runs/de_en \
  --set hyper.d_model=16 --set hyper.d_ff=16 --set hyper.heads=2 --set hyper.encoder_layers=1 --set hyper.decoder_layers=1 \
  --set search.max_length=8
