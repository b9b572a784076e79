# The run of scripts/demo.sh, whose training has only begun.
build/examples/data/number_words build-demo/number-words
bin/xtape train number_words --set data.folder=build-demo/number-words --set 'measure=[]' --out build-demo/numbers
