cp -r "$SOURCE/tests/golden/hugging_face/tiny" folder
