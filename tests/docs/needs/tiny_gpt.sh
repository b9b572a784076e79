# The definition of the tutorial, its recipe, and a text of one line a hundred times.
cp "$SOURCE"/examples/data/tiny_gpt*.json .
for _ in $(seq 100); do echo "ROMEO: is the day so young?"; done >text.txt
