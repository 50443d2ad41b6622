#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""transformers with reprise as programs use it: streaming, stop strings, threads, pipelines, penalties.

Each check runs plain and with drafts, and compares the outputs. Run it with the Python of an environment that has
transformers, torch and this package. It prints a line for each check, with the passes of both ways. The exit status is
1 if an output differs, if drafts save no passes, or if a request that drafts cannot serve does not run as before.
Without a model, it runs the checks of small models with random weights: caches, attention and logits processors.
"""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import argparse  # noqa: E402
import copy  # noqa: E402
import functools  # noqa: E402
import gc  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import weakref  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402

import torch  # noqa: E402
import transformers  # noqa: E402
from reprise_decoding import request  # noqa: E402
from reprise_decoding.transformers import disable, enable  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, TextIteratorStreamer, pipeline  # noqa: E402
from transformers.generation.logits_process import LogitsProcessor  # noqa: E402
from transformers.generation.streamers import BaseStreamer  # noqa: E402

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()

CODE = """Rename the variable total to price. Write the whole function again:

def add(items):
    total = 0
    for item in items:
        total = total + item.cost
    if total > 100:
        total = total * 0.9
    return total
"""
LIST = "Repeat this list twice: red, green, blue, yellow, orange, purple, black, white."
LINES = "Copy these lines:\nA: north gate, open\nB: south gate, open\nC: east gate, closed\nD: west gate, open\n"


class Program:
    """A model, and the passes that it has run."""

    def __init__(self, folder: str, tokens: int) -> None:
        self.folder, self.tokens = folder, tokens
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = counted(AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32))
        self.pipe = pipeline("text-generation", model=self.model, tokenizer=self.tokenizer)

    def inputs(self, text: str) -> Any:
        chat = [{"role": "user", "content": text}]
        options = {"add_generation_prompt": True, "return_tensors": "pt", "return_dict": True}
        return self.tokenizer.apply_chat_template(chat, **options)

    def generate(self, text: str, **options: Any) -> Any:
        inputs = self.inputs(text)
        made = self.model.generate(**inputs, **{"max_new_tokens": self.tokens, "do_sample": False, **options})
        made = getattr(made, "sequences", made)
        return made[:, inputs.input_ids.shape[1] :].tolist()

    def stream(self, text: str, **options: Any) -> Any:
        streamer = TextIteratorStreamer(self.tokenizer, skip_prompt=True, timeout=300)
        thread = threading.Thread(target=self.generate, args=(text,), kwargs={"streamer": streamer, **options})
        thread.start()
        parts = list(streamer)
        thread.join()
        return "".join(parts)

    def threads(self) -> Any:
        """Three rounds of two threads. Threads of a round end, and new ones begin."""
        made: dict[Any, Any] = {}
        for number in range(3):
            def work(text: str, number: int = number) -> None:
                made[number, text] = self.generate(text, max_new_tokens=self.tokens // 2)

            threads = [threading.Thread(target=work, args=(text,)) for text in (CODE, LIST)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return sorted(made.items())

    def chat(self) -> Any:
        """A chat of two turns in a pipeline."""
        chat = [{"role": "user", "content": LIST}]
        for more in ("Once more, please.", ""):
            chat = self.pipe(chat, max_new_tokens=self.tokens, do_sample=False)[0]["generated_text"]
            if more:
                chat.append({"role": "user", "content": more})
        return chat

    def grammar(self) -> Any:
        """Only tokens of the list are allowed."""
        allowed = sorted({*self.tokenizer(LIST.split(": ")[1]).input_ids, self.tokenizer.eos_token_id})
        return self.generate(LIST, prefix_allowed_tokens_fn=lambda batch, ids: allowed)

    def strict_grammar(self) -> Any:
        """A function that knows committed prefixes only: each is longer by a token than that before it."""
        everything, last = list(range(len(self.tokenizer))), [0]

        def allowed(batch: int, ids: Any) -> list[int]:
            known = last[0] in (0, len(ids) - 1)
            last[0] = len(ids)
            return everything if known else []

        return self.generate(LIST, prefix_allowed_tokens_fn=allowed)

    def own_streamer(self) -> Any:
        """A streamer that takes the prompt and then single tokens."""

        class Tokens(BaseStreamer):  # type: ignore[misc]
            def __init__(self) -> None:
                self.prompt: Any = None
                self.tokens: list[int] = []

            def put(self, value: Any) -> None:
                if self.prompt is None:
                    self.prompt = value
                else:
                    assert value.shape == (1,)
                    self.tokens.append(value.item())

            def end(self) -> None: ...

        streamer = Tokens()
        return self.generate(LIST, streamer=streamer), streamer.tokens

    def own_positions(self) -> Any:
        """Every second position."""
        return self.generate(LIST, position_ids=2 * torch.arange(self.inputs(LIST).input_ids.shape[1])[None])

    def after_an_exception(self) -> Any:
        class Streamer:
            count = 0

            def put(self, value: Any) -> None:
                self.count += 1
                if self.count > 5:
                    raise ConnectionError("the client has gone")

            def end(self) -> None: ...

        try:
            self.generate(LIST, streamer=Streamer())
        except ConnectionError:
            return self.generate(LIST)
        raise AssertionError("the streamer has not raised")

    def batch(self, **options: Any) -> Any:
        self.tokenizer.padding_side = "left"
        inputs = self.tokenizer([LIST, CODE], return_tensors="pt", padding=True)
        return self.model.generate(**inputs, max_new_tokens=12, do_sample=False, **options).tolist()

    def padded(self) -> Any:
        """One sequence with padding before it."""
        inputs = self.inputs(LIST)
        ids = torch.cat([torch.zeros(1, 5, dtype=torch.long), inputs.input_ids], dim=1)
        mask = torch.cat([torch.zeros(1, 5, dtype=torch.long), inputs.attention_mask], dim=1)
        made = self.model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=self.tokens, do_sample=False)
        return made.tolist()

    def filled_cache(self, count: int = 24) -> Any:
        """Two turns with one cache."""
        cache = DynamicCache(config=self.model.config)
        ids = self.inputs(LIST).input_ids
        for _ in range(2):
            mask = torch.ones_like(ids)
            ids = self.model.generate(
                input_ids=ids, attention_mask=mask, past_key_values=cache, max_new_tokens=count, do_sample=False
            )
            ids = torch.cat([ids, self.tokenizer("\nred, green", return_tensors="pt").input_ids], dim=1)
        return ids.tolist()

    def own_criterion(self) -> Any:
        seen: list[int] = []

        def count(ids: Any, scores: Any) -> Any:
            seen.append(int(ids[0, -1]))
            return torch.tensor([len(seen) == 20])

        return self.generate(LIST, stopping_criteria=[count]), seen

    def own_processor(self) -> Any:
        seen: list[int] = []

        def see(ids: Any, scores: Any) -> Any:
            seen.append(ids.shape[1])
            return scores

        return self.generate(LIST, logits_processor=[see], max_new_tokens=20), seen

    def custom(self) -> Any:
        """A criterion and a processor that are functions of their arguments. The criterion fires inside a draft."""
        stop = self.tokenizer(" closed").input_ids[-1]
        return self.generate(
            LINES,
            stopping_criteria=[lambda ids, scores: ids[0, -1] == stop],
            logits_processor=[lambda ids, scores: scores - 0.5 * (scores > 100)],
        )

    def saved(self) -> Any:
        """The names in a saved model, and the output of a copy."""
        with tempfile.TemporaryDirectory() as folder:
            self.model.config.save_pretrained(folder)
            model = copy.deepcopy(self.model)
            del model.forward
            model.save_pretrained(folder)
            again = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
            inputs = self.inputs(LIST)
            return again.config.architectures, [
                each.generate(**inputs, max_new_tokens=10, do_sample=False).tolist() for each in (model, again)
            ]


PASSES: list[int] = []


def counted(model: Any) -> Any:
    """Counts the passes of a model."""
    forward = model.forward

    @functools.wraps(forward)
    def count(*positional: Any, **named: Any) -> Any:
        PASSES.append(1)
        return forward(*positional, **named)

    model.forward = count
    return model


FEWER, SAME, ANY = "fewer", "same", "any"


def checks(program: Program, leaves: int) -> list[tuple[str, str, Callable[[], Any]]]:
    """Returns the name of each check, how many passes are expected with drafts, and what it runs."""
    make, tokenizer, eight = program.generate, program.tokenizer, {"max_new_tokens": 8}
    chains = [
        ("chat template, code", FEWER, lambda: make(CODE)),
        ("streaming", FEWER, lambda: program.stream(LIST)),
        ("stop string", FEWER, lambda: make(LINES, stop_strings=["D: we"], tokenizer=tokenizer)),
        ("stop strings and streaming", FEWER,
         lambda: program.stream(LINES, stop_strings=["nowhere", "D: we"], tokenizer=tokenizer)),
        ("two threads, three rounds", FEWER, program.threads),
        ("pipeline, chat of two turns", FEWER, program.chat),
        ("repetition_penalty=1.05", FEWER, lambda: make(LIST, repetition_penalty=1.05)),
        ("no_repeat_ngram_size=12", FEWER, lambda: make(LIST, no_repeat_ngram_size=12)),
        ("a streamer of single tokens", FEWER, program.own_streamer),
        ("prefix_allowed_tokens_fn", SAME, program.grammar),
        ("prefix_allowed_tokens_fn that refuses other prefixes", SAME, program.strict_grammar),
        ("prefix_allowed_tokens_fn with custom=True", FEWER, program.grammar),
        ("position_ids of the caller", ANY if leaves == 1 else SAME, program.own_positions),
        ("two calls after one another", FEWER, lambda: [make(LINES), make(LINES)]),
        ("after an exception in a streamer", FEWER, program.after_an_exception),
        ("prompt_lookup_num_tokens=0", SAME, 
         lambda: make(LIST, **({"prompt_lookup_num_tokens": 0} if on(program) else {}))),
        ("a batch of two", SAME, program.batch),
        ("criterion that keeps state", SAME, program.own_criterion),
        ("processor that keeps state", SAME, program.own_processor),
        ("criterion and processor with custom=True", FEWER, program.custom),
        ("filled cache", FEWER, program.filled_cache),
    ]  # fmt: skip
    if leaves > 1:
        return [*chains, ("one padded sequence", SAME, program.padded)]
    other = AutoModelForCausalLM.from_pretrained(program.folder, dtype=torch.float32)
    enable(other)
    return [
        *chains,
        ("one padded sequence", FEWER, program.padded),
        ("return_dict_in_generate", FEWER,
         lambda: make(LIST, return_dict_in_generate=True, output_scores=True, output_hidden_states=True)),
        ("beams", SAME, lambda: program.batch(num_beams=2)),
        ("num_return_sequences=2, beams", SAME, lambda: make(LIST, num_beams=2, num_return_sequences=2, **eight)),
        ("use_cache=False", SAME, lambda: make(LIST, use_cache=False, **eight)),
        ("static cache", SAME, lambda: make(LIST, cache_implementation="static", disable_compile=True, **eight)),
        ("the engine's lookup", SAME, lambda: make(LIST, prompt_lookup_num_tokens=10)),
        ("assistant_model, which has drafts too", ANY, lambda: make(LIST, assistant_model=other, max_new_tokens=16)),
        ("saved, loaded and copied", ANY, program.saved),
    ]  # fmt: skip


def on(program: Program) -> bool:
    return hasattr(type(program.model), "_drafts")


REFUSED = "refused"


def kinds() -> list[tuple[str, str, str, Any, Callable[[], Any]]]:
    """Small models with random weights: other caches and other kinds of attention.

    Of each: how many passes are expected with chains and with branches, the model, and what runs it.
    """
    small = {"vocab_size": 97, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 4,
             "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 512,
             "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 96}  # fmt: skip
    gpt = {"vocab_size": 97, "hidden_size": 32, "n_layer": 2, "n_head": 4, "num_hidden_layers": 2,
           "num_attention_heads": 4, "bos_token_id": 1, "eos_token_id": 96}  # fmt: skip
    configs = [
        (FEWER, REFUSED, transformers.MistralConfig(**small, sliding_window=16)),
        (FEWER, REFUSED, transformers.Gemma3TextConfig(**small, sliding_window=16,
                                                       layer_types=["sliding_attention", "full_attention"] * 2)),
        (FEWER, REFUSED, transformers.Lfm2Config(**small, layer_types=["conv", "full_attention"] * 2)),
        (FEWER, REFUSED, transformers.FalconConfig(**gpt, alibi=True)),
        (FEWER, REFUSED, transformers.GPTNeoConfig(**gpt, num_layers=2, num_heads=4,
                                                   attention_types=[[["global", "local"], 1]], window_size=8)),
        (FEWER, SAME, transformers.BloomConfig(**gpt)),
        (FEWER, SAME, transformers.T5Config(vocab_size=97, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4,
                                            decoder_start_token_id=0, pad_token_id=0, eos_token_id=96)),
        (FEWER, FEWER, transformers.GPT2Config(vocab_size=97, n_embd=32, n_layer=2, n_head=4, bos_token_id=1,
                                               eos_token_id=96)),
    ]  # fmt: skip
    found: list[tuple[str, str, str, Any, Callable[[], Any]]] = []
    for chains, branches, config in configs:
        torch.manual_seed(7)
        auto = transformers.AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        model = counted(auto.from_config(config).to(torch.float64).eval())
        ids = torch.tensor([[*range(3, 40), *range(3, 30)]])

        def run(model: Any = model, ids: Any = ids) -> Any:
            return model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=60, do_sample=False).tolist()

        found.append((config.model_type, chains, branches, model, run))
    return found


class ThinkingBudget(LogitsProcessor):  # type: ignore[misc]
    """Forces the end of thinking after a number of tokens without it, and forbids it later. A function of the ids."""

    def __init__(self, prompt: int, budget: int, end: int) -> None:
        self.prompt, self.budget, self.end = prompt, budget, end

    def __call__(self, ids: Any, scores: Any) -> Any:
        made = ids[0, self.prompt :]
        forced = torch.full_like(scores, -float("inf"))
        forced[:, self.end] = 0
        if len(made) == self.budget and self.end not in made:
            return forced
        return torch.where(forced == 0, -float("inf"), scores) if self.end in made else scores


class CountingBudget(LogitsProcessor):  # type: ignore[misc]
    """The same, but it counts its calls: it keeps state, so it must see committed tokens only."""

    def __init__(self, budget: int, end: int) -> None:
        self.left, self.end = budget, end

    def __call__(self, ids: Any, scores: Any) -> Any:
        self.left -= 1
        if self.left == -1:
            scores = torch.full_like(scores, -float("inf"))
            scores[:, self.end] = 0
        return scores


def processors(model: Any) -> list[tuple[str, str, Callable[[], Any]]]:
    """Logits processors: the name of each check, the passes that are expected with drafts, and what it runs."""
    ids = torch.tensor([[*range(3, 40), *range(3, 30)]])
    count = ids.shape[1]

    def make(**options: Any) -> Any:
        processors = [build() for build in options.pop("build", ())]
        options = {"max_new_tokens": 80, "do_sample": False, **options}
        mask = torch.ones_like(ids)
        return model.generate(ids, attention_mask=mask, logits_processor=processors, **options)[0, count:].tolist()

    text = make()
    common = max(text, key=text.count)  # a token that the model repeats
    end = next(token for token in range(40, 96) if token not in text)
    budget, counting = (lambda: ThinkingBudget(count, 30, end)), (lambda: CountingBudget(30, end))
    watermark = transformers.WatermarkingConfig(bias=3.0, seeding_scheme="lefthash")
    chosen: list[tuple[str, str, dict[str, Any]]] = [
        ("min_new_tokens", FEWER, {"min_new_tokens": 40, "eos_token_id": common}),
        ("min_length", FEWER, {"min_length": count + 30, "eos_token_id": common}),
        ("repetition_penalty", ANY, {"repetition_penalty": 1.1, "eos_token_id": end}),
        ("no_repeat_ngram_size", FEWER, {"no_repeat_ngram_size": 12}),
        ("encoder_no_repeat_ngram_size", FEWER, {"encoder_no_repeat_ngram_size": 1, "eos_token_id": end}),
        ("suppress_tokens", FEWER, {"suppress_tokens": [common]}),
        ("begin_suppress_tokens", FEWER, {"begin_suppress_tokens": [text[0]]}),
        ("bad_words_ids", FEWER, {"bad_words_ids": [text[-3:-1], [text[3]]]}),
        ("sequence_bias", FEWER, {"sequence_bias": {(text[0],): -9.0, tuple(text[-3:-1]): -1.0}}),
        ("exponential_decay_length_penalty", FEWER,
         {"exponential_decay_length_penalty": (40, 1.3), "eos_token_id": end}),
        ("forced_eos_token_id", FEWER, {"forced_eos_token_id": end}),
        ("a watermark", FEWER, {"watermarking_config": watermark}),
        ("several", FEWER, {"min_new_tokens": 50, "eos_token_id": common, "repetition_penalty": 1.02,
                                "suppress_tokens": [text[0]], "no_repeat_ngram_size": 12}),
        ("a thinking budget", SAME, {"build": [budget]}),
        ("a thinking budget, custom=True", FEWER, {"build": [budget]}),
        ("a thinking budget and others, custom=True", FEWER,
         {"build": [budget], "min_new_tokens": 50, "eos_token_id": common, "repetition_penalty": 1.02}),
        ("a thinking budget that counts its calls", SAME, {"build": [counting]}),
    ]  # fmt: skip
    for name, _, options in chosen:
        if make(**options) == text:
            raise AssertionError(f"{name}: the processor changes nothing, so its check would prove nothing")
    return [(f"{name}, random weights", passes, functools.partial(make, **more)) for name, passes, more in chosen]


def small_llama() -> Any:
    """A model with random weights that repeats itself."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(vocab_size=97, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
                                      pad_token_id=0, bos_token_id=1, eos_token_id=96)  # fmt: skip
    return counted(AutoModelForCausalLM.from_config(config).to(torch.float64).eval())


