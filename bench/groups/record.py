#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records groups of sampled answers with llama-cpp-python: several answers to each prompt of a trace.

    python3 bench/groups/record.py --model MODEL.gguf --temperature 1.0 bench/traces/json.jsonl > groups.jsonl

The prompts are those of the first turns. The output is a trace: a session for each answer, with its prompt. Consecutive
sessions with the same prompt are a group. The answers are sampled from the whole distribution at the given
temperature (no top-k, no top-p). The seed of an answer depends on --seed and its id alone. "nats" is the mean of -ln p
of the answer's tokens, so its mean estimates the entropy that RL trainers log. Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
import zlib

import llama_cpp as llama
import numpy


def sampler(temperature: float, seed: int) -> ctypes.c_void_p:
    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_temp(temperature))
    llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_dist(seed))
    return chain


def answer(context: ctypes.c_void_p, vocabulary: ctypes.c_void_p, prompt: list[int], longest: int,
           temperature: float, seeds: range) -> list[tuple[list[int], str, float]]:
    """Returns an answer for each seed, decoded as sequences of one batch, how it ended, and its nats."""
    memory = llama.llama_get_memory(context)
    llama.llama_memory_clear(memory, True)
    tokens = (llama.llama_token * len(prompt))(*prompt)
    if llama.llama_decode(context, llama.llama_batch_get_one(tokens, len(prompt))):
        sys.exit(f"record.py: a prompt of {len(prompt)} tokens cannot be decoded: give a larger --context")
    for sequence in range(1, len(seeds)):
        llama.llama_memory_seq_cp(memory, 0, sequence, -1, -1)
    samplers = [sampler(temperature, seed) for seed in seeds]
    answers: list[list[int]] = [[] for _ in seeds]
    ends = ["length"] * len(seeds)
    nats = [0.0] * len(seeds)
    vocabulary_size = llama.llama_vocab_n_tokens(vocabulary)
    rows = dict.fromkeys(range(len(seeds)), len(prompt) - 1)
    batch = llama.llama_batch_init(len(seeds), 0, 1)
    while rows:
        running = []
        for sequence, row in rows.items():
            token = llama.llama_sampler_sample(samplers[sequence], context, row)
            answers[sequence].append(token)
            logits = numpy.ctypeslib.as_array(llama.llama_get_logits_ith(context, row), (vocabulary_size,))
            logits = logits / temperature
            nats[sequence] += float(logits.max() + numpy.log(numpy.exp(logits - logits.max()).sum()) - logits[token])
            if llama.llama_vocab_is_eog(vocabulary, token):
                ends[sequence] = "eos"
            elif len(answers[sequence]) < longest:
                running.append(sequence)
        rows = {sequence: row for row, sequence in enumerate(running)}
        batch.n_tokens = len(running)
        for sequence, row in rows.items():
            batch.token[row] = answers[sequence][-1]
            batch.pos[row] = len(prompt) + len(answers[sequence]) - 1
            batch.n_seq_id[row] = 1
            batch.seq_id[row][0] = sequence
            batch.logits[row] = True
        if running and llama.llama_decode(context, batch):
            sys.exit("record.py: a pass failed: give a larger --context")
    llama.llama_batch_free(batch)
    for chain in samplers:
        llama.llama_sampler_free(chain)
    return [(tokens, end, sum_ / len(tokens)) for tokens, end, sum_ in zip(answers, ends, nats)]


def main() -> None:
    text = (__doc__ or "").split("\n\n", 1)
    parser = argparse.ArgumentParser(description=text[0], epilog=text[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="+", metavar="TRACE", help="the prompts: a trace of this model")
    parser.add_argument("--model", required=True, metavar="FILE", help="a GGUF file")
    parser.add_argument("--answers", type=int, default=16, metavar="N", help="answers to each prompt (16)")
    parser.add_argument("--temperature", type=float, default=1.0, metavar="T", help="(1.0)")
    parser.add_argument("--max-tokens", type=int, default=200, metavar="N", help="of an answer (200)")
    parser.add_argument("--sessions", default="1-4", metavar="FIRST-LAST", help="lines of each trace to use (1-4)")
    parser.add_argument("--context", type=int, default=8192, metavar="N", help="KV cache of a group, in tokens (8192)")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="(1)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(1)")
    args = parser.parse_args()

    llama.llama_backend_init()
    silent = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(silent, ctypes.c_void_p(0))
    model = llama.llama_model_load_from_file(args.model.encode(), llama.llama_model_default_params())
    if not model:
        sys.exit(f"record.py: {args.model}: cannot be loaded: give a GGUF file")
    params = llama.llama_context_default_params()
    params.n_ctx = params.n_batch = args.context
    params.n_seq_max = args.answers
    params.kv_unified = True
    params.n_threads = params.n_threads_batch = args.threads
    context = llama.llama_init_from_model(model, params)
    if not context:
        sys.exit("record.py: no context: give a smaller --context")
    first, last = (int(number) for number in args.sessions.split("-"))
    for path in args.traces:
        with open(path, encoding="utf-8") as lines:
            sessions = [json.loads(line) for line in lines][first - 1:last]
        for session in sessions:
            prompt = session["turns"][0]["prompt"]
            seed = args.seed + zlib.crc32(session["id"].encode()) % 2**30
            done = answer(context, llama.llama_model_get_vocab(model), prompt, args.max_tokens, args.temperature,
                          range(seed, seed + args.answers))
            for number, (output, finish, nats) in enumerate(done, 1):
                turn = {"prompt": prompt, "output": output, "finish": finish, "nats": round(nats, 2)}
                print(json.dumps({"id": f"{session['id']}/{number:02}", "category": session["category"],
                                  "turns": [turn]}, separators=(",", ":")), flush=True)
            print(f"{session['id']}: {sum(len(output) for output, _, _ in done)} tokens", file=sys.stderr)


if __name__ == "__main__":
    main()
