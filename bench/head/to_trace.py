#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts requests of SpecDecode-Bench/simulator into a trace of reprise-replay.

    python3 bench/head/to_trace.py instructcoder combined_instructcoder.jsonl > instructcoder.jsonl

The first argument becomes the category. The files are data/llama3.1-8B/combined_*.jsonl of
https://github.com/SpecDecode-Bench/simulator. They have no licence: do not pass on the result.
"""

import json
import sys


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("usage: to_trace.py CATEGORY FILE ... > TRACE")
    category = sys.argv[1]
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            for line in file:
                request = json.loads(line)
                turn = {"prompt": request["prompt_token_ids"], "output": request["generated_token_ids"]}
                print(json.dumps({"id": f"{category}/{request['id']}", "category": category, "turns": [turn]}))


if __name__ == "__main__":
    main()
