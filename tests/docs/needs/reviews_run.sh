. "$NEEDS/reviews.sh"
tail -n +2 reviews.csv | sed 's/^[0-9]*,//; s/,/\t/; s/"//g' | head -n 80 >reviews.tsv
bin/xtape train classify_texts --set data.table=reviews.tsv --out runs/reviews --set steps=20
