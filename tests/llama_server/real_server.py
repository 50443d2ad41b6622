#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The texts of a real llama-server with --spec-type reprise are those of plain decoding.

    real_server.py SERVER MODEL...

Context shift, seeded sampling, a grammar, a request after a cancelled one, a prompt that goes on or is edited, several
slots, and a restart with a history. Abilities that a model lacks are left out, and named. One of five sampled texts may
differ: llama.cpp's logits of a row are rounded otherwise beside other rows, and its own drafters show the same.
"""
from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import http.client
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

SAMPLING = "sampling with seed"
STORY = {"prompt": "The harbour master opened the letter and read", "n_predict": 60}
LIST = "Copy: red green blue red green blue one two three red green blue one two three red green"
NAMES = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]},
    "minItems": 4,
    "maxItems": 6,
}


class Server:
    def __init__(self, program: Path, model: Path, flags: list[str]) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.drafted = self.accepted = 0
        self.log = tempfile.TemporaryFile()
        command = [program, "-m", model, "--threads", "1", "--port", str(self.port), "--no-webui", *flags]
        self.process = subprocess.Popen([str(part) for part in command], stdout=self.log, stderr=self.log)

    def __enter__(self) -> Server:
        while self.process.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2).close()
                return self
            time.sleep(0.1)
        raise RuntimeError("the server did not start: " + self.messages()[-800:])

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    def messages(self) -> str:
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def post(self, body: dict) -> dict | None:
        """The answer; None if the server refuses the request."""
        body = {"temperature": 0, "top_k": 1, "seed": 1, "n_predict": 100, **body}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/completion", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:
                answer = json.load(reply)
        except urllib.error.HTTPError:
            return None
        self.drafted += answer["timings"].get("draft_n", 0)
        self.accepted += answer["timings"].get("draft_n_accepted", 0)
        return answer

    def text(self, body: dict) -> str | None:
        answer = self.post(body)
        return None if answer is None else answer["content"]

    def cancel(self, body: dict) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("POST", "/completion", json.dumps({**body, "stream": True}))
        connection.getresponse().read(200)
        connection.close()


def one_slot(server: Server) -> dict[str, str | None]:
    texts = {"greedy": server.text({"prompt": LIST})}
    for seed in range(5):
        body = {"prompt": LIST, "temperature": 0.7, "top_k": 40, "seed": seed, "n_predict": 60}
        texts[f"{SAMPLING} {seed}"] = server.text(body)
    texts["grammar"] = server.text({"prompt": "JSON list of names: ", "json_schema": NAMES, "n_predict": 150})
    server.cancel({"prompt": LIST, "n_predict": 300, "ignore_eos": True, "temperature": 0})
    texts["after a cancelled request"] = server.text({"prompt": LIST, "n_predict": 40})
    longer = LIST + (texts["greedy"] or "") + " four five six red green"
    texts["a prompt that goes on"] = server.text({"prompt": longer})
    texts["an edited prompt"] = server.text({"prompt": longer.replace("two three", "seven", 1)})
    return texts


def all_texts(program: Path, model: Path, flags: list[str]) -> tuple[dict[str, str | None], int]:
    with Server(program, model, ["-np", "1", "-c", "1024", *flags]) as server:
        texts = one_slot(server)
        drafted = server.accepted
    with contextlib.suppress(RuntimeError), Server(program, model, ["-np", "1", "-c", "256", "--context-shift", *flags]) as server:
        texts["context shift"] = server.text({"prompt": LIST, "n_predict": 400, "ignore_eos": True})
    return texts, drafted


def several_slots(program: Path, model: Path, cache: str) -> int:
    """Many requests over four slots, some cancelled: the server stays up, and drafts."""
    with Server(program, model, ["-np", "4", "-c", "4096", cache, "--spec-type", "reprise"]) as server:

        def client(number: int) -> None:
            for turn in range(6):
                body = {"prompt": f"{number} {LIST} {turn}", "n_predict": 60}
                server.cancel(body) if (number + turn) % 4 == 0 else server.post(body)

        with concurrent.futures.ThreadPoolExecutor(6) as clients:
            list(clients.map(client, range(6)))  # raises what a client raised
        if server.text({"prompt": LIST}) is None or server.process.poll() is not None:
            raise AssertionError("the server ended: " + server.messages()[-800:])
        return server.accepted


def restart(program: Path, model: Path, plain: str | None) -> None:
    """After a restart with its history, a server drafts an answer of the day before at once."""
    with tempfile.TemporaryDirectory() as folder:
        flags = ["-np", "1", "-c", "1024", "--spec-type", "reprise", "--spec-reprise-history", str(Path(folder) / "history")]
        accepted = []
        stories = []
        for _ in range(2):
            with Server(program, model, flags) as server:
                stories.append(server.text(STORY))  # first, before times of a busy machine can end all drafts
                accepted.append(server.accepted)
                if server.text({"prompt": LIST}) != plain or stories[-1] != stories[0]:
                    raise AssertionError("another text with a history")
            if (Path(folder) / "history").stat().st_mode & 0o077:
                raise AssertionError("others can read the history")
            (Path(folder) / "history.1").unlink()  # the history alone, since measured costs can end all drafts
        if accepted[1] <= accepted[0]:
            raise AssertionError(f"accepted before the restart and after: {accepted}")
        (Path(folder) / "history").write_bytes(b"something else")
        with Server(program, model, flags) as server:
            if "nothing is kept in " not in server.messages() or server.text({"prompt": LIST}) != plain:
                raise AssertionError("a damaged history was read, or ended the server")
        if (Path(folder) / "history").read_bytes() != b"something else":
            raise AssertionError("a file that was refused was changed")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    options = parser.parse_args()
    failed = 0
    for model in options.models:
        plain, _ = all_texts(options.server, model, [])
        ours, accepted = all_texts(options.server, model, ["--spec-type", "reprise"])
        sampled = 0  # other texts
        for name, text in plain.items():
            same = text == ours.get(name)
            sampled += SAMPLING in name and not same
            failed += not same and (SAMPLING not in name or sampled > 1)
            print(f"{model.name}: {name}: {'left out: refused' if text is None else 'same text' if same else 'ANOTHER TEXT'}")
            if not same:
                print(f"  plain:   {text!r}\n  reprise: {ours.get(name)!r}")
        separate, unified = (several_slots(options.server, model, cache) for cache in ("--no-kv-unified", "--kv-unified"))
        print(f"{model.name}: drafted tokens accepted: {accepted} with one slot, {separate} with four, {unified} with one cache for four")
        if "context shift" not in plain:
            print(f"{model.name}: context shift: left out, the server does not start with it")
        failed += accepted + separate + unified == 0
        restart(options.server, model, plain["greedy"])
        print(f"{model.name}: restart with a history: same text, more accepted")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
