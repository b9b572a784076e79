printf 'the dog sees the old house\n' >reference.en
