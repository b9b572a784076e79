cp -r "$SOURCE/tests/golden/data/hugging_face/tiny" folder
