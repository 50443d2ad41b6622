#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts recorded requests of other programs into a trace of reprise-replay.

    python3 bench/replay/to_trace.py --tokenizer tokenizer.json chats.json > trace.jsonl

A file may be lines of JSON, a JSON array, indented or not, in UTF-8, UTF-16 or UTF-32, and compressed by gzip. Any other
file is one plain text. These records are read:

    {"conversations": [{"from": "human", "value": TEXT}, {"from": "gpt", "value": TEXT}, ...]}   ShareGPT
    {"messages": [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}, ...]}
                                          also mini-swe-agent's trajectories; "history" in those of SWE-agent
    {"prompt": TEXT, "output": TEXT}      also "completion", "response" or "generated_text" for the output, and
                                          "instruction" with "input" for the prompt
    {"prompt_token_ids": [IDS], "output_token_ids": [IDS]}   also "generated_token_ids", "token_ids", or
                                                             "outputs": [{"token_ids": [IDS]}, ...]
    {"text": TEXT}, and plain text: there is no prompt, except for the first token

Texts need a tokenizer: a file tokenizer.json (with the package `tokenizers`), or any command that reads lines of JSON,
one string a line, and writes one list of ids a line for each, in order:

    --tokenizer 'python3 my_tokenizer.py'

--head acc_eagle.acc_len takes the accepted lengths of a draft head from that field of a request with ids. It has one
number for each output token, which counts the target's own token too. The output ends where the shorter list ends.

Chats are not put through the chat template of a model: --template has the text around a message of the user, in which
{} stands for the message. Ids are more exact: record them in the engine if you can.

Exit status: 0 done, 2 an argument or a file cannot be used. The summary on standard error is JSON with --json.
"""

from __future__ import annotations

import argparse
import codecs
import gzip
import json
import os
import shlex
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

USER = {"human", "user", "system", "developer", "tool", "function", "observation"}
ANSWER = {"gpt", "assistant", "chatgpt", "bing", "bard", "model"}
OUTPUTS = ("output", "completion", "response", "generated_text", "answer")
OUTPUT_IDS = ("output_token_ids", "generated_token_ids", "token_ids")
MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
         (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig"))
BINARY = ((b"\x28\xb5\x2f\xfd", "compressed by zstd: unpack it with zstd -d first"),
          (b"PAR1", "a Parquet file: write its records as lines of JSON first"))

Text = str | list[int]
Turn = tuple[Text, Text]


def fail(what: str) -> NoReturn:
    print(f"to_trace.py: {what}", file=sys.stderr)
    sys.exit(2)


def text_of(path: str) -> str:
    """Returns the text of a file, unpacked and decoded."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        fail(f"{path}: cannot be read: {error}")
    for mark, what in BINARY:
        if data.startswith(mark):
            fail(f"{path}: is {what}")
    encoding = next((name for mark, name in MARKS if data.startswith(mark)), "utf-8")
    if encoding == "utf-8" and len(data) > 1 and (data[0] == 0) != (data[1] == 0):
        encoding = "utf-16-be" if data[0] == 0 else "utf-16-le"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        fail(f"{path}: is not text in {encoding}: byte {error.start}: convert it to UTF-8 first")


def records_of(path: str) -> Iterator[tuple[str, Any]]:
    """Yields each record of a file with its place, for messages."""
    text = text_of(path)
    begin = text.lstrip()[:1]
    if begin not in ("{", "["):
        yield path, {"text": text}
        return
    try:
        whole = json.loads(text)
    except RecursionError:
        fail(f"{path}: is nested too deeply")
    except json.JSONDecodeError:
        for number, line in enumerate(text.split("\n"), 1):  # splitlines() would also cut at U+2028 in a string
            if line.strip():
                try:
                    yield f"{path}:{number}", json.loads(line)
                except json.JSONDecodeError as error:
                    fail(f"{path}:{number}: column {error.colno}: is not JSON: {error.msg}")
                except RecursionError:
                    fail(f"{path}:{number}: is nested too deeply")
        return
    if isinstance(whole, dict):
        whole = [whole]
    for number, record in enumerate(whole):
        yield f"{path}: record {number + 1}", record


def ids_of(value: Any, field: str, where: str) -> list[int]:
    if not isinstance(value, list) or not all(type(token) is int for token in value):
        fail(f"{where}: {field}: expected a list of token ids")
    wrong = next((token for token in value if not -(2**31) <= token < 2**31), None)
    if wrong is not None:
        fail(f"{where}: {field}: the token id {wrong} is outside the 32-bit range")
    return list(value)


