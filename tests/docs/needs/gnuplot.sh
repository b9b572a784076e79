command -v gnuplot >/dev/null || { echo "gnuplot is missing"; exit 77; }
