# SPDX-License-Identifier: Apache-2.0
"""The speculator for vLLM's second runner, with a runner and a stream that stand in for those of the engine.

Copies and calls of a device wait in the stream until it runs, which it does some steps later than the host.
"""

from __future__ import annotations

import ctypes
import itertools
import types
import unittest
import unittest.mock
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
import reprise_decoding.vllm
from support import VOCABULARY, adapter, next_token, plain, prompt

WIDTH, SLOTS, LONGEST = 6, 3, 200


class Stream:
    """The work of a device, in its order."""

    cuda_stream = 7

    def __init__(self) -> None:
        self.waiting: list[Callable[[], object]] = []
        self.broken = False

    def run(self, left: int = 0) -> None:
        while len(self.waiting) > left:
            self.waiting.pop(0)()

    def query(self) -> None:
        if self.broken:
            raise RuntimeError("an error of the device")

    def launch(self, stream: int, entry: ctypes.c_void_p, step: int) -> int:
        assert stream == self.cuda_stream
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(entry.value)
        self.waiting.append(lambda: call(step))
        return 0


class Tensor(np.ndarray):  # type: ignore[type-arg]
    """An array with the functions of torch that are used here."""

    stream: Stream | None = None  # of a device

    def data_ptr(self) -> int:
        return self.ctypes.data

    def stride(self, dim: int) -> int:
        return self.strides[dim] // self.itemsize

    def copy_(self, other: Any, non_blocking: bool) -> None:
        assert non_blocking
        if Tensor.stream is None:
            self[...] = other
        else:
            Tensor.stream.waiting.append(lambda: self.__setitem__(..., other))

    def zero_(self) -> None:
        self[...] = 0


def zeros(shape: Any, dtype: Any, **_: Any) -> Tensor:
    return np.zeros(shape, dtype).view(Tensor)


@contextmanager
def module(device: str = "cpu") -> Iterator[Any]:
    """Imports the speculator, with a stream if there is a device."""
    stream = Stream()
    torch = types.SimpleNamespace(
        zeros=zeros, int32=np.int32, int64=np.int64, inference_mode=nullcontext,
        cuda=types.SimpleNamespace(current_stream=lambda: stream),
    )  # fmt: skip
    group = types.SimpleNamespace(broadcast_object=lambda key, src: 7)
    with adapter(
        "_vllm_speculator", torch=torch,
        vllm__distributed__parallel_state=types.SimpleNamespace(get_tp_group=lambda: group),
        vllm__v1__worker__gpu__spec_decode__speculator=types.SimpleNamespace(BaseSpeculator=object),
    ) as made, unittest.mock.patch.object(Tensor, "stream", stream if device == "cuda" else None):  # fmt: skip
        made._launcher = lambda: stream.launch
        made.stream = stream
        yield made


class Request:
    def __init__(self, name: str, ids: list[int], salt: str | None = None, **extra: Any) -> None:
        self.req_id, self.ids, self.known = name, list(ids), len(ids)
        self.sampling_params = types.SimpleNamespace(extra_args={**extra, **({"reprise_cache_salt": salt} if salt else {})})


