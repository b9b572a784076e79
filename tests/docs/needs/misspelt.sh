sed -i 's/masked_fill(scores,/masked_fill(scors,/' models/gpt2.json
