# SPDX-License-Identifier: Apache-2.0
"""bench/replay/to_trace.py: each format of its --help, its errors, and its result in the replay."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).parents[2] / "bench/replay/to_trace.py"
#: A tokenizer: the bytes of the text.
BYTES = f'{sys.executable} -c "import sys, json; [print(list(json.loads(line).encode())) for line in sys.stdin]"'
CHAT = {
    "id": "a",
    "conversations": [
        {"from": "system", "value": "S"},
        {"from": "human", "value": "ab"},
        {"from": "gpt", "value": "cd"},
        {"from": "human", "value": "é"},
        {"from": "gpt", "value": "f"},
    ],
}
CHAT_TURNS = [{"prompt": [*b"S\nab\n"], "output": [*b"cd"]}, {"prompt": [*"é\n".encode()], "output": [*b"f"]}]


class Converter(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_script(self, *arguments: str, status: int = 0) -> tuple[str, str]:
        done = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, status, done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done.stdout, done.stderr

    def convert(self, data: bytes | str, *arguments: str, name: str = "chats.json") -> list[dict[str, Any]]:
        path = self.folder / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        out, _ = self.run_script("--tokenizer", BYTES, *arguments, str(path))
        return [json.loads(line) for line in out.splitlines()]

    def refused(self, data: bytes | str, *arguments: str) -> str:
        path = self.folder / "bad.json"
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        out, error = self.run_script(*arguments, str(path), status=2)
        self.assertEqual(out, "")
        self.assertTrue(error.startswith("to_trace.py: "), error)
        return error.replace(str(path), "FILE").removeprefix("to_trace.py: ").strip()

    def test_share_gpt_in_each_encoding(self) -> None:
        wanted = [{"id": "chats/a", "category": "chats", "turns": CHAT_TURNS}]
        for text in (json.dumps([CHAT]), json.dumps([CHAT], indent=2, ensure_ascii=False), json.dumps(CHAT),
                     json.dumps(CHAT, indent=1)):
            for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"):
                self.assertEqual(self.convert(text.encode(encoding)), wanted, encoding)
            self.assertEqual(self.convert(gzip.compress(text.encode())), wanted)
            self.assertEqual(self.convert(text.replace("\n", "\r\n")), wanted)
        two = json.dumps(CHAT) + "\n\n" + json.dumps({**CHAT, "id": 7}) + "\n"
        self.assertEqual([session["id"] for session in self.convert(two)], ["chats/a", "chats/7"])
        self.assertEqual(len(self.convert(two, "--limit", "1")), 1)

    def test_other_records(self) -> None:
        one = [{"prompt": [*b"ab\n"], "output": [*b"cd"]}]
        ids = [{"prompt": [1, 2], "output": [3, 4]}]
        parts = [{"type": "text", "text": "ab"}, {"type": "image_url"}]
        for record, turns in (
            ({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]}, one),
            ({"messages": [{"role": "user", "content": parts}, {"role": "assistant", "content": "cd"}]}, one),
            ({"prompt": "ab", "completion": "cd"}, one),
            ({"prompt": "ab", "response": "cd"}, one),
            ({"prompt": "ab", "output": "cd"}, one),
            ({"instruction": "a", "input": "b", "output": "cd"}, [{"prompt": [*b"a\nb\n"], "output": [*b"cd"]}]),
            ({"messages": [{"role": "developer", "content": "ab"}, {"role": "assistant", "content": "cd"}]}, one),
            ({"prompt": "a", "output": "b\ud83d"}, [{"prompt": [*b"a\n"], "output": [*b"b?"]}]),
            ({"text": "abc"}, [{"prompt": [*b"a"], "output": [*b"bc"]}]),
            ({"prompt_token_ids": [1, 2], "output_token_ids": [3, 4]}, ids),
            ({"prompt_token_ids": [1, 2], "generated_token_ids": [3, 4]}, ids),
            ({"prompt_token_ids": [1, 2], "token_ids": [3, 4]}, ids),
            ({"prompt_token_ids": [1, 2], "outputs": [{"text": "x", "token_ids": [3, 4]}]}, ids),
        ):
            self.assertEqual(self.convert(json.dumps(record))[0]["turns"], turns, record)
        self.assertEqual(self.convert("plain text\n", name="notes.txt")[0]["turns"],
                         [{"prompt": [*b"p"], "output": [*b"lain text\n"]}])

    def test_heads(self) -> None:
        request = {"prompt_token_ids": [1, 2], "generated_token_ids": [3, 4, 5], "acc": {"len": [1, 4, 2]}}
        short = {**request, "acc": {"len": [3, 1]}}
        begun = {"prompt_token_ids": [], "token_ids": [3, 4, 5], "acc": {"len": [1, 4, 2, 9]}}
        lines = "\n".join(map(json.dumps, (request, short, begun)))
        wanted = [{"prompt": [1, 2], "output": [3, 4, 5], "head": [0, 3, 1]},
                  {"prompt": [1, 2], "output": [3, 4], "head": [2, 0]},
                  {"prompt": [3], "output": [4, 5], "head": [3, 1]}]
        self.assertEqual([session["turns"] for session in self.convert(lines, "--head", "acc.len")],
                         [[turn] for turn in wanted])
        only = self.convert(lines, "--head", "acc.len", "--same-length")
        self.assertEqual([session["turns"] for session in only], [[wanted[0]]])

    def test_lines_end_at_line_feeds_alone(self) -> None:
        line = json.dumps({"prompt": "a", "output": "b\u2028c\x85"}, ensure_ascii=False) + "\r\n"
        wanted = [{"prompt": [*b"a\n"], "output": [*"b\u2028c\x85".encode()]}]
        self.assertEqual([session["turns"] for session in self.convert(line + line)], [wanted, wanted])

    def test_a_long_command(self) -> None:
        path = self.folder / "a.json"
        path.write_text('{"prompt": "a", "output": "b"}')
        self.run_script("--tokenizer", BYTES[:-1] + " #" + "x" * 300 + '"', str(path))

    def test_template_and_category(self) -> None:
        session = self.convert(json.dumps({"prompt": "a", "output": "b"}), "--template", "<{}>", "--category", "c")[0]
        self.assertEqual(session, {"id": "c/0", "category": "c", "turns": [{"prompt": [*b"<a>"], "output": [*b"b"]}]})

    def test_trajectories_of_agents(self) -> None:
        messages = [{"role": "system", "content": "S"}, {"role": "user", "content": "ab", "is_demo": True},
                    {"role": "assistant", "content": "cd", "thought": "c", "action": "d"},
                    {"role": "user", "content": "é"}, {"role": "assistant", "content": None},
                    {"role": "assistant", "content": "f", "extra": {"response": {"content": "other"}}}]
        mini = {"instance_id": "a__b-1", "info": {"submission": "x"}, "messages": messages}
        swe = {"environment": "main", "trajectory": [{"response": "other"}], "history": messages}
        for record, file, name in ((mini, "x.traj.json", "a__b-1"), (swe, "a__b-2.traj", "a__b-2")):
            sessions = self.convert(json.dumps(record), "--category", "agent", name=file)
            self.assertEqual(sessions, [{"id": f"agent/{name}", "category": "agent", "turns": CHAT_TURNS}])

    def test_summary(self) -> None:
        path = self.folder / "chats.json"
        path.write_text(json.dumps([CHAT, {"prompt": "a", "output": ""}]))
        _, error = self.run_script("--json", "--tokenizer", BYTES, str(path))
        self.assertEqual(json.loads(error), {"files": 1, "sessions": 1, "turns": 2, "tokens": 3, "skipped": 1})

    def test_refusals(self) -> None:
        text = json.dumps({"prompt": "a", "output": "b"})
        for data, arguments, wanted in (
            (text, (), "the file has texts: give --tokenizer tokenizer.json, or --tokenizer COMMAND"),
            (text, ("--tokenizer", "no-such-program"), "--tokenizer: the command failed"),
            (text, ("--tokenizer", "true"), "--tokenizer: the command wrote 0 lines for 2 texts"),
            (text, ("--tokenizer", "cat"), "--tokenizer: a line: expected a list of token ids"),
            (text, ("--template", "x"), "--template: has no {}"),
            (text + '\n{"prompt": ', (), "FILE:2: column 12: is not JSON"),
            ('{"a": 1}', (), "FILE: record 1: no known fields"),
            ("[1]", (), "FILE: record 1: expected an object, found int"),
            ('{"history": {}}', (), "FILE: record 1: expected a list of messages"),
            ('{"prompt_token_ids": [1]}', (), "FILE: record 1: has prompt_token_ids, but no output"),
            ('{"prompt_token_ids": ["a"], "token_ids": []}', (), "FILE: record 1: prompt_token_ids: expected a list"),
            ('{"messages": [{"role": "elf", "content": ""}]}', (), "FILE: record 1: message 1: role: the role 'elf'"),
            ('{"conversations": [{"from": "gpt", "value": 5}]}', (), "FILE: record 1: message 1: value: expected a text"),
            (b"\x1f\x8b\x08\x00", (), "FILE: cannot be read"),
            (b"\xff\xfa\x00x", (), "FILE: is not text in utf-8: byte 0: convert it to UTF-8 first"),
            (b"\x28\xb5\x2f\xfd\x00", (), "FILE: is compressed by zstd: unpack it with zstd -d first"),
            (b"PAR1\x00PAR1", (), "FILE: is a Parquet file: write its records as lines of JSON first"),
            ("[" * 200000, (), "FILE: is nested too deeply"),
            ('{"text": ""}\n' + "[" * 200000, (), "FILE:2: is nested too deeply"),
            ('{"prompt_token_ids": [1], "token_ids": [2147483648]}', (),
             "FILE: record 1: token_ids: the token id 2147483648 is outside the 32-bit range"),
            ('{"prompt_token_ids": [1], "outputs": ["token_ids"]}', (), "FILE: record 1: outputs: expected a list"),
            ('{"prompt_token_ids": [1], "outputs": 7}', (), "FILE: record 1: outputs: expected a list"),
            ('{"messages": [{"role": "user", "content": [{"text": 5}]}, {"role": "elf", "content": "x"}]}', (),
             "message 2: role: the role 'elf'"),
            ('{"text": "a"}', ("--head", "acc"), "FILE: record 1: --head: expected a request with ids"),
            ('{"prompt_token_ids": [1], "token_ids": [2]}', ("--head", "a.b"), "FILE: record 1: a.b: expected a list"),
            ('{"prompt_token_ids": [1], "token_ids": [2], "acc": [0]}', ("--head", "acc"), "of lengths from 1 to 65"),
            ('{"prompt_token_ids": [1], "token_ids": [2]}', ("--same-length",), "--same-length: needs --head"),
            ("[]", (), "no record has an output: nothing was written"),
        ):
            self.assertIn(wanted, self.refused(data, *arguments))
        self.assertIn("cannot be read", self.run_script(str(self.folder / "nowhere"), status=2)[1])

    def test_the_replay_reads_the_result(self) -> None:
        tool = os.environ.get("REPRISE_REPLAY")
        if tool is None:
            self.skipTest("REPRISE_REPLAY is not set")
        (self.folder / "chats.json").write_text(json.dumps([CHAT], indent=2))
        out, _ = self.run_script("--tokenizer", BYTES, str(self.folder / "chats.json"))
        (self.folder / "trace.jsonl").write_text(out)
        done = subprocess.run([tool, "--format", "json", "--cost", "linear:0", str(self.folder / "trace.jsonl")],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout)["results"][0]["turns"], 2)
        refused = subprocess.run([tool, str(self.folder / "chats.json")], capture_output=True, text=True, timeout=60)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("a JSON array, not one object a line: convert it with python3 bench/replay/to_trace.py",
                      refused.stderr)


if __name__ == "__main__":
    unittest.main()