class Runner:
    """The second runner, whose device is up to `lag` works behind the host."""

    def __init__(self, made: Any, device: str = "cpu", lag: int = 0, processes: int = 1, pinned: bool = True) -> None:
        self.table, self.total, self.lag = zeros((SLOTS, LONGEST), np.int32), zeros(SLOTS, np.int32), lag
        ids = types.SimpleNamespace(gpu=self.table)
        if pinned:
            ids._uva_buf = types.SimpleNamespace(cpu=self.table)
        self.states = types.SimpleNamespace(
            all_token_ids=ids, total_len=types.SimpleNamespace(gpu=self.total), max_num_reqs=SLOTS,
            prompt_len=types.SimpleNamespace(np=np.zeros(SLOTS, np.int32)), req_id_to_index={},
        )  # fmt: skip
        config = types.SimpleNamespace(
            speculative_config=types.SimpleNamespace(num_speculative_tokens=WIDTH),
            model_config=types.SimpleNamespace(max_model_len=LONGEST, get_vocab_size=lambda: VOCABULARY),
            cache_config=types.SimpleNamespace(enable_prefix_caching=True),
            parallel_config=types.SimpleNamespace(tensor_parallel_size=processes),
        )
        self.made, self.requests, self.drafts = made, dict[int, Request](), list[list[list[int]]]()
        kind = types.SimpleNamespace(type=device)
        self.speculator = made.Speculator(reprise_decoding.vllm.Proposer, config, kind, self.states, self)

    def add_requests(self, scheduled: Any) -> None:
        """The runner's own method, which the speculator wraps."""
        for new in scheduled.scheduled_new_reqs:
            slot = min(set(range(SLOTS)) - set(self.states.req_id_to_index.values()))
            self.states.req_id_to_index[new.req_id] = slot
            self.states.prompt_len.np[slot] = len(new.ids)
            self.requests[slot] = new

            def write(slot: int = slot, new: Any = new) -> None:
                self.table[slot, : len(new.ids)], self.total[slot] = new.ids, len(new.ids)

            self.device(write)

    def device(self, work: Callable[[], object]) -> None:
        if Tensor.stream is None:
            work()
        else:
            Tensor.stream.waiting.append(work)

    def add(self, *requests: Request) -> None:
        self.add_requests(types.SimpleNamespace(scheduled_new_reqs=list(requests)))

    def end(self, request: Request) -> None:
        del self.requests[self.states.req_id_to_index.pop(request.req_id)]

    def step(self, *parts: str) -> None:
        """One pass, and the drafts for the next one. `parts`: requests that run a part of their prompt."""
        slots, names = list(self.requests), [request.req_id for request in self.requests.values()]
        requests, drafts = list(self.requests.values()), self.speculator._drafts

        def forward() -> None:
            """Commits what the model picks after the last drafts of each row."""
            last = dict(zip(self.last, self.drafts[-1])) if self.drafts else {}
            for slot, request in zip(slots, requests):
                if request.req_id in parts:
                    continue
                for token in [*last.get(request.req_id, []), None]:
                    request.ids.append(next_token(request.ids))
                    if request.ids[-1] != token:
                        break
                self.table[slot, : len(request.ids)], self.total[slot] = request.ids, len(request.ids)

        self.device(forward)
        prefill = np.array([request.known for request in requests])
        scheduled = np.array([1 if name in parts else 50 for name in names])
        batch = types.SimpleNamespace(
            num_reqs=len(slots), req_ids=names, idx_mapping_np=np.array(slots), prefill_len_np=prefill,
            num_computed_prefill_tokens_np=prefill - scheduled - np.array([name in parts for name in names]),
            num_scheduled_tokens=scheduled,
        )  # fmt: skip
        given = self.speculator.propose(batch, None, num_speculative_tokens=WIDTH)
        assert given.base is drafts or given is drafts

        def keep() -> None:
            self.drafts.append(drafts[: len(names)].tolist())
            self.last = names

        self.device(keep)
        if Tensor.stream is not None:
            Tensor.stream.run(self.lag)


