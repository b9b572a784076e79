# A small tape.
cat >small.json <<'JSON'
{"xtape": 2, "name": "small", "model": {"functions": {"f": {"inputs": {"x": "float [b, 3]"}, "result": "sum(x * 0.5)"}}}}
JSON
xtape show small.json --tape f --with b=2 --save small
