build/examples/data/sums sums
