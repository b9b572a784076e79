. "$NEEDS/story.sh"
sed -i 's/log(p)/log(maximum(p, 1e-9))/' entropy.json
