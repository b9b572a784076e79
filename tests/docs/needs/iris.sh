cp "$SOURCE/examples/data/iris.csv" .