def string_of(record: dict[str, Any], key: str, where: str) -> str:
    value = record.get(key)
    if isinstance(value, list):  # parts of a message, some of which are images
        value = "".join(part["text"] for part in value if isinstance(part, dict) and isinstance(part.get("text"), str))
    if not isinstance(value, str):
        fail(f"{where}: {key}: expected a text, found {type(value).__name__}")
    return value.encode("utf-8", "replace").decode()  # half of a surrogate pair is no text to a tokenizer


def chat_of(messages: Any, role: str, content: str, template: str, where: str) -> list[Turn]:
    if not isinstance(messages, list):
        fail(f"{where}: expected a list of messages")
    turns: list[Turn] = []
    prompt = ""
    for number, message in enumerate(messages):
        at = f"{where}: message {number + 1}"
        if not isinstance(message, dict) or not isinstance(message.get(role), str):
            fail(f'{at}: expected an object with "{role}" and "{content}"')
        if message[role] in ANSWER:
            if message.get(content):
                turns.append((prompt, string_of(message, content, at)))
                prompt = ""
        elif message[role] in USER:
            prompt += template.replace("{}", string_of(message, content, at))
        else:
            fail(f"{at}: {role}: the role {message[role]!r} is neither a user's nor a model's")
    return turns


def turns_of(record: Any, template: str, where: str) -> list[Turn]:
    """Returns the turns of a record: texts or ids."""
    if not isinstance(record, dict):
        fail(f"{where}: expected an object, found {type(record).__name__}")
    if "conversations" in record:
        return chat_of(record["conversations"], "from", "value", template, where)
    messages = next((record[key] for key in ("messages", "history") if key in record), None)
    if messages is not None:
        return chat_of(messages, "role", "content", template, where)
    if "prompt_token_ids" in record:
        prompt = ids_of(record["prompt_token_ids"], "prompt_token_ids", where)
        outputs = [(record, key) for key in OUTPUT_IDS if key in record]
        others = record.get("outputs") or []
        if not isinstance(others, list) or not all(isinstance(output, dict) for output in others):
            fail(f'{where}: outputs: expected a list of objects with "token_ids"')
        outputs += [(output, "token_ids") for output in others if "token_ids" in output]
        if not outputs:
            fail(f"{where}: has prompt_token_ids, but no output: give one of {', '.join(OUTPUT_IDS)}")
        return [(prompt, ids_of(holder[key], key, where)) for holder, key in outputs[:1]]
    asked = next((key for key in ("prompt", "instruction", "question") if key in record), None)
    output = next((key for key in OUTPUTS if key in record), None)
    if asked and output:
        more = string_of(record, "input", where) if record.get("input") else ""
        question = "\n".join(part for part in (string_of(record, asked, where), more) if part)
        return [(template.replace("{}", question), string_of(record, output, where))]
    if "text" in record:
        return [("", string_of(record, "text", where))]
    known = "conversations, messages, history, prompt_token_ids, prompt with output, or text"
    fail(f"{where}: no known fields: expected {known}, found {', '.join(map(str, record)) or 'none'}")


def name_of(record: Any, path: str, number: int) -> Any:
    """Returns the record's own id; without one, a trajectory has the name of its file."""
    if not isinstance(record, dict):
        return number
    without = Path(path).stem if "history" in record else number
    return next((record[key] for key in ("id", "request_id", "instance_id") if key in record), without)


def lengths_of(record: Any, path: str, where: str) -> list[int]:
    """Returns the accepted lengths of a head in a field of the record, without the target's own tokens."""
    if "prompt_token_ids" not in record:
        fail(f"{where}: --head: expected a request with ids: there is no prompt_token_ids")
    value = record
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, list) or not all(type(length) is int and 1 <= length <= 65 for length in value):
        fail(f"{where}: {path}: expected a list of lengths from 1 to 65")
    return [length - 1 for length in value]


