for name in training validation; do for i in $(seq 20); do printf 'vinte e um %d\ttwenty-one %d\n' $i $i; done >$name.tsv; done