def assisted(model: Any, leaves: int) -> list[tuple[str, str, bool, int, int]]:
    """Requests with an assistant model: of each the name, the passes that are expected, whether the text is that of
    plain decoding, the passes of the lookup alone, and those with the assistant.
    """
    ids = torch.tensor([[*range(3, 40), *range(3, 30)]])
    options: dict[str, Any] = {"attention_mask": torch.ones_like(ids), "max_new_tokens": 80}

    def make(**more: Any) -> Any:
        return model.generate(ids, **{**options, "do_sample": False, **more}).tolist()

    wanted, _ = run(make)
    right, other, found = small_llama(), small_llama(), []
    torch.manual_seed(8)
    for weights in other.parameters():
        torch.nn.init.normal_(weights, std=0.2)
    for each in (right, other):
        del each.forward  # only the passes of the model count
    for name, expected, assistant in (("the same weights", FEWER, right), ("other weights", ANY, other)):
        with enable(model, max_leaves=leaves, cost=0.0, head_cost=0.01):
            _, alone = run(make)
            made, passes = run(lambda assistant=assistant: make(assistant_model=assistant))
            torch.manual_seed(1)
            sampled = make(assistant_model=assistant, do_sample=True, top_k=1)  # one token is left to sample
        found.append((f"an assistant with {name}", expected, made == wanted == sampled, alone, passes))
    return found


