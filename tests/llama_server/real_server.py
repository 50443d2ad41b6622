#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The texts of a real llama-server with --spec-type reprise are those of plain decoding.

    real_server.py SERVER MODEL...

Context shift, seeded sampling, all processors of logits, a request after a cancelled one, a prompt that goes on or is
edited, several slots, a restart with a history, and what a request may say: a bound on its drafts, and a salt. The
timings of requests are those of /metrics. All this also with a draft model beside reprise: the model itself, which is
right and slow. Abilities that a model lacks are left out, and named. One of five sampled
texts may differ: llama.cpp's logits of a row are rounded otherwise beside other rows, and its own drafters show the
same.
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
TYPES = {"reprise": ["--spec-type", "reprise"], "reprise and a draft model": ["--spec-type", "draft-simple,reprise", "-md"]}
STORY = {"prompt": "The harbour master opened the letter and read", "n_predict": 60}
LIST = "Copy: red green blue red green blue one two three red green blue one two three red green"
NAMES = {
    "type": "array",
    "items": {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name", "age"]},
    "minItems": 4,
    "maxItems": 6,
}
BUDGET_SPENT = "Enough!"
PROCESSORS = {  # what changes logits in this server, besides the samplers of `SAMPLING`
    "grammar": {"prompt": "JSON list of names: ", "json_schema": NAMES, "n_predict": 150},
    "logit_bias": {"prompt": LIST, "logit_bias": [[" red", False], [" blue", -2.0], [" e", 1.5]]},
    "penalties": {"prompt": LIST, "repeat_penalty": 1.1, "frequency_penalty": 0.2, "presence_penalty": 0.1},
    "DRY": {"prompt": LIST, "dry_multiplier": 0.8, "dry_allowed_length": 3},
    "reasoning budget": {
        "prompt": LIST + "<think>",
        "generation_prompt": "<think>",
        "reasoning_budget_tokens": 12,
        "reasoning_budget_start_tag": "<think>",
        "reasoning_budget_end_tag": "</think>",
        "reasoning_budget_message": BUDGET_SPENT,
    },
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

    def post(self, body: dict, path: str = "completion") -> dict | None:
        """The answer; None if the server refuses the request."""
        body = {"temperature": 0, "top_k": 1, "seed": 1, "n_predict": 100, **body}
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/{path}", json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=300) as reply:
                answer = json.load(reply)
        except urllib.error.HTTPError as error:
            if error.code != 400:
                raise
            return None
        self.drafted += answer["timings"].get("draft_n", 0)
        self.accepted += answer["timings"].get("draft_n_accepted", 0)
        return answer

    def text(self, body: dict) -> str | None:
        answer = self.post(body)
        return None if answer is None else answer["content"]

    def totals(self) -> dict[str, int]:
        """Returns the counters of /metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as reply:
            lines = [line.split() for line in reply.read().decode().splitlines() if line.startswith("llamacpp:")]
        return {name.removeprefix("llamacpp:"): int(float(value)) for name, value in lines}

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
    for name, body in PROCESSORS.items():
        texts[name] = server.text(body)
        texts[f"{name}, again"] = server.text(body)  # drafted from the first answer
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


def wanted(holds: bool, *seen: object) -> None:
    if not holds:
        raise AssertionError(f"unexpected: {seen}")


def what_requests_say(program: Path, model: Path) -> str:
    flags = ["-np", "1", "-c", "1024", "--spec-type", "reprise", "--metrics"]
    # A new server for each part, before times of a busy machine can end all drafts.
    with Server(program, model, flags) as server:
        salted = [server.post({**STORY, "cache_salt": salt}) for salt in ("a", "b", "a")]
        first, other, again = (answer["timings"].get("draft_n_accepted", 0) for answer in salted)
        wanted(2 * max(first, other) < again, "accepted", first, other, again)  # the text may repeat itself a little
    with Server(program, model, flags) as server:
        answers = []

        def timings(body: dict, path: str = "completion") -> dict:
            answers.append(server.post({"return_tokens": True, **body}, path))
            said = {"draft_n": 0, "draft_n_accepted": 0, "draft_accepted_at": [], **answers[-1]["timings"]}
            places = said["draft_accepted_at"]
            wanted(len(places) == said["draft_n_accepted"] <= said["draft_n"], said)
            wanted(places == sorted(set(places)) and all(0 < at < said["predicted_n"] for at in places), said)
            # Each pass has one token that was not drafted, unless it only repeats the accepted rows after a rollback.
            repeated = 1 + said["predicted_passes"] - (said["predicted_n"] - len(places))
            wanted(repeated == 0 or (repeated > 0 and "hybrid" in model.name), repeated, said)
            return said

        off = timings({**STORY, "speculative.n_max": 0})
        wanted(off["draft_n"] == 0 and off["predicted_passes"] == off["predicted_n"] - 1, off)
        for _ in range(5):  # until the costs allow a draft
            one = timings({**STORY, "speculative.n_max": 1})
            if one["draft_n"] > 0:
                break
        wanted(0 < one["draft_n"] == server.totals()["spec_decode_num_drafts_total"], "one token in each draft", one)
        timings(STORY)
        wanted(len({answer["content"] for answer in [*answers, *salted]}) == 1, answers)
        chat = {"messages": [{"role": "user", "content": LIST}], "max_tokens": 60}
        timings({**chat, "cache_salt": "a"}, "v1/chat/completions")
        wanted(timings({**chat, "speculative.n_max": 0}, "v1/chat/completions")["draft_n"] == 0, answers[-1])

        totals = server.totals()
        for total, name in {
            "spec_decode_num_draft_tokens_total": "draft_n",
            "spec_decode_num_accepted_tokens_total": "draft_n_accepted",
            "predicted_passes_total": "predicted_passes",
            "tokens_predicted_total": "predicted_n",
        }.items():
            summed = sum(answer["timings"].get(name, 0) for answer in answers)
            wanted(totals[total] == summed > 0, total, totals[total], summed)
        for bad in ({"cache_salt": ""}, {"cache_salt": 5}, {"speculative.n_max": -1}, {"speculative.n_max": "one"}):
            wanted(server.post({**STORY, **bad}) is None, bad)
    own = ["--spec-type", "ngram-mod", "--spec-ngram-mod-n-match", "4", "--spec-ngram-mod-n-min", "2"]
    with Server(program, model, ["-np", "1", "-c", "1024", *own]) as server:
        body = {"prompt": f"{LIST} {LIST} {LIST}", "n_predict": 60}
        said = [server.post({**body, **bound})["timings"] for bound in ({}, {}, {"speculative.n_max": 0})]
        drafted = [timing.get("draft_n", 0) for timing in said]
        wanted(drafted[1] > 0 == drafted[2], "the server's own type", drafted)
    bounded = f"with bound 1: {one['draft_n_accepted']} of {one['draft_n']}"
    return f"accepted {first}, with another salt {other}, again {again}; {bounded}"


def several_slots(program: Path, model: Path, flags: list[str]) -> int:
    """Many requests over four slots, some cancelled: the server stays up, and drafts."""
    with Server(program, model, ["-np", "4", "-c", "4096", *flags]) as server:

        def client(number: int) -> None:
            for turn in range(6):
                body = {"prompt": f"{number} {LIST} {turn}", "n_predict": 60}
                if number % 2:
                    body["cache_salt"] = f"client {number}"
                server.cancel(body) if (number + turn) % 4 == 0 else server.post(body)

        with concurrent.futures.ThreadPoolExecutor(6) as clients:
            list(clients.map(client, range(6)))  # raises what a client raised
        if server.text({"prompt": LIST}) is None or server.process.poll() is not None:
            raise AssertionError("the server ended: " + server.messages()[-800:])
        return server.accepted


def with_draft_model(program: Path, model: Path) -> str:
    """A draft model drafts text that no lookup can find. Without one, the server says what is missing, and starts."""
    accepted = []
    for flags in (TYPES["reprise"], [*TYPES["reprise and a draft model"], str(model)]):
        with Server(program, model, ["-np", "1", "-c", "1024", *flags]) as server:
            server.post({**STORY, "n_predict": 8})
            accepted.append(server.accepted)
    wanted(accepted[0] < accepted[1], "accepted of the first tokens without and with a draft model", *accepted)
    with Server(program, model, ["-np", "1", "-c", "1024", *TYPES["reprise and a draft model"][:2]]) as server:
        wanted("--spec-type draft-simple needs a draft model: give its GGUF file with -md" in server.messages(), server.messages()[-800:])
        wanted(server.text({**STORY, "n_predict": 8}) is not None)
    return f"accepted of 8 tokens: {accepted[1]}, and {accepted[0]} with reprise alone"


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
        for kind, flags in TYPES.items():
            flags = [*flags, str(model)] if flags[-1] == "-md" else flags
            ours, accepted = all_texts(options.server, model, flags)
            sampled = 0  # other texts
            for name, text in plain.items():
                same = text == ours.get(name)
                sampled += SAMPLING in name and not same
                failed += not same and (SAMPLING not in name or sampled > 1)
                said = "left out: refused" if text is None else "same text" if same else "ANOTHER TEXT"
                print(f"{model.name}: {kind}: {name}: {said}")
                if not same:
                    print(f"  plain: {text!r}\n  {kind}: {ours.get(name)!r}")
            caches = ("--no-kv-unified", "--kv-unified")
            separate, unified = (several_slots(options.server, model, [cache, *flags]) for cache in caches)
            print(f"{model.name}: {kind}: drafted tokens accepted: {accepted} with one slot, {separate} with four, {unified} with one cache for four")
            failed += accepted + separate + unified == 0
        if "context shift" not in plain:
            print(f"{model.name}: context shift: left out, the server does not start with it")
        wanted(BUDGET_SPENT in (plain["reasoning budget"] or ""), plain["reasoning budget"])
        print(f"{model.name}: requests with salts and bounds: {what_requests_say(options.server, model)}")
        print(f"{model.name}: with a draft model: {with_draft_model(options.server, model)}")
        restart(options.server, model, plain["greedy"])
        print(f"{model.name}: restart with a history: same text, more accepted")
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
