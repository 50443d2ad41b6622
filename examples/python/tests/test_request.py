# SPDX-License-Identifier: Apache-2.0
"""The settings and the counts of one request. The tests of each adapter have those of its engine."""

from __future__ import annotations

import contextvars
import signal
import sys
import threading
import unittest
import unittest.mock
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import reprise_decoding
from reprise_decoding._request import OTHER, current
from test_interrupts import everywhere


class Requests(unittest.TestCase):
    def test_wrong_settings_are_refused_before_the_block(self) -> None:
        for error, name, wrong in (
            (TypeError, "enabled", {"enabled": 1}),
            (TypeError, "max_draft", {"max_draft": "4"}),
            (ValueError, "max_draft", {"max_draft": 65}),
            (ValueError, "max_draft", {"max_draft": -1}),
            (ValueError, "salt", {"salt": -1}),
            (TypeError, "salt", {"salt": b"customer"}),
            (TypeError, "prediction", {"prediction": "text"}),
            (TypeError, "prediction", {"prediction": [1, 2.5]}),
            (ValueError, "prediction", {"prediction": [[1, 2]]}),
        ):
            refused: Any = self.assertRaisesRegex(error, f"^{name}: ")
            with refused, reprise_decoding.request(**wrong):  # type: ignore[arg-type]
                self.fail("the block has begun")
            self.assertIs(current(), OTHER)

    def test_the_smaller_bound_holds(self) -> None:
        for settings, most, wanted in (
            ({}, 16, 16),
            ({"max_draft": 4}, 16, 4),
            ({"max_draft": 64}, 16, 16),
            ({"max_draft": 4}, 0, 0),
            ({"enabled": False}, 16, 0),
            ({"enabled": False, "max_draft": 4}, 16, 0),
        ):
            with reprise_decoding.request(**settings) as one:  # type: ignore[arg-type]
                self.assertEqual(one.most(most), wanted, settings)

    def test_a_salt_is_the_one_of_the_memory(self) -> None:
        with reprise_decoding.request(salt="customer") as named, reprise_decoding.request(salt=7) as numbered:
            self.assertEqual((named.salt, numbered.salt), (reprise_decoding._memory.salt_number("customer"), 7))

    def test_the_first_drafter_alone_gets_what_is_left_of_a_prediction(self) -> None:
        ids = np.array([1, 2, 3, 4], np.int32)
        for sampled, wanted in (((), [1, 2, 3, 4]), ([1], [2, 3, 4]), (ids[:2], [3, 4]), ([2], [1, 2, 3, 4]),
                                ([1, 3], [1, 2, 3, 4]), (ids, []), ([1, 2, 3, 4, 5], [1, 2, 3, 4])):  # fmt: skip
            drafter = unittest.mock.Mock()
            given = ids.copy()
            with reprise_decoding.request(prediction=given) as one:
                given[:] = 9  # it is copied
                one.predict(drafter, sampled)
                one.predict(drafter, sampled)
            self.assertEqual([call.args[0].tolist() for call in drafter.predict.mock_calls], [wanted])

    def test_blocks_of_threads_and_inner_blocks(self) -> None:
        seen: list[Any] = []
        with reprise_decoding.request() as outer:
            with self.assertRaises(KeyError), reprise_decoding.request() as inner:
                seen.append(current() is inner)
                raise KeyError
            thread = threading.Thread(target=lambda: seen.append(current() is OTHER))
            thread.start()
            thread.join()
            seen.append(current() is outer)
        seen.append(current() is OTHER)
        self.assertEqual(seen, [True] * 4)

    def test_a_block_that_ends_in_another_context(self) -> None:
        def stream() -> Iterator[None]:
            with reprise_decoding.request():
                yield

        steps = stream()
        contextvars.copy_context().run(next, steps)
        with reprise_decoding.request() as own:
            self.assertEqual(list(steps), [])
            self.assertIs(current(), own)

    def test_counts_are_summed_and_those_outside_are_not_kept(self) -> None:
        with reprise_decoding.request() as one:
            self.assertEqual((one.statistics.passes, one.statistics.tokens_per_pass), (0, 0))
            for each in (one, one, OTHER):
                each.add(Counter(passes=2, drafted=5, accepted=3, tokens=5))
        counts = one.statistics
        self.assertEqual((counts.passes, counts.drafted, counts.accepted, counts.passes_saved), (4, 10, 6, 6))
        self.assertEqual(OTHER.statistics.passes, 0)

    @unittest.skipUnless(hasattr(signal, "setitimer"), "there are no such signals here")
    def test_an_exception_of_a_signal_handler_at_every_place(self) -> None:
        def block() -> None:
            with reprise_decoding.request():
                pass

        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None  # Python ignores exceptions in finalizers
        self.addCleanup(setattr, sys, "unraisablehook", hook)
        self.assertGreater(everywhere(block, lambda _: self.assertIs(current(), OTHER)), 10)


if __name__ == "__main__":
    unittest.main()
