. "$NEEDS/iris.sh"
cut -d, -f1-4 iris.csv >flowers.csv
bin/xtape train regression --set data.arrays=flowers.csv --set 'data.inputs.y=["petal_width"]' --out runs/petals
