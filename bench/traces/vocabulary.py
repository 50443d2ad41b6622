#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes vocabulary.json: the texts of the tokens that occur in the traces of this folder.

usage: vocabulary.py TOKENIZER.json

TOKENIZER.json is the tokenizer of the recorded model, as Hugging Face transformers saves it. Its spelling is kept: a
byte is a character, and a blank is U+0120.
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def main() -> None:
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        raise SystemExit(0 if len(sys.argv) == 2 else 2)
    tokenizer = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    texts = {token: text for text, token in tokenizer["model"]["vocab"].items()}
    texts.update({added["id"]: added["content"] for added in tokenizer["added_tokens"]})
    used = {token
            for trace in FOLDER.glob("*.jsonl")
            for line in trace.read_text(encoding="utf-8").splitlines()
            for turn in json.loads(line)["turns"]
            for token in turn["prompt"] + turn["output"]}
    lines = [json.dumps(texts[token], ensure_ascii=False) + ": " + str(token) for token in sorted(used)]
    (FOLDER / "vocabulary.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
