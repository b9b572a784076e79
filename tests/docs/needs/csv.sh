# A CSV file of wines.
awk 'BEGIN { print "alcohol,sugar,quality"; for (i = 0; i < 100; ++i) print 9 + sin(i) "," 2 + cos(3 * i) "," 5 + sin(i) }' >wine.csv
