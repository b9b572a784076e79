{ echo id,label,text; for i in $(seq 600); do echo "$i,good,\"a fine, long evening\""; echo "$i,bad,a dull one"; done; } >reviews.csv