def refusal(model: Any, leaves: int = 1) -> str:
    """Returns what enable() says of a model that it refuses."""
    try:
        enable(model, max_leaves=leaves)
    except ValueError as refused:
        return str(refused)
    disable(model)
    return "it was not refused"


def recurrent() -> str:
    config = transformers.MambaConfig(vocab_size=97, hidden_size=32, state_size=4, num_hidden_layers=2)
    return refusal(AutoModelForCausalLM.from_config(config))


def rank(number: int, folder: str) -> None:
    """One of two processes, over which a model is split."""
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2")
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=number, world_size=2)
    split = transformers.distributed.DistributedConfig(tp_plan="auto")
    said = refusal(AutoModelForCausalLM.from_pretrained(folder, distributed_config=split))
    torch.distributed.destroy_process_group()
    if said != "model: is split over 2 processes, which would draft different lengths":
        raise AssertionError(said)


def ranks() -> bool:
    """Returns whether the model of both processes was refused."""
    config = transformers.LlamaConfig(vocab_size=96, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
                                      num_attention_heads=4, num_key_value_heads=2)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        try:
            torch.multiprocessing.spawn(rank, (folder,), nprocs=2)
        except torch.multiprocessing.ProcessRaisedException as failed:
            print(failed)
            return False
    return True


