for i in $(seq 200); do
  printf 'we\tPRON\nmay\tVERB\nmeet\tVERB\n\nin\tADP\nmay\tNOUN\nwe\tPRON\nmeet\tVERB\n\n'
done >tags.txt
