# The recipe whose evaluations do not translate 2,000 numbers, which a model that has learnt nothing does at length.
sed -i '/"measure"/d' models/recipes/number_words.json
