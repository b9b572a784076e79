# A text of many words in place of Shakespeare's: blank lines separate speeches.
python3 - <<'END'
import random
draw = random.Random(1)
words = ["".join(draw.choice("bdfghlmnprstw") + draw.choice("aeiou") for _ in range(draw.randint(2, 5))) for _ in range(5000)]
with open("input.txt", "w") as file:
    for _ in range(1000):
        file.write("ROMEO:\n" + " ".join(draw.choice(words) for _ in range(8)) + ".\n\n")
END
