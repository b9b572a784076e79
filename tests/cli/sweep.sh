#!/bin/bash
# The commands sweep (grids, killed and continued sweeps, halving, budgets, folds) and average. usage: sweep.sh PROGRAM SOURCE_ROOT
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
expect 0 "^\| 1 \| table.csv" "of_data/1 data.arrays=table.csv: step 40" sweep regression --grid data.arrays=table.csv "${small[@]:2}" --out of_data
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
holds "a picture of the best" is_in "The best 8 of 16 runs" whole/sweep.svg

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

# Cross-validation: the table of means, computed here from the runs.
folds=(regression "${small[@]}" --folds 3 --grid hyper.width=4,8 --out folds)
expect 0 "^\| .hyper.width. \| folds \| validation_loss \| ± \|$" "folds/6 hyper.width=8 data.fold=3: step 40" sweep "${folds[@]}"
means() { python3 - <<'P'
import glob, json, statistics
for first, width in ((1, 4), (4, 8)):
    best = []
    for run in range(first, first + 3):
        recipe = json.load(open(f"folds/{run}/recipe.json"))
        assert recipe["data"]["folds"] == 3 and recipe["data"]["fold"] == run - first + 1
        found = [json.loads(line) for line in open(f"folds/{run}/metrics.jsonl")]
        best.append(min(each["validation_loss"] for each in found if "validation_loss" in each))
    print(f"| {width} | 3 | {statistics.mean(best):.6g} | {statistics.stdev(best):.2g} |")
P
}
holds "means and deviations over folds" same "$(means)" "$(grep '^| [48] | 3 |' folds/table.md)"
table=$(cat folds/table.md)
expect 0 "^\| 8 \| 3 \|" "" sweep "${folds[@]}"
holds "the same command changes nothing" same "$table" "$(cat folds/table.md)"
expect 0 "^\| 2 \|" "held/2 data.fold=2" sweep regression "${small[@]}" --set data.held_out=9 --folds 2 --set steps=4 --out held
expect 0 "^\| 2 \|" "in-recipe/2 data.fold=2" sweep regression "${small[@]}" --set data.folds=2 --set steps=4 --out in-recipe
expect 2 "" "needs --grid, --folds, or a recipe" sweep regression "${small[@]}" --out none
expect 2 "" "cannot be with folds" sweep "${folds[@]:0:$((${#folds[@]} - 1))}" none --halving 2
expect 2 "" "'data.folds' is 400, but there are only 300 rows" sweep regression "${small[@]}" --folds 400 --out none

# Means of the weights of runs.
expect 0 "^soup.safetensors: the mean of folds/1/.*, folds/2/.*, folds/3/" "" average folds/1 folds/2 folds/3 --out soup.safetensors
weights_are_means() { python3 - "$@" <<'P'
import json, struct, sys
def arrays(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    for name, each in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = each["data_offsets"]
            bytes_ = data[8 + size + begin:8 + size + end]
            yield name, struct.unpack(f"<{len(bytes_) // 4}f", bytes_)
made, *of = [dict(arrays(path)) for path in sys.argv[1:]]
for name, values in made.items():
    for k, value in enumerate(values):
        mean = struct.unpack("<f", struct.pack("<f", sum(each[name][k] for each in of) / len(of)))[0]
        assert value == mean, name
assert made
P
}
at() { echo "folds/$1/checkpoints/000000$2/weights.safetensors"; }
holds "a mean of runs" weights_are_means soup.safetensors "$(at 1 40)" "$(at 2 40)" "$(at 3 40)"
expect 0 "^soup: the mean of" "" average "$(at 1 30)" folds/1 --checkpoint average:2 --out soup
holds "a mean of files and of a run's checkpoints" weights_are_means soup/checkpoints/00000040/weights.safetensors \
  "$(at 1 30)" "$(at 1 30)" "$(at 1 40)"
expect 0 "^step 40$" "" eval soup
expect 2 "" "cannot continue" train soup --resume
expect 2 "" "folds/1.*: only weights of one model have a mean" average folds/1 folds/4 --out other
expect 2 "" "one checkpoint has no average" average folds/1 --out other
expect 2 "" "table.csv" average folds/1 table.csv --out other
expect 2 "" "soup already exists" average folds/1 folds/2 --out soup
expect 2 "" "is not of one: give --out FILE.safetensors" average folds/1 soup.safetensors --out other
expect 2 "" "has 2 checkpoints, fewer than the 5 to average" average folds/1 --checkpoint average:5 --out other
holds "nothing else is written" [ ! -e other ]

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
