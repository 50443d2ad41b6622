# SPDX-License-Identifier: Apache-2.0
"""The plug-in for SGLang, with stand-ins for its modules, and a scheduler like that of 0.5.23."""

from __future__ import annotations

import contextlib
import enum
import itertools
import subprocess
import sys
import types
import unittest
from array import array
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import reprise_decoding
from support import VOCABULARY, adapter, after, next_token, plain, prompt

WIDTH = 12


def module_of_worker() -> Any:
    return sys.modules["sglang.srt.speculative.ngram_worker"]

_NUMBERS = itertools.count()  # of requests


class Ids(list):  # type: ignore[type-arg]
    """A tensor."""

    def tolist(self) -> list[int]:
        return list(self)


class Group:
    """A group of processes, whose first one says the key."""

    def broadcast_object(self, value: Any, src: int) -> Any:
        return 7


class NGRAMWorker:
    """The parts of SGLang's worker that the plug-in uses."""

    def __init__(self, server_args: Any, gpu_id: int, nccl_port: int, target_worker: Any) -> None:
        self.enable_overlap = not server_args.disable_overlap_schedule
        self.draft_token_num = server_args.speculative_num_draft_tokens
        self.ngram_corpus = module_of_worker().NgramCorpus(
            draft_token_num=self.draft_token_num,
            max_bfs_breadth=server_args.speculative_ngram_max_bfs_breadth,
            match_type="BFS",
        )
        if server_args.corpus:
            loaded = self.ngram_corpus.load_external_corpus_named("file", server_args.corpus)
            self.ngram_corpus.commit_external_corpus_load("file", loaded)

    def clear_cache_pool(self) -> None:
        self.ngram_corpus.reset()

    def _prepare_draft_tokens(self, batch: Any) -> Any:
        spliced = self.enable_overlap and not batch.grammar_needs_sync()
        raise AssertionError(  # names of the method that the plug-in replaces
            (spliced, batch.spec_info.accept_tokens, batch.spec_info.accept_lens, self.draft_token_num)
            + tuple((req.rid, req.origin_input_ids_unpadded, req.output_ids) for req in batch.reqs)
            + (self.ngram_corpus.batch_get,)
        )

    def _update_ngram_corpus(self, batch: Any) -> None:
        raise AssertionError("the plug-in replaces it")


class Algorithm(enum.Enum):
    EAGLE = 1
    NGRAM = 2

    @classmethod
    def register(cls, name: str, **options: Any) -> Any:
        def take(factory: Any) -> Any:
            kind = options.pop("spec_class")
            registered[name] = kind(name=name, factory=factory, **options)
            return factory

        return take

    def is_ngram(self) -> bool:
        return self is Algorithm.NGRAM

    def has_draft_kv(self) -> bool:
        return not self.is_ngram()

    def create_future_map(self, device: str, pool: int = 0) -> Any:
        return self, device, pool

    def handle_server_args(self, server_args: Any) -> None:
        raise AssertionError("it would declare on the stand-in")

    def create_worker(self, server_args: Any) -> Any:
        raise AssertionError("the worker is that of SGLang")


class CustomSpecAlgo:
    def __init__(self, name: str, factory: Any, *, supports_overlap: bool, validate_server_args: Any) -> None:
        self.name, self.factory, self.supports_overlap = name, factory, supports_overlap
        self.validate_server_args = validate_server_args

    def is_ngram(self) -> bool:
        return False

    def has_draft_kv(self) -> bool:
        return True

    def create_worker(self, server_args: Any) -> Any:
        return self.factory(server_args)


registered: dict[str, Any] = {}


