# SPDX-License-Identifier: Apache-2.0
"""A stand-in for in_vllm.py: an engine in which a pass takes 10 ms, and a way drafts `speculation` tokens."""
import json
import pathlib
import sys

task = json.loads(sys.argv[1])
if task["speculation"] == "fails":
    print("first\nno device", file=sys.stderr)
    sys.exit(3)
requests = json.loads(pathlib.Path(task["requests"]).read_text())["requests"]
print("a message of the engine")
print("@@" + json.dumps({"setup": {"runner": 1}}))
for slots in task["slots"]:
    rows = []
    for number, each in enumerate(requests):
        tokens = len(each["output"]) - 1
        passes = -(-tokens // (1 + (task["speculation"] or 0)))
        differs = task["speculation"] == 3 and number == 0
        rows.append({"tokens": tokens, "passes": passes, "seconds": passes * 0.01, "differs": differs, "number": number,
                     "category": each["category"]})
        print("@@" + json.dumps({"done": number + 1, "of": len(requests), "slots": slots}))
    print("@@" + json.dumps({"slots": slots, "requests": rows}))
