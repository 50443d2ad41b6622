#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Answers as llama-server does, from no model: the ids are the characters of the text, and each answer repeats the end
of its prompt. With --spec-type, half of the tokens count as drafted and accepted. --near and --wide change the third
token: to one that is nearly as likely, or to one that is not."""
import http.server
import json
import sys

FLAGS = sys.argv[1:]
PORT = int(FLAGS[FLAGS.index("--port") + 1])


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, reply):
        text = json.dumps(reply).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        self.answer({"status": "ok"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/apply-template":
            shown = "".join(f"[{m['role']}:{m['content']}]" for m in body["messages"])
            return self.answer({"prompt": shown + "[assistant:" * body.get("add_generation_prompt", True)})
        if self.path == "/tokenize":
            return self.answer({"tokens": [ord(c) for c in body["content"]]})
        if self.path == "/detokenize":
            return self.answer({"content": "".join(map(chr, body["tokens"]))})
        tokens = [ord("a") + (i + len(body["prompt"])) % 7 for i in range(body["n_predict"])]
        probabilities = [{"top_logprobs": [{"id": t + i, "logprob": -(i**4) / 100} for i in range(3)]} for t in tokens]
        if len(tokens) > 2:
            tokens[2] += 1 if "--near" in FLAGS else 2 if "--wide" in FLAGS else 0
        timings = {"predicted_ms": 2.0 * len(tokens), "prompt_ms": 1.0}
        if "--spec-type" in FLAGS:
            drafted = len(tokens) // 2
            timings |= {"predicted_ms": 1.0 * len(tokens), "draft_n": drafted, "draft_n_accepted": drafted}
        return self.answer({"tokens": tokens, "stop_type": "limit", "timings": timings, "completion_probabilities": probabilities})


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