def handle_ngram(server_args: Any) -> None:
    width = server_args.speculative_num_draft_tokens or 12
    server_args._resolved_overrides.append(("ngram", {"speculative_num_draft_tokens": width, "steps": width // 3}))


@contextlib.contextmanager
def installed(worker: Any = NGRAMWorker, **changed: Any) -> Iterator[Any]:
    """Imports the plug-in as SGLang does, and registers it."""
    modules = {
        "sglang__srt__speculative__spec_info": {"SpeculativeAlgorithm": Algorithm},
        "sglang__srt__speculative__spec_registry": {"CustomSpecAlgo": CustomSpecAlgo},
        "sglang__srt__speculative__ngram_worker": {
            "NGRAMWorker": worker,
            "NgramCorpus": lambda **_: None,
            "NgramVerifyInput": object,
        },
        "sglang__srt__arg_groups__speculative_hook": {"_handle_ngram": handle_ngram},
        "sglang__srt__arg_groups__overrides": {"resolving_view": lambda server_args: server_args},
        "sglang__srt__distributed__parallel_state": {"get_world_group": Group},
    }
    fakes = {}
    for name, members in modules.items():
        fakes[name] = types.ModuleType(name.replace("__", "."))
        vars(fakes[name]).update({**members, **changed.get(name.rsplit("__", 1)[1], {})})
    # Modules find each other as attributes of their packages.
    fakes["sglang__srt__speculative"] = types.ModuleType("sglang.srt.speculative")
    vars(fakes["sglang__srt__speculative"])["ngram_worker"] = fakes["sglang__srt__speculative__ngram_worker"]
    registered.clear()
    with adapter("sglang", **fakes) as module:
        module.register()
        yield module


def arguments(**given: Any) -> Any:
    usual = {
        "disable_overlap_schedule": True,
        "speculative_num_draft_tokens": WIDTH,
        "speculative_ngram_max_bfs_breadth": 10,
        "disable_radix_cache": False,
        "corpus": None,
    }
    return types.SimpleNamespace(**{**usual, **given})


def worker(**given: Any) -> Any:
    """Creates a worker as the scheduler does."""
    server_args = arguments(**given)
    model = types.SimpleNamespace(model_config=types.SimpleNamespace(vocab_size=VOCABULARY))
    kind = registered["REPRISE"].create_worker(server_args)
    return kind(server_args=server_args, gpu_id=0, nccl_port=1, target_worker=types.SimpleNamespace(model_runner=model))


class Request:
    def __init__(self, ids: list[int], count: int, name: str = "", **params: Any) -> None:
        self.rid, self.count = name or f"request {next(_NUMBERS)}", count
        self.origin_input_ids_unpadded, self.output_ids = array("q", ids), array("q")
        self.eos_token_ids, self.extra_key, self.cache_salt = params.pop("eos", {60}), params.pop("key", None), None
        usual = {"custom_params": None, "ignore_eos": True, "stop_token_ids": None}
        self.sampling_params = types.SimpleNamespace(**{**usual, **params})

    @property
    def output(self) -> list[int]:
        return list(self.output_ids[: self.count])

    @property
    def text(self) -> list[int]:
        return [*self.origin_input_ids_unpadded, *self.output_ids]


class Scheduler:
    """Runs requests in passes. With overlap, a pass begins before the results of the one before are known."""

    def __init__(self, worker: Any, model: Callable[[Any], int] = next_token) -> None:
        self.worker, self.model, self.passes = worker, model, 0
        self.running: list[Request] = []
        self.results: dict[str, list[int]] = {}  # tokens that output_ids do not have yet
        self.drafts: list[list[list[int]]] = []  # the branches of each pass and request
        self.grammar = False

    def run(self, *requests: Request) -> int:
        """Runs requests to their ends. Returns the passes."""
        before = self.passes
        for request in requests:
            self.add(request)
        while self.running:
            self.step()
        return self.passes - before

    def add(self, request: Request) -> None:
        """Runs the prompt, which gives the first token."""
        first = [self.model(request.text)]
        if self.worker.enable_overlap and not self.grammar:
            self.results[request.rid] = first
        else:
            request.output_ids.extend(first)
        self.running.append(request)

    def step(self) -> None:
        self.passes += 1
        late = self.worker.enable_overlap and not self.grammar
        known = [self.results.get(request.rid, []) for request in self.running]
        width = self.worker.draft_token_num
        spec_info = types.SimpleNamespace(
            accept_tokens=Ids(token for one in known for token in [*one, *[0] * (width - len(one))]),
            accept_lens=Ids(map(len, known)),
        )
        batch = types.SimpleNamespace(reqs=self.running, spec_info=spec_info, grammar_needs_sync=lambda: self.grammar)
        rows, seen = self.worker._prepare_draft_tokens(batch)
        assert rows.dtype == np.int64 and rows.shape == (len(self.running) * width,)
        assert seen.dtype == np.bool_ and seen.shape == (len(rows) * width,)
        made, ended = [], []
        for request, more, tree, mask in zip(
            self.running, known, rows.reshape(-1, width).tolist(), seen.reshape(-1, width, width)
        ):
            text = [*request.text, *(more if late else [])]
            assert tree[0] == text[-1], (tree, text[-5:])
            made.append(self.verify(text, tree, mask))
        self.worker._update_ngram_corpus(batch)
        for request, tokens in zip(self.running, made):
            if late:
                request.output_ids.extend(self.results.pop(request.rid, []))
                self.results[request.rid] = tokens
            else:
                request.output_ids.extend(tokens)
            ends = not request.sampling_params.ignore_eos and (request.eos_token_ids or set()) & {*request.output_ids}
            if ends or len(request.output_ids) >= request.count:
                ended.append(request)
        for request in ended:
            self.running.remove(request)
            self.results.pop(request.rid, None)

    def verify(self, text: list[int], tree: list[int], mask: Any) -> list[int]:
        above = [-1]
        for row in range(1, len(tree)):
            before = np.flatnonzero(mask[row][:row])
            assert mask[row][row] and not mask[row][row + 1 :].any()
            above.append(int(before[-1]))
            path = [*np.flatnonzero(mask[above[row]]), row]
            assert np.flatnonzero(mask[row]).tolist() == path, "a row sees its own path"
        paths = [[tree[node] for node in np.flatnonzero(line)[1:]] for line in mask]
        self.drafts.append([path for row, path in enumerate(paths) if row not in above[1:]])
        picks, row = [self.model(text)], 0
        while True:
            row = next((i for i in range(len(tree)) if above[i] == row and tree[i] == picks[-1]), -1)
            if row < 0:
                return picks
            picks.append(self.model([*text, *picks]))


class Texts(unittest.TestCase):
    def test_requests_that_come_and_go(self) -> None:
        for options in (
            {},
            {"disable_overlap_schedule": False},
            {"speculative_ngram_max_bfs_breadth": 1},
            {"disable_radix_cache": True},
            {"speculative_num_draft_tokens": 2},
            {"speculative_num_draft_tokens": 65},
        ):
            with self.subTest(**options), installed():
                scheduler = Scheduler(worker(**options))
                requests = [Request(prompt(seed, 40 + 5 * seed), 30 + 20 * (seed % 4)) for seed in range(1, 9)]
                for request in requests:
                    scheduler.add(request)
                    for _ in range(5):
                        if scheduler.running:
                            scheduler.step()
                scheduler.run()
                for seed, request in enumerate(requests, 1):
                    self.assertEqual(request.output, plain(prompt(seed, 40 + 5 * seed), request.count))
                tokens = sum(request.count for request in requests)
                self.assertLess(scheduler.passes, tokens * (0.9 if scheduler.worker.draft_token_num == 2 else 0.5))
                if options.get("speculative_ngram_max_bfs_breadth") == 1:
                    self.assertTrue(all(len(branches) == 1 for branches in scheduler.drafts))
                elif scheduler.worker.draft_token_num > 2:
                    self.assertTrue(any(len(branches) > 1 for branches in scheduler.drafts))

    def test_the_first_pass_drafts_from_the_prompt(self) -> None:
        with installed():
            scheduler = Scheduler(worker())
            scheduler.add(Request(prompt(1, 100), 40))
            scheduler.step()
            self.assertGreater(len(scheduler.running[0].output_ids), 3)

    def test_a_grammar_makes_the_engine_wait(self) -> None:
        with installed():
            scheduler = Scheduler(worker(disable_overlap_schedule=False))
            scheduler.grammar = True
            request = Request(prompt(1), 60)
            scheduler.run(request)
            self.assertEqual(request.output, plain(prompt(1), 60))

    def test_a_request_that_is_preempted(self) -> None:
        for fresh in (False, True):
            with self.subTest(fresh=fresh), installed():
                scheduler = Scheduler(worker())
                first, second = Request(prompt(1), 80), Request(prompt(2), 80)
                scheduler.add(first)
                scheduler.add(second)
                for _ in range(4):
                    scheduler.step()
                scheduler.running.remove(first)
                scheduler.step()
                if fresh:  # with input_embeds, it begins again
                    first.output_ids = array("q")
                scheduler.run(first)
                self.assertEqual(first.output, plain(prompt(1), 80))
                self.assertEqual(second.output, plain(prompt(2), 80))

    def test_a_name_that_is_used_again(self) -> None:
        with installed():
            scheduler = Scheduler(worker())
            for seed in (1, 2):  # no pass between them
                request = Request(prompt(seed), 40, "name")
                scheduler.run(request)
                self.assertEqual(request.output, plain(prompt(seed), 40))

    def test_a_model_that_picks_the_token_of_spare_rows(self) -> None:
        def model(context: Any) -> int:
            return 0 if len(context) % 3 else next_token(context)

        with installed():
            request = Request([5, 6, 7], 60)
            Scheduler(worker(), model).run(request)
            context = [5, 6, 7]
            for _ in range(60):
                context.append(model(context))
            self.assertEqual(request.output, context[3:])

    def test_placeholders(self) -> None:
        ids = [*prompt(1), -(2**40), 2**50, VOCABULARY + 3, *prompt(1)[1:]]
        with installed():
            request = Request(ids, 30)
            Scheduler(worker()).run(request)
            self.assertEqual(request.output, plain(ids, 30))

    def test_nothing_is_drafted_after_an_end(self) -> None:
        end = plain(prompt(1), 40)[-1]

        def run(**params: Any) -> list[list[int]]:
            with installed():
                for overlap in (True, False):
                    scheduler = Scheduler(worker(disable_overlap_schedule=not overlap))
                    scheduler.run(*(Request(prompt(seed), 80, **params) for seed in (1, 2, 1)))
                return [path[: path.index(0)] if 0 in path else path for one in scheduler.drafts for path in one]

        self.assertGreater(after(run(eos={end}), end), 0)
        self.assertEqual(after(run(eos={end}, ignore_eos=False), end), 0)
        self.assertEqual(after(run(eos=None, stop_token_ids={end, -1}, ignore_eos=False), end), 0)


class Memories(unittest.TestCase):
    def passes(self, first: Request, second: Request, between: Any = None, **options: Any) -> int:
        """Returns the passes of the second request, if the server was idle before it."""
        with installed():
            scheduler = Scheduler(worker(**options))
            scheduler.run(first)
            if between is not None:
                between(scheduler.worker)
            return scheduler.run(second)

    def test_the_text_of_requests_before(self) -> None:
        def new(**named: Any) -> Request:
            return Request([9, 3], 90, **named)

        alone = self.passes(Request([8], 5), new())
        for overlap in (False, True):
            self.assertLess(self.passes(new(), new(), disable_overlap_schedule=not overlap), alone / 2)
        self.assertGreater(self.passes(new(), new(), disable_radix_cache=True), alone / 2)
        self.assertGreater(self.passes(new(), new(), NGRAMWorker.clear_cache_pool), alone / 2)
        self.assertGreater(self.passes(new(key="a"), new(key="b")), alone / 2)
        self.assertGreater(self.passes(new(key="a"), new()), alone / 2)
        self.assertLess(self.passes(new(key="a"), new(key="a")), alone / 2)
        salted, other, same = new(), new(), new()
        salted.cache_salt, other.cache_salt, same.cache_salt = "s", "t", "s"
        self.assertGreater(self.passes(salted, other), alone / 2)
        self.assertLess(self.passes(salted, same), alone / 2)

    def test_a_file_of_texts(self) -> None:
        text = [-(2**31), *plain([9, 3], 90)]
        alone = self.passes(Request([8], 5), Request([9, 3], 90))
        self.assertLess(self.passes(Request([8], 5), Request([9, 3], 90), corpus=[text]), alone / 2)
        with self.assertRaisesRegex(ValueError, "^REPRISE: file needs a memory with text"):
            self.passes(Request([8], 5), Request([9, 3], 90), corpus=[text], disable_radix_cache=True)

    def test_options(self) -> None:
        memory = reprise_decoding.Memory()
        memory.add(plain([9, 3], 90))
        with installed() as module:
            module.options["memory"] = memory
            scheduler = Scheduler(worker())
            self.assertLess(scheduler.run(Request([9, 3], 90)), 20)
            scheduler.worker.clear_cache_pool()  # yours stays as it is
            self.assertLess(scheduler.run(Request([9, 3], 90)), 20)

    def test_the_same_key_and_requests_give_the_same_drafts(self) -> None:
        drafts = []
        for _ in range(2):
            with installed():
                scheduler = Scheduler(worker())
                scheduler.run(*(Request(prompt(seed), 80) for seed in range(1, 6)))
                scheduler.run(*(Request(prompt(seed), 80) for seed in range(1, 6)))
                drafts.append(scheduler.drafts)
        self.assertEqual(drafts[0], drafts[1])


class Settings(unittest.TestCase):
    def run_with(self, **extra: Any) -> tuple[list[list[list[int]]], int]:
        with installed():
            scheduler = Scheduler(worker(disable_radix_cache=True))
            request = Request(prompt(1), 60, custom_params=extra)
            passes = scheduler.run(request)
            self.assertEqual(request.output, plain(prompt(1), 60))
            return scheduler.drafts, passes

    def test_bounds(self) -> None:
        usual = self.run_with()[1]
        self.assertLess(usual, 30)
        for off in (False, 0):
            drafts, passes = self.run_with(reprise_enabled=off)
            self.assertGreater(passes, 50)  # the spare rows are accepted where the model picks 0
            self.assertTrue(all(not any(path) for branches in drafts for path in branches))
        drafts, passes = self.run_with(reprise_max_draft=2)
        self.assertGreater(passes, usual)
        for branches in drafts:
            self.assertLessEqual(max(len([token for token in path if token]) for path in branches), 2)
        for wrong in ({"reprise_max_draft": "many"}, {"reprise_max_draft": 0}, {"reprise_enabled": "no"}):
            self.assertEqual(self.run_with(**wrong)[1], usual)
        self.assertEqual(self.run_with(reprise_max_draft=10**6)[1], usual)

    def test_predictions(self) -> None:
        def passes(prediction: Any) -> int:
            with installed():
                request = Request([9, 3], 90, custom_params={"reprise_prediction": prediction})
                made = Scheduler(worker(disable_radix_cache=True)).run(request)
                self.assertEqual(request.output, plain([9, 3], 90))
                return made

        usual = passes([])
        self.assertLess(passes(plain([9, 3], 90)), usual / 2)
        for wrong in ([-1], [VOCABULARY], ["a"], 5, None, [[1]]):
            self.assertEqual(passes(wrong), usual)


class Plugin(unittest.TestCase):
    def test_the_method(self) -> None:
        with installed():
            method = registered["REPRISE"]
            self.assertTrue(method.is_ngram())
            self.assertFalse(method.has_draft_kv())
            self.assertTrue(method.supports_overlap)
            self.assertEqual(method.create_future_map("cpu", pool=3), (Algorithm.NGRAM, "cpu", 3))
            server_args = arguments(speculative_num_draft_tokens=None)
            method.handle_server_args(server_args)
            self.assertEqual((server_args.speculative_num_draft_tokens, server_args.steps), (12, 4))
            method.validate_server_args(arguments())
            method.validate_server_args(arguments(speculative_num_draft_tokens=None))
            with self.assertRaisesRegex(ValueError, "^REPRISE: --speculative-num-draft-tokens must be at most 65$"):
                method.validate_server_args(arguments(speculative_num_draft_tokens=66))
            with self.assertRaisesRegex(ValueError, "^REPRISE: leave --tp-size at 1"):
                method.validate_server_args(arguments(tp_size=2))

    def test_the_corpus_of_the_engine_is_not_made(self) -> None:
        def made(**_: Any) -> None:
            raise AssertionError

        class Fails(NGRAMWorker):
            def __init__(self, server_args: Any, gpu_id: int, nccl_port: int, target_worker: Any) -> None:
                super().__init__(server_args, gpu_id, nccl_port, target_worker)
                raise MemoryError

        with installed(ngram_worker={"NgramCorpus": made}):
            worker()
            self.assertIs(module_of_worker().NgramCorpus, made)
        with installed(Fails, ngram_worker={"NgramCorpus": made}):
            self.assertRaises(MemoryError, worker)
            self.assertIs(module_of_worker().NgramCorpus, made)

    def test_other_releases(self) -> None:
        class Arguments(NGRAMWorker):
            def __init__(self, server_args: Any, target_worker: Any) -> None:
                """Others."""

        class Names(NGRAMWorker):
            def _prepare_draft_tokens(self, batch: Any) -> Any:
                return self.ngram_corpus.batch_get(batch)

        class Nothing:
            pass

        for other in (Arguments, Names, Nothing):
            with installed(other), self.assertRaisesRegex(ValueError, "^REPRISE: this release of SGLang has another"):
                registered["REPRISE"].validate_server_args(arguments())
        with self.assertLogs("reprise_decoding.sglang", "WARNING") as log:
            with installed(spec_info={"SpeculativeAlgorithm": 1}):
                self.assertEqual(registered, {})
        self.assertEqual(len(log.output), 1)

    def test_an_engine_that_is_not_installed_costs_nothing(self) -> None:
        code = (
            "import sys; sys.modules['sglang'] = None; import reprise_decoding.sglang as s; s.register(); "
            "print([name for name in sys.modules if name.split('.')[0] in ('torch', 'transformers', 'vllm')])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