def tokenizer_of(given: str | None) -> Callable[[list[str]], list[list[int]]]:
    """Returns the function that turns texts into ids."""
    if given is None:
        fail("the file has texts: give --tokenizer tokenizer.json, or --tokenizer COMMAND")
    if os.path.isfile(given) and given.endswith(".json"):
        try:
            from tokenizers import Tokenizer  # type: ignore[import-not-found]
        except ImportError:
            fail("--tokenizer: a tokenizer.json needs the package `tokenizers`: pip install tokenizers")
        try:
            loaded = Tokenizer.from_file(given)
        except Exception as error:  # the package raises this class itself
            fail(f"--tokenizer: {given} cannot be read: {error}")
        return lambda texts: [loaded.encode(text, add_special_tokens=False).ids for text in texts]

    def run(texts: list[str]) -> list[list[int]]:
        lines = "".join(json.dumps(text) + "\n" for text in texts)
        try:
            done = subprocess.run(shlex.split(given), input=lines.encode(), stdout=subprocess.PIPE, check=True)
        except (OSError, ValueError, subprocess.CalledProcessError) as error:
            fail(f"--tokenizer: the command failed: {error}")
        answers = done.stdout.decode(errors="replace").splitlines()
        if len(answers) != len(texts):
            fail(f"--tokenizer: the command wrote {len(answers)} lines for {len(texts)} texts: write one list a line")
        try:
            return [ids_of(json.loads(line), "a line", "--tokenizer") for line in answers]
        except json.JSONDecodeError as error:
            fail(f"--tokenizer: the command wrote a line that is not a list of ids: {error}")

    return run


def sessions_of(turns: list[list[Turn]], encode: Callable[[], Callable[[list[str]], list[list[int]]]]) -> list[Any]:
    """Returns the turns with ids, all texts in one call of the tokenizer."""
    texts = [part for session in turns for turn in session for part in turn if isinstance(part, str)]
    ids = iter(encode()(texts) if texts else [])
    return [[tuple(next(ids) if isinstance(part, str) else part for part in turn) for turn in session]
            for session in turns]


def main() -> None:
    text = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser(description=text[0], epilog=text[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="a recorded file; - for standard input")
    parser.add_argument("--tokenizer", metavar="FILE|COMMAND", help="tokenizer.json, or a command; see below")
    parser.add_argument("--category", metavar="NAME", help="the category of the sessions; default: the file's name")
    parser.add_argument("--template", default="{}\n", help="the text around a prompt; default: the prompt and a new line")
    parser.add_argument("--limit", type=int, metavar="N", help="the first N records of each file")
    parser.add_argument("--head", metavar="FIELD", help="the field with the accepted lengths of a head; see below")
    parser.add_argument("--same-length", action="store_true",
                        help="with --head: only records in which both lists have the same length")
    parser.add_argument("--json", action="store_true", help="the summary as JSON")
    args = parser.parse_args()
    if "{}" not in args.template:
        fail("--template: has no {}, which stands for the message")
    if args.same_length and not args.head:
        fail("--same-length: needs --head, whose field it compares with the output")
    counts = {"files": len(args.files), "sessions": 0, "turns": 0, "tokens": 0, "skipped": 0}
    for path in args.files:
        category = args.category or Path(path).name.split(".")[0]
        names, turns, heads = [], [], []
        for number, (where, record) in enumerate(records_of(path)):
            if args.limit is not None and number >= args.limit:
                break
            session = turns_of(record, args.template, where)
            head = lengths_of(record, args.head, where) if args.head else []
            if args.head:
                prompt, output = session[0]
                if args.same_length and len(output) != len(head):
                    counts["skipped"] += 1
                    continue
                session = [(prompt, output[:len(head)])]
                head = head[:len(output)]
            names.append(f"{category}/{name_of(record, path, number)}")
            turns.append(session)
            heads.append(head)
        for name, session, head in zip(names, sessions_of(turns, lambda: tokenizer_of(args.tokenizer)), heads):
            kept = []
            for prompt, output in session:
                if not prompt and not kept and len(output) > 1:
                    prompt, output = output[:1], output[1:]  # a session begins with a token
                if output and (prompt or kept):
                    kept.append({"prompt": prompt, "output": output})
                    if args.head:
                        kept[-1]["head"] = head[-len(output):]
            if not kept:
                counts["skipped"] += 1
                continue
            counts["sessions"] += 1
            counts["turns"] += len(kept)
            counts["tokens"] += sum(len(turn["output"]) for turn in kept)
            print(json.dumps({"id": name, "category": category, "turns": kept}))
        if sys.stderr.isatty() and not args.json:
            print(f"{path}: {counts['sessions']} sessions so far", file=sys.stderr)
    if not counts["sessions"]:
        fail("no record has an output: nothing was written")
    print(json.dumps(counts) if args.json else ", ".join(f"{value} {name}" for name, value in counts.items()),
          file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(2)