class Drafts(unittest.TestCase):
    def run_with(self, device: str, lag: int = 0) -> tuple[list[list[list[int]]], list[list[int]]]:
        with module(device) as made:
            runner = Runner(made, device, lag)
            requests = [Request(str(number), prompt(number)) for number in (1, 2, 3)]
            runner.add(*requests[:2])
            for turn in range(14):
                if turn == 3:
                    runner.add(requests[2])
                if turn == 9:
                    runner.end(requests[0])
                runner.step(*(["3"] if 3 <= turn < 5 else []))
            made.stream.run()
            return runner.drafts, [request.ids for request in requests]

    def test_texts_are_those_of_plain_decoding(self) -> None:
        drafts, texts = self.run_with("cpu")
        self.assertEqual([each[2] for each in drafts[3:5]], [prompt(3)[-1:] * WIDTH] * 2, "the third one runs its prompt")
        for number, ids in enumerate(texts, 1):
            self.assertEqual(ids[60:], plain(prompt(number), len(ids) - 60))
        self.assertGreater(sum(len(ids) - 60 for ids in texts), 60, "33 tokens without drafts")

    def test_a_device_that_is_behind_gets_the_same_drafts(self) -> None:
        expected = self.run_with("cpu")
        for lag in (0, 1, 5, 9):
            self.assertEqual(self.run_with("cuda", lag), expected, lag)

    def test_the_host_waits_for_buffers_and_for_no_device_that_has_failed(self) -> None:
        with module("cuda") as made:
            runner = Runner(made, "cuda", lag=10**6)
            runner.add(Request("1", prompt(1)))
            for _ in range(made._STEPS):
                runner.step()
            with unittest.mock.patch.object(made.time, "sleep", lambda _: made.stream.run()):
                runner.step()
            for _ in range(made._STEPS - 1):
                runner.step()
            made.stream.broken = True
            with unittest.mock.patch.object(made.time, "sleep", lambda _: None):
                self.assertRaisesRegex(RuntimeError, "an error of the device", runner.step)

    def test_a_step_that_fails_makes_its_requests_begin_again(self) -> None:
        with module() as made, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            runner = Runner(made)
            runner.add(Request("1", prompt(1)))
            for _ in range(made._STEPS):
                runner.step()
            for each in runner.speculator._buffers:
                each.step.size = 1
            runner.step()
            self.assertEqual(runner.drafts[-1], [[0] * WIDTH], "none of an earlier step")
            for each in runner.speculator._buffers:
                each.step.size = ctypes.sizeof(each.step)
            for _ in range(12):
                runner.step()
            self.assertEqual(len(caught), 1)
            self.assertTrue(any(any(draft) for drafts in runner.drafts[-9:] for draft in drafts))


class Settings(unittest.TestCase):
    SECRET = [40, 51, 42, 57, 44, 59, 46, 41, 48, 53, 50, 55]

    def sees(self, first: str | None, second: str | None, between: int = 0) -> bool:
        with module() as made, unittest.mock.patch.object(reprise_decoding.vllm, "_carries_salts", True):
            runner = Runner(made)
            told = Request("told", [*range(1, 20), *self.SECRET, *self.SECRET], first)
            asked = Request("asked", [60, *range(1, 20), *self.SECRET[:3]], second)
            names = itertools.count()
            for request in (told, *(Request(f"{next(names)}", prompt(3), f"other {n}") for n in range(between))):
                runner.add(request)
                runner.step()
                runner.end(request)
            runner.add(asked)
            with unittest.mock.patch(f"{__name__}.next_token", lambda ids: self.SECRET[3]):
                runner.step()
            return self.SECRET[4] in runner.drafts[-1][0]

    def test_text_stays_with_its_salt(self) -> None:
        for first, second, sees in ((None, None, True), ("a", "a", True), ("a", "b", False), (None, "a", False)):
            self.assertEqual(self.sees(first, second), sees, (first, second))
        self.assertFalse(self.sees("a", "a", between=6), "four salts are kept, the latest ones")

    def test_settings_of_a_request(self) -> None:
        ids, usual = prompt(1)[:19], [[[1] + [30] * (WIDTH - 1)]]
        output = plain(ids, 9)
        for extra, drafted in (
            ({}, None), ({"reprise_prediction": "text"}, None), ({"reprise_enabled": False}, 0),
            ({"reprise_prediction": output}, WIDTH), ({"reprise_prediction": output, "reprise_max_draft": 2}, 2),
        ):  # fmt: skip
            with module() as made:
                runner = Runner(made)
                runner.add(Request("1", ids, **extra))
                runner.step()
            draft = [] if drafted is None else output[1 : 1 + drafted] + output[:1] * (WIDTH - drafted)
            self.assertEqual(runner.drafts, usual if drafted is None else [[draft]], extra)

    def test_what_is_refused(self) -> None:
        for device, more, wanted in (
            ("xpu", {}, "on CUDA and on processors, but not on xpu"),
            ("cuda", {"processes": 2}, "without tensor parallelism"),
            ("cuda", {"pinned": False}, "the host cannot read the ids"),
        ):  # fmt: skip
            with module(device) as made:
                self.assertRaisesRegex(ValueError, wanted, Runner, made, device, **more)  # type: ignore[arg-type]


if __name__ == "__main__":
    unittest.main()
