# The programs of examples, which the suite install builds.
[ -n "${EXAMPLES-}" ] || { echo "the suite install builds the examples and runs them"; exit 77; }
for source in examples/*.cpp; do
  name=$(basename "$source" .cpp)
  [ ! -x "$EXAMPLES/$name" ] || ln -s "$EXAMPLES/$name" .
done
