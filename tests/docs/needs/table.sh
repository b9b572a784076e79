# A CSV file whose column y depends on the others.
awk 'BEGIN { print "a,b,y"; for (i = 0; i < 200; ++i) { a = sin(i); b = cos(3 * i); print a "," b "," a * b + 1 } }' >table.csv
