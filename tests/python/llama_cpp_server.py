#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks `python -m llama_cpp.server` and `python -m reprise_decoding.llama_cpp` the same, and compares the answers.

    llama_cpp_server.py MODEL      a GGUF file in float32; needs "llama-cpp-python[server]"
"""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

LIST = "Write the words red, green, blue and yellow in this order, four times."
CHAT = {"messages": [{"role": "user", "content": LIST}], "max_tokens": 96, "temperature": 0.0}
TEXT = {"prompt": "Copy this list: red, green, blue. The copy: red, green,", "max_tokens": 60, "temperature": 0.0}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("chat/completions", CHAT),
    "chat, streaming": ("chat/completions", {**CHAT, "stream": True}),
    "chat, streaming with a stop string": ("chat/completions", {**CHAT, "stream": True, "stop": ["Yellow"]}),
    "completion": ("completions", TEXT),
    "completion with a stop string": ("completions", {**TEXT, "stop": ["list is"]}),
    "completion, min_tokens": ("completions", {**TEXT, "prompt": "Say yes.", "min_tokens": 40}),
}


def ask(port: int, path: str, request: dict[str, Any]) -> str:
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/{path}", json.dumps(request).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(asked, timeout=300) as answer:
        body = answer.read().decode()
    lines = [line[6:] for line in body.splitlines() if line.startswith("data: {")] if request.get("stream") else [body]
    choices = [json.loads(line)["choices"][0] for line in lines]
    return "".join(
        choice.get("text") or (choice.get("delta") or choice.get("message") or {}).get("content") or ""
        for choice in choices
    )


def answers(module: str, model: str) -> tuple[dict[str, str], str]:
    """Returns the answers of a server, and what it wrote."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", module, "--model", model, "--port", str(port), "--verbose", "false"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )
    try:
        end = time.monotonic() + 120
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=5).close()
                break
            except urllib.error.URLError:
                if server.poll() is not None or time.monotonic() > end:
                    raise
                time.sleep(0.2)
        found = {name: ask(port, *request) for name, request in REQUESTS.items()}
    finally:
        server.send_signal(signal.SIGINT)
        written = server.communicate(timeout=60)[0]
        print(written, file=sys.stderr)
    return found, written


def main() -> int:
    plain, _ = answers("llama_cpp.server", sys.argv[1])
    drafted, written = answers("reprise_decoding.llama_cpp", sys.argv[1])
    failed = False
    for name, text in plain.items():
        same = text == drafted[name]
        failed = failed or not same or not text
        print(f"{name:36} {'same text' if same else 'OTHER TEXT'} {text[:60]!r}")
        if not same:
            print(f"{'':36} {drafted[name]!r}")
    counts = re.search(r"Statistics\(tokens=(\d+), passes=(\d+)", written)
    print(counts and counts.group())
    failed = failed or counts is None or int(counts[1]) <= int(counts[2])
    print("FAILED" if failed else "passed")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
