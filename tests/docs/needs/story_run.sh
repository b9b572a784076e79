. "$NEEDS/story.sh"
bin/xtape train entropy_recipe.json --out runs/entropy 2>/dev/null || true
