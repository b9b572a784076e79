. "$NEEDS/tiny_gpt.sh"
bin/xtape train tiny_gpt_recipe.json --out runs/tiny
