# Recipes whose evaluations do not answer 2,000 questions, which a model that has learnt nothing does at length.
sed -i '/"measure"/d' models/recipes/{adder,number_words,dates_gru,dates_lstm}.json