def freed(program: Program) -> bool:
    """Returns whether a model with drafts is freed as soon as nothing refers to it."""
    model = AutoModelForCausalLM.from_pretrained(program.folder, dtype=torch.float32)
    drafts = enable(model)
    model.generate(**program.inputs(LIST), max_new_tokens=4, do_sample=False)
    gone = weakref.ref(model)
    gc.disable()
    del model
    freed = gone() is None and drafts.statistics.tokens == 4
    gc.enable()
    return freed


def run(check: Callable[[], Any]) -> tuple[Any, int]:
    PASSES.clear()
    made = check()
    return made, len(PASSES)


def compared(check: Callable[[], Any], wanted: Any, plain: int) -> tuple[bool, int, int]:
    made, passes = run(check)
    return made == wanted, plain, passes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", help="the folder of a chat model")
    parser.add_argument("--tokens", type=int, default=40, help="tokens of an output (default: 40)")
    parser.add_argument("--only", default="", help="run the checks with this word in their names")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    program = Program(arguments.model, arguments.tokens) if arguments.model else None
    failed = 0

    def report(name: str, expected: str, same: bool, plain: int, drafts: int) -> None:
        nonlocal failed
        held = same and (expected == ANY or (drafts < plain if expected == FEWER else drafts == plain))
        failed += not held
        saved = f"{plain:4} passes plain, {drafts:4} with drafts"
        print(f"{'ok    ' if held else 'FAILED'} {name:50} {saved}{'' if same else ', other output'}", flush=True)

    known: dict[str, tuple[Any, int]] = {}
    for leaves in (1, 8) if program is not None else ():
        for name, expected, check in checks(program, leaves):
            if arguments.only not in name:
                continue
            if name not in known:
                known[name] = run(check)
            wanted, plain = known[name]
            with enable(program.model, max_leaves=leaves, custom="custom=True" in name):
                made, passes = run(check)
            if leaves > 1:
                name += ", branches"
            report(name, expected, made == wanted, plain, passes)
    def confirm(name: str, held: bool, said: str = "") -> None:
        nonlocal failed
        failed += not held
        print(f"{'ok    ' if held else 'FAILED'} {name}{said and ': ' + said}", flush=True)

    for name, chains, branches, model, check in kinds():
        name += ", random weights"
        if arguments.only not in name:
            continue
        wanted, plain = run(check)
        with enable(model):
            report(name, chains, *compared(check, wanted, plain))
        if branches == REFUSED:
            said = refusal(model, leaves=8)
            confirm(f"{name}, branches", said.startswith("model: branches need full attention"), said)
            continue
        with enable(model, max_leaves=8):
            report(f"{name}, branches", branches, *compared(check, wanted, plain))
    model = small_llama()
    for name, expected, check in processors(model):
        if arguments.only not in name:
            continue
        wanted, plain = run(check)
        for leaves in (1, 8):
            with enable(model, max_leaves=leaves, custom="custom=True" in name):
                report(name + (", branches" if leaves > 1 else ""), expected, *compared(check, wanted, plain))
    for leaves in (1, 8):
        for name, *counts_of in assisted(model, leaves) if arguments.only in "an assistant" else ():
            report(f"{name}, random weights{', branches' if leaves > 1 else ''}", *counts_of)
    for leaves in (1, 8):
        for settings, longest in (({}, 16), ({"max_draft": 3}, 3), ({"enabled": False}, 0), ({"salt": "customer"}, 16)):
            name = f"request({settings}){', branches' if leaves > 1 else ''}"
            if arguments.only not in name:
                continue
            wanted, plain = run(model_output := processors(model)[0][2])
            with enable(model, max_leaves=leaves, cost=0.0), request(**settings) as one:
                made, passes = run(model_output)
            counts = one.statistics
            report(name, FEWER if longest else SAME, made == wanted, plain, passes)
            held = counts.passes == passes and counts.accepted == len(made) - passes
            confirm(f"{name}, counts", held and counts.drafted <= longest * counts.passes, str(counts))
    if program is not None and not arguments.only:
        kind = type(program.model)
        enable(program.model)
        disable(program.model)
        wanted, plain = known["chat template, code"]
        made, passes = run(lambda: program.generate(CODE))
        report("after disable()", SAME, made == wanted and type(program.model) is kind, plain, passes)
        said = recurrent()
        confirm("recurrent model", said == "model: the recurrent state of MambaForCausalLM cannot be rolled back", said)
        confirm("a model that is split over processes is refused", ranks())
        confirm("a model with drafts is freed without the collector", freed(program))
    print("FAILED" if failed else "passed")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
