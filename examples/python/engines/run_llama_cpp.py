# SPDX-License-Identifier: Apache-2.0
"""llama-cpp-python, for compare.py."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import llama_cpp
from engine import TOOL_CALL, Engine, Output, ended, timed
from llama_cpp import Llama, LlamaGrammar
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding
from prompts import prompts, text
from reprise_decoding.llama_cpp import DraftModel, enable

ORDER = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "item": {"type": "string", "maxLength": 20},
        "quantity": {"type": "integer", "minimum": 0, "maximum": 999},
        "city": {"type": "string", "maxLength": 20},
    },
    "required": ["name", "item", "quantity", "city"],
}


class LlamaCpp(Engine):
    name = "llama-cpp-python"
    version = llama_cpp.__version__
    lookup = "LlamaPromptLookupDecoding()"

    as_used = ("plain, logits_all", "reprise, logits_all")

    sampling = {"temp": 0.8, "top_k": 40, "top_p": 0.95}  # noqa: RUF012

    def __init__(self, model: str, options: dict[str, Any]) -> None:
        self._path, self._options = model, options
        self._users: dict[str, Llama] = {}  # by way of request()
        # One object for all ways: the rows of the prompt are run once, and are the same for all.
        self._llama = Llama(
            model, n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False, logits_all=True, seed=7, **_cache(model),
        )
        self._models: dict[str, Any] = {
            "plain": None, "lookup": LlamaPromptLookupDecoding(), "reprise": enable(self._llama, **options),
        }
        self.eos = self._llama.token_eos()
        self._rows: list[int] = []
        run = self._llama._ctx.decode

        def counted(batch: Any) -> None:
            self._rows.append(batch.n_tokens())
            run(batch)

        self._llama._ctx.decode = counted

    def seed(self, number: int) -> None:
        self._llama.set_seed(number)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._llama.tokenize(text.encode(), add_bos=False, special=True)
        return ids

    def prepare(self, ids: list[int]) -> None:
        self._llama.reset()
        self._llama.eval(ids)

    def decode(self, way: str, ids: list[int], count: int, **sampling: Any) -> Output:
        self._llama.draft_model = self._models[way]
        # The last token of the prompt is run again, by all ways alike.
        self._llama.n_tokens, self._llama._requires_eval = len(ids), True
        self._rows.clear()
        output = Output([])
        with timed(output):
            for token in self._llama.generate(ids, repeat_penalty=1.0, **{"temp": 0.0, "top_k": 1, **sampling}):
                output.tokens.append(token)
                if token == self.eos or len(output.tokens) == count:
                    break
        output.drafted = [rows - 1 for rows in self._rows]
        return output

    def renew(self) -> None:
        self._models["fresh"] = enable(self._llama, **self._options)

    def request(self, way: str, ids: list[int], count: int) -> Output:
        if way not in self._users:
            self._users[way] = self._user(way)
        llama = self._users[way]
        llama.reset()
        output = Output([])
        begun = time.process_time()
        for token in llama.generate(ids, repeat_penalty=1.0, temp=0.0):
            output.first = output.first or time.process_time() - begun
            output.tokens.append(token)
            if token == self.eos or len(output.tokens) == count:
                break
        output.seconds = time.process_time() - begun
        return output

    def _user(self, way: str) -> Llama:
        """A Llama object with the settings of a user: only drafts in the engine's own way need the logits of all rows."""
        draft_model = {"lookup": LlamaPromptLookupDecoding, "reprise, logits_all": lambda: DraftModel(**self._options)}
        llama = Llama(
            self._path, n_ctx=2048, n_threads=1, n_threads_batch=1, verbose=False,
            logits_all=way in ("lookup", *self.as_used), draft_model=draft_model.get(way, lambda: None)(),
        )
        if way == "reprise":
            enable(llama, **self._options)
        return llama

    def logits(self, ids: list[int]) -> Any:
        if ids[:-1] != self._llama._input_ids.tolist():
            self.prepare(ids[:-1])
        self._llama.eval(ids[-1:])
        return self._llama.scores[self._llama.n_tokens - 1]

    def passes(self, ids: list[int]) -> Callable[[int], float]:
        self.prepare(ids)
        more = (ids * 2)[:32]

        def run(rows: int) -> float:
            self._llama.n_tokens = len(ids)
            begun = time.process_time()
            self._llama.eval(more[:rows])
            return time.process_time() - begun

        return run

    def checks(self) -> Iterator[tuple[str, str, bool]]:
        ids = self.encode(prompts(["code-edit"], 1)[0][2])
        self.prepare(ids)
        outputs = []
        for way in ("plain", "reprise"):
            self.seed(7)
            outputs.append(self.decode(way, ids, 64, **self.sampling))
        plain, drafted = outputs
        same = plain.tokens == drafted.tokens
        yield "sampled, T = 0.8, seed 7", _told(plain, drafted), same
        for name, schema, question in (
            ("JSON grammar", ORDER, "Write this order as JSON: Ines bought 3 desks in Porto."),
            ("tool call", TOOL_CALL, "Call get_weather for Oslo on Sunday, as JSON."),
        ):
            ids = self.encode(text(question))
            self.prepare(ids)
            outputs = []
            for way in ("plain", "reprise"):
                grammar = LlamaGrammar.from_json_schema(json.dumps(schema), verbose=False)
                outputs.append(self.decode(way, ids, 96, grammar=grammar))
            plain, drafted = outputs
            content = self._llama.detokenize(ended(drafted.tokens, self.eos, 96)).decode()
            try:
                whole = set(json.loads(content, strict=False)) == set(schema["required"])  # its strings may have line ends
            except ValueError:
                whole = False
            yield name, f"{_told(plain, drafted)}; {'whole' if whole else 'NOT WHOLE'}: {content!r}", (
                whole and plain.tokens == drafted.tokens
            )


def _cache(model: str) -> dict[str, int]:
    """Keys and values in float32 for a float32 model. Those of half precision, the engine's default, let the logits of
    a row differ with the rows of its pass by up to 0.03 instead of 0.00004, so that near ties are common."""
    if Llama(model, vocab_only=True, verbose=False).metadata.get("general.file_type") != "0":
        return {}
    return {"type_k": llama_cpp.GGML_TYPE_F32, "type_v": llama_cpp.GGML_TYPE_F32}


def _told(plain: Output, drafted: Output) -> str:
    same = "the same tokens" if plain.tokens == drafted.tokens else "other tokens"
    return f"{same}, {len(plain.tokens)}; passes {len(plain.drafted)} and {len(drafted.drafted)}"


def make(model: str, options: dict[str, Any]) -> Engine:
    return LlamaCpp(model, options)
