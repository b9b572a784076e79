. "$NEEDS/story.sh"
sed -i 's/-sum(p \*/-sum(watch(p, p > 0) */' entropy.json
