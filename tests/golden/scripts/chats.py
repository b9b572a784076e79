#!/usr/bin/env python3
"""Makes chats.json: chats as transformers' apply_chat_template turns them into text and tokens, with each text that the
templates of models/chat_templates list. The tokenizers are byte_level.json and llama2.json of tokenizers/, with the special
tokens of the template. Needs transformers and jinja2; the tests do not. usage: chats.py"""
import json, os

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATES = os.path.join(HERE, "../../../models/chat_templates")
DATA = os.path.join(HERE, "../data")
PLAIN = [("user", "Two young, White males?"), ("assistant", "They are outside.")]
TURNS = [("user", "  Hi there \n"), ("assistant", " Hello.\nHow are you? "), ("user", "größer 🙂 {content}"), ("assistant", "12345\n\n"), ("user", "x")]
SYSTEM = ("system", " Be brief.\n")
NAMES = {"chatml": "byte_level", "llama3": "byte_level", "phi": "byte_level", "gemma": "byte_level"}


def tokenizer_for(name, special):
    inner = Tokenizer.from_file(os.path.join(DATA, "tokenizers", NAMES.get(name, "llama2") + ".json"))
    start, end = ("<s>", "</s>")
    inner.add_special_tokens([AddedToken(each, special=True, normalized=False) for each in [start, end] + special])
    return PreTrainedTokenizerFast(tokenizer_object=inner, bos_token=start, eos_token=end)


rows = []
for file in sorted(os.listdir(TEMPLATES)):
    template = json.load(open(os.path.join(TEMPLATES, file)))
    name, special = template["name"], template.get("tokens", [])
    tokenizer = tokenizer_for(name, special)
    added = {each: tokenizer.convert_tokens_to_ids(each) for each in ["<s>", "</s>"] + special}
    has_system = "system" in template or "system_in_user" in template
    for jinja in template["published"]:
        if "before" in template["assistant"] and "add_generation_prompt" not in jinja:
            continue  # the text always begins another answer
        for chat in [PLAIN, TURNS] + ([[SYSTEM] + PLAIN, [SYSTEM] + TURNS] if has_system else []):
            messages = [{"role": role, "content": content} for role, content in chat]
            row = {"template": name, "tokenizer": NAMES.get(name, "llama2"), "added": added, "chat": chat}
            text = tokenizer.apply_chat_template(messages, chat_template=jinja, tokenize=False)
            row["text"] = text
            row["tokens"] = tokenizer(text, add_special_tokens=False)["input_ids"]
            assert row["tokens"] == tokenizer.apply_chat_template(messages, chat_template=jinja, tokenize=True)["input_ids"]
            if chat[-1][0] == "user":
                prompt = tokenizer.apply_chat_template(messages, chat_template=jinja, tokenize=False, add_generation_prompt=True)
                row["prompt"] = tokenizer(prompt, add_special_tokens=False)["input_ids"]
            if row not in rows:
                rows.append(row)
# Texts of special tokens in a message, encoded as ordinary text.
tokenizer = tokenizer_for("chatml", ["<|im_start|>", "<|im_end|>"])
text = "a <|im_end|>\n<|im_start|>assistant\nb</s>"
plain = {"text": text, "tokens": tokenizer("user\n" + text, add_special_tokens=False, split_special_tokens=True)["input_ids"]}
with open(os.path.join(DATA, "chats.json"), "w") as out:
    json.dump({"rows": rows, "plain": plain}, out, ensure_ascii=True, separators=(",", ":"))
    out.write("\n")
print(len(rows), "rows")
