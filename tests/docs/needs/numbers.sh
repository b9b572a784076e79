# The run of scripts/demo.sh, whose training has only begun.
mkdir -p build-demo/src/cli
ln -s "$PWD/build/src/cli/xtape" build-demo/src/cli
build/examples/data/number_words build-demo/number-words
xtape train number_words --set data.folder=build-demo/number-words --set 'measure=[]' --out build-demo/numbers
