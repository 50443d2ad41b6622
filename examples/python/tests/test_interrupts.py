# SPDX-License-Identifier: Apache-2.0
"""Exceptions of signal handlers at every place where CPython can raise them, and fork(), leave no object in use."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import threading
import unittest
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import reprise_decoding
from reprise_decoding import _library
from reprise_decoding._generation import Generation
from reprise_decoding._handle import Lock

TEXT = np.array([1, 2, 3, 4, 5, 6, 7, 8] * 4 + [1, 2, 3], np.int32)
PACKAGE = os.path.join(os.path.dirname(reprise_decoding.__file__), "")  # the tests may lie in a folder of this name
# Random interrupts of each call; the step packages of .ci/full has 2,000.
RANDOM = int(os.environ.get("REPRISE_INTERRUPTS", "200"))


class Interrupt(Exception):
    pass


def everywhere(call: Callable[[], Any], check: Callable[[bool], Any]) -> int:
    """Interrupts call() at each place where a handler can run, once at each, and then calls check(interrupted).

    A signal is pending at every instruction of the package, so the handler runs at each place where it can.
    """
    send: Any = ctypes.CDLL(None)["raise"]
    # As a function of C, it is interrupted nowhere. It takes the arguments of a trace function and ignores them.
    send.argtypes, send.restype = [ctypes.c_int, ctypes.py_object, ctypes.py_object, ctypes.py_object], None

    def trace(frame: Any, _: str, __: Any) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        return tracer

    tracer = functools.partial(send, signal.SIGUSR1)
    place, seen = 0, 0
    while seen == place:
        place, seen = place + 1, 0

        def handler(*_: Any) -> None:
            nonlocal seen
            seen += 1
            if seen == place:
                sys.settrace(None)
                raise Interrupt

        before = signal.signal(signal.SIGUSR1, handler)
        interrupted = False
        try:
            try:
                sys.settrace(trace)
                call()
            finally:
                sys.settrace(None)  # the last signal may come here
        except Interrupt:
            interrupted = True
        signal.signal(signal.SIGUSR1, before)
        check(interrupted)
    return place - 1


def one_of_each() -> dict[str, tuple[Any, Callable[[], Any]]]:
    """Returns objects and calls, by the name of the call."""
    drafter, batch = reprise_decoding.Drafter(cost=0.02), reprise_decoding.BatchDrafter(2, cost=0.02)
    session = reprise_decoding.Session(cost=0.02)
    memory = reprise_decoding.Memory(max_bytes=2**18)
    memory.add(TEXT)
    saved = memory.save()
    session.begin(TEXT)

    def round_of_a_session() -> None:
        session.begin(TEXT)
        session.plan()
        session.commit([4])

    return {
        "Drafter.draft": (drafter, lambda: drafter.draft(TEXT)),
        "Drafter.statistics": (drafter, lambda: drafter.statistics),
        "Drafter.save_costs": (drafter, lambda: drafter.save_costs("toy")),
        "BatchDrafter.draft": (batch, lambda: batch.draft({0: TEXT, 1: TEXT})),
        "BatchDrafter.assign": (batch, lambda: batch.assign(1, memory)),
        "Memory.add": (memory, lambda: memory.add(TEXT)),
        "Memory.forget": (memory, lambda: memory.forget(3)),
        "Memory.save": (memory, lambda: memory.save()),
        "Memory.load": (memory, lambda: memory.load(saved)),
        "Session round": (session, round_of_a_session),
        "Session.fork": (session, lambda: session.fork().close()),
        "Session.context": (session, lambda: session.context),
        "Generation": (session, lambda: Generation().begin(session)),
    }


@unittest.skipUnless(hasattr(signal, "setitimer"), "there are no such signals here")
class Interrupts(unittest.TestCase):
    def setUp(self) -> None:
        self.ignored: list[Any] = []  # Python ignores exceptions in finalizers
        hook, sys.unraisablehook = sys.unraisablehook, self.ignored.append
        self.addCleanup(setattr, sys, "unraisablehook", hook)

    def test_at_every_place(self) -> None:
        for name, (owner, call) in one_of_each().items():
            with self.subTest(name):
                places = everywhere(call, lambda _, owner=owner: self.assertFalse(owner._lock.locked()))
                self.assertGreater(places, 10)
                self.works_in_another_thread(call)

    def test_at_random_times(self) -> None:
        def handler(*_: Any) -> None:
            raise Interrupt

        before = signal.signal(signal.SIGALRM, handler)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        for name, (owner, call) in one_of_each().items():
            with self.subTest(name):
                for i in range(RANDOM):
                    try:
                        signal.setitimer(signal.ITIMER_REAL, 10e-6 + (i % 97) * 1.3e-6)
                        for _ in range(100):  # a finalizer may have taken the exception
                            call()
                        signal.setitimer(signal.ITIMER_REAL, 0)
                    except Interrupt:
                        pass
                    self.assertFalse(owner._lock.locked())
                self.works_in_another_thread(call)

    def test_a_draft_is_right_after_an_interrupted_one(self) -> None:
        wanted = reprise_decoding.Drafter(cost=0.02).draft(TEXT).tolist()
        held = [reprise_decoding.Drafter(cost=0.02)]

        def check(_: bool) -> None:
            self.assertEqual(held[0].draft(TEXT).tolist(), wanted)
            held[0] = reprise_decoding.Drafter(cost=0.02)

        everywhere(lambda: held[0].draft(TEXT), check)

    def test_no_handle_is_lost(self) -> None:
        counts = {"create": 0, "destroy": 0}
        for name in counts:
            full = f"reprise_follower_{name}"
            function = getattr(_library.library, full)

            def count(*arguments: Any, function: Any = function, name: str = name) -> Any:
                counts[name] += 1
                return function(*arguments)

            setattr(_library.library, full, count)
            self.addCleanup(setattr, _library.library, full, function)
        everywhere(lambda: reprise_decoding.Drafter(cost=0.02), lambda _: None)
        self.assertGreater(counts["create"], 5)
        self.assertLessEqual(counts["create"] - counts["destroy"], len(self.ignored))

    def test_a_session_serves_the_next_generation(self) -> None:
        session = reprise_decoding.Session()

        def generate() -> None:
            generation = Generation()
            try:
                generation.begin(session)
            finally:
                generation.over = True

        everywhere(generate, lambda _: generate())

    def test_a_handler_that_uses_the_object_is_refused(self) -> None:
        for name, (owner, call) in one_of_each().items():
            refused = self.assertRaisesRegex(reprise_decoding.OrderError, "a call of this thread has not ended")
            with self.subTest(name), refused:
                owner._alone(call)
            call()

    def works_in_another_thread(self, call: Callable[[], Any]) -> None:
        done: list[bool] = []

        def again() -> None:
            call()
            done.append(True)

        other = threading.Thread(target=again, daemon=True)
        other.start()
        other.join(20)
        self.assertEqual(done, [True])


@unittest.skipUnless(hasattr(os, "fork"), "there is no fork() here")
class Forks(unittest.TestCase):
    def test_an_object_in_use_is_refused_in_the_new_process(self) -> None:
        for name, (owner, call) in one_of_each().items():
            with self.subTest(name):
                self.assertEqual(self.child(owner, call, in_use=True), "OrderError")
                self.assertEqual(self.child(owner, call, in_use=False), "")
                call()

    def test_a_drafter_of_a_lost_memory_works(self) -> None:
        memory = reprise_decoding.Memory(max_bytes=2**18)
        memory.add(TEXT)
        drafter = reprise_decoding.Drafter(cost=0.02, memory=memory)
        self.assertEqual(self.child(memory, lambda: drafter.draft(TEXT), in_use=True), "")

    def test_a_lock_of_an_adapter(self) -> None:
        lock = Lock("Drafts", waits=True)
        used = threading.Event(), threading.Event()
        other = threading.Thread(target=lock.alone, args=(lambda: (used[0].set(), used[1].wait(20)),))
        other.start()
        used[0].wait(20)
        self.assertEqual(self.run_in_child(lambda: lock.alone(int)), "OrderError")
        used[1].set()
        other.join()
        self.assertEqual(lock.alone(int), 0)

    def child(self, owner: Any, call: Callable[[], Any], in_use: bool) -> str:
        """Returns the name of the exception that call() raises in a new process, and closes the object there."""
        entered, done = threading.Event(), threading.Event()
        other = threading.Thread(target=lambda: owner._alone(lambda: (entered.set(), done.wait(20))))
        if in_use:
            other.start()
            entered.wait(20)
        try:
            return self.run_in_child(call, owner.close)
        finally:
            done.set()
            if in_use:
                other.join()

    def run_in_child(self, call: Callable[[], Any], after: Callable[[], Any] = int) -> str:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(20)  # in place of a hang
            found = "the test"
            try:
                call()
                found = ""
            except reprise_decoding.OrderError as refused:
                found = "OrderError" if "when this process was forked" in str(refused) else str(refused)
            finally:
                after()
                os.write(writer, found.encode())
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as read:
            found = read.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        return found


if __name__ == "__main__":
    unittest.main()
