. "$NEEDS/tuned_digits.sh"
bin/xtape train tuned_digits_recipe.json --out runs/tuned
