# One training on one process and on two.
. "$NEEDS/mpi.sh"
. "$NEEDS/tiny_gpt.sh"
small="tiny_gpt_recipe.json --set batch.shards=2 --set steps=20"
bin/xtape train $small --out runs/one
mpirun -n 2 bin/xtape train $small --out runs/two
