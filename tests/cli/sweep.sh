#!/bin/bash
# The command sweep: grids, killed and continued sweeps, halving, budgets. usage: sweep.sh PROGRAM SOURCE_ROOT
source "$(dirname "$0")/frame.sh" "$@"
python3 -c '
import math
print("x1,x2,y")
for i in range(300):
    a, b = math.sin(i * 0.7), math.cos(i * 1.3)
    print(f"{a:.4f},{b:.4f},{a * b + 0.5 * a:.4f}")' >table.csv
small=(--set data.arrays=table.csv --set epochs=null --set patience=null --set steps=40 --set evaluate_every=20 --set checkpoint_every=10
  --set schedule.warmup=1 --threads 1)
grid=(--grid schedule.rate=1e-2,1e-3,1e-4,1e-5 --grid "optimizer.betas=[0.9,0.99],[0.8,0.9]" --grid hyper.width=4,8)
weights() { cat "$1"/*/checkpoints/00000040/weights.safetensors | cksum; } # weights SWEEP: of all its runs

expect 0 "^\| run \| .schedule.rate. \| .optimizer.betas. \| .hyper.width. \| validation_loss \| at step \| steps \|$" \
  "whole/16 schedule.rate=1e-5 optimizer.betas=\[0.8,0.9\] hyper.width=8: step 40" \
  sweep regression "${small[@]}" "${grid[@]}" --out whole
holds "sixteen runs" [ "$(grep -c '^| [0-9]' whole/table.md)" = 16 ]
holds "the best first" same "$(grep '^| [0-9]' whole/table.md)" "$(grep '^| [0-9]' whole/table.md | sort -t'|' -g -k6)"
losses() { python3 - "$1" <<'P'
import json, sys, glob, os
for run in sorted(glob.glob(os.path.join(sys.argv[1], "[0-9]*"))):
    found = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
    best = min(each["validation_loss"] for each in found if "validation_loss" in each)
    print(os.path.basename(run), f"{best:.6g}")
P
}
holds "with the best loss of each" same "$(losses whole | sort)" \
  "$(sed -n 's/^| \([0-9]*\) |.*| \([^|]*\) | [0-9]* | 40 |$/\1 \2/p' whole/table.md | sort)"
needs "gnuplot" command -v gnuplot
holds "a picture" is_in "<svg" whole/sweep.svg
needs_nothing

# Killed at any time, and continued by the same command.
"$xtape" sweep regression "${small[@]}" "${grid[@]}" --out killed >out 2>err &
sweeping=$!
has_run() { [ -e "killed/$1/metrics.jsonl" ]; } # has_run NUMBER
wait_until has_run 05
kill -KILL $sweeping 2>/dev/null
wait $sweeping 2>/dev/null
continued() { "$xtape" sweep regression "${small[@]}" "${grid[@]}" --out killed >out 2>err; }
holds "a killed sweep continues" continued
holds "a killed sweep has the table of a whole one" same "$(cat whole/table.md)" "$(cat killed/table.md)"
holds "and its weights" same "$(weights whole)" "$(weights killed)"
expect 0 "^\| [0-9]+ \|" "" sweep regression "${small[@]}" "${grid[@]}" --out killed
holds "once more changes nothing" same "$(weights whole)" "$(weights killed)"

# Successive halving.
halved() { sed 's/, failed//' "$1/table.md" | awk -F'|' '/^\| [0-9]/ {print $(NF - 1)}' | sort -n | uniq -c | tr -s ' \n' ' '; }
expect 0 "^\| [0-9]+ \|" "step 5 " sweep regression "${small[@]}" "${grid[@]}" --halving 2 --out half
holds "half of the trials go on each time" same " 8 5 4 10 2 20 2 40 " "$(halved half)"
first=$(ls half | grep -c '^[0-9]')
holds "all have a run" [ "$first" = 16 ]
for run in half/*/; do
  [ -e "$run/checkpoints/00000040" ] || continue
  holds "a training in parts has the bits of a whole one" cmp "$run/checkpoints/00000040/weights.safetensors" \
    "whole/$(basename "$run")/checkpoints/00000040/weights.safetensors"
done
table=$(cat half/table.md)
expect 0 "^\| [0-9]+ \|" "" sweep regression "${small[@]}" "${grid[@]}" --halving 2 --out half
holds "halving again changes nothing" same "$table" "$(cat half/table.md)"

# A training that fails leaves the others.
expect 0 "failed" "is not finite|would make" sweep regression "${small[@]}" --grid schedule.rate=1e-3,1e30 --out fails
holds "one has failed" [ "$(grep -c failed fails/table.md)" = 1 ]

expect 0 "the budget is spent" "" sweep regression "${small[@]}" "${grid[@]}" --budget 0.000001s --out short
expect 2 "" "sweep with other values of --grid" sweep regression "${small[@]}" --grid schedule.rate=1 --out whole
expect 2 "" "'schedule.rat' is not a known key" sweep regression "${small[@]}" --grid schedule.rat=1 --out wrong
holds "a wrong sweep writes nothing" [ ! -e wrong ]
expect 2 "" "exists, and is not a sweep" sweep regression "${small[@]}" --grid seed=1,2 --out .
expect 2 "" "must be a number with s, m, h or d" sweep regression "${small[@]}" --grid seed=1,2 --budget 3w --out wrong
expect 2 "" "more than 10000 combinations" sweep regression "${small[@]}" --grid "seed=$(seq -s, 1 101)" --grid "batch.size=$(seq -s, 1 101)" --out wrong
finish
