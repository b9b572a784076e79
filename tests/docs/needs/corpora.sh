# A corpus in place of Multi30k: sentences of words made of syllables.
python3 - <<'END'
import gzip, pathlib, random
draw = random.Random(1)
folder = pathlib.Path("multi30k")
folder.mkdir()
words = {side: ["".join(draw.choice(letters) + draw.choice("aeiou") for _ in range(draw.randint(2, 5))) for _ in range(20000)]
         for side, letters in (("de", "bdfgkmnrstwz"), ("en", "bdfhlmnprst"), ("fr", "cjlmnprstv"))}
for part, lines in (("train", 3000), ("val", 20), ("test_2016_flickr", 20)):
    for side in words:
        rows = [" ".join(draw.choice(words[side]) for _ in range(8)) + "\n" for _ in range(lines)]
        for name in (f"{part}.{side}.gz", f"{part}.lc.norm.tok.{side}.gz"):
            with gzip.open(folder / name, "wt") as file:
                file.writelines(rows)
END
