# SPDX-License-Identifier: Apache-2.0
"""What all objects with a handle have in common: with, close(), repr(), and no copies."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import unittest

import reprise_decoding
from reprise_decoding._handle import Owner

TEXT = [1, 2, 3, 4, 5, 6, 7, 8] * 4 + [1, 2, 3]


def one_of_each() -> list[Owner]:
    session = reprise_decoding.Session()
    session.begin(TEXT)
    memory = reprise_decoding.Memory(max_bytes=2**16)
    curve = reprise_decoding.CostCurve.linear(0.02)
    return [reprise_decoding.Drafter(), session, session.fork(), reprise_decoding.BatchDrafter(2), memory, curve]


class Objects(unittest.TestCase):
    def test_there_are_no_copies(self) -> None:
        for owner in one_of_each():
            for copied in (copy.copy, copy.deepcopy, pickle.dumps, lambda it: pickle.dumps(it, 0)):
                with self.assertRaisesRegex(TypeError, f"^{type(owner).__name__}: it cannot be copied or pickled: ."):
                    copied(owner)
            owner.close()

    def test_a_refused_copy_leaves_the_memory_to_the_object(self) -> None:
        drafter = reprise_decoding.Drafter(cost=0.01)
        wanted = drafter.draft(TEXT).tolist()
        with self.assertRaises(TypeError):
            copy.copy(drafter).close()
        self.assertEqual(drafter.draft(TEXT).tolist(), wanted)

    def test_close(self) -> None:
        for owner in one_of_each():
            owner.close()
            owner.close()
            sentence = f"^{type(owner).__name__}: .*closed; create a new one"
            with self.assertRaisesRegex(reprise_decoding.OrderError, sentence):
                owner._alone(lambda: None)

    def test_with(self) -> None:
        for owner in one_of_each():
            with owner as entered:
                self.assertIs(entered, owner)
                self.assertFalse(owner._closed)
            self.assertTrue(owner._closed)
            with self.assertRaisesRegex(KeyError, "of the block"), owner:
                raise KeyError("of the block")

    def test_repr(self) -> None:
        memory = reprise_decoding.Memory(max_bytes=2**16, key=12345)
        drafter = reprise_decoding.Drafter(cost=0.02, memory=memory, key=12345, vocabulary=100)
        shown = (
            "<reprise_decoding.Drafter: cost=<reprise_decoding.CostCurve: linear(0.02)>, "
            "memory=<reprise_decoding.Memory: max_bytes=65536>"
        )
        self.assertEqual(repr(drafter), f"{shown}, vocabulary=100>")
        drafter.close()
        self.assertEqual(repr(drafter), f"{shown}, vocabulary=100, closed>")
        batch, curve = reprise_decoding.BatchDrafter(3), reprise_decoding.CostCurve.points([(1, 0, 1, 5.0)])
        self.assertEqual(repr(batch), "<reprise_decoding.BatchDrafter: 3 slots, default options>")
        self.assertEqual(repr(curve), "<reprise_decoding.CostCurve: 1 measured passes>")
        self.assertEqual(repr(reprise_decoding.Session()), "<reprise_decoding.Session: default options>")
        session = reprise_decoding.Session(max_draft=5)
        session.begin(TEXT)
        self.assertEqual(repr(session.fork()), "<reprise_decoding.Session: max_draft=5>")
        drafter = reprise_decoding.Drafter.__new__(reprise_decoding.Drafter)
        self.assertEqual(repr(drafter), "<reprise_decoding.Drafter: not created, closed>")

    def test_repr_from_another_thread_disturbs_nobody(self) -> None:
        drafter = reprise_decoding.Drafter(cost=0.01)
        in_use = "<reprise_decoding.Drafter: cost=<reprise_decoding.CostCurve: linear(0.01)>, in use>"
        self.assertEqual(drafter._alone(repr, drafter), in_use)
        done = threading.Event()

        def show() -> None:
            while not done.is_set():
                repr(drafter)

        other = threading.Thread(target=show)
        other.start()
        try:
            for end in range(9, 200):
                drafter.draft((TEXT * 9)[:end])
        finally:
            done.set()
            other.join()

    def test_a_memory_waits_for_drafters_that_other_threads_make(self) -> None:
        memory = reprise_decoding.Memory(max_bytes=2**16)
        stop = threading.Event()

        def make() -> None:
            while not stop.is_set():
                reprise_decoding.Drafter(memory=memory).close()

        threads = [threading.Thread(target=make) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(300):
                memory.add(TEXT)
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    @unittest.skipUnless(hasattr(os, "fork"), "there is no fork() here")
    def test_a_forked_process_has_objects_of_its_own(self) -> None:
        drafter = reprise_decoding.Drafter(cost=0.01)
        drafter.draft(TEXT)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                drafts = drafter.draft([*TEXT, 4]).tolist()
                drafter.close()
                code = 0 if drafts[:4] == [5, 6, 7, 8] else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(drafter.draft([*TEXT, 4])[:4].tolist(), [5, 6, 7, 8])


if __name__ == "__main__":
    unittest.main()
