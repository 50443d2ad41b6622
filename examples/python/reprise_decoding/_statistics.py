# SPDX-License-Identifier: Apache-2.0
"""Counts of passes and of drafted tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Statistics:
    """Counts of a drafter or a session: the gain and the cost of its drafts."""

    tokens: int  #: output tokens that passes committed
    passes: int  #: passes, including those without a draft
    drafted_passes: int  #: passes with a draft
    drafted: int  #: drafted tokens that were sent
    accepted: int  #: drafted tokens that were committed
    timed_passes: int  #: passes whose time is known
    pass_ns: int  #: the sum of these times, in nanoseconds
    #: All fields; docs/formats.md describes them.
    fields: dict[str, Any] = field(repr=False, compare=False)

    @property
    def tokens_per_pass(self) -> float:
        """Tokens per pass: 1 without drafts; 0 before the first pass."""
        return self.tokens / self.passes if self.passes else 0.0

    @property
    def acceptance_rate(self) -> float:
        """Accepted / drafted tokens; 0 if nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0

    @property
    def passes_saved(self) -> int:
        """The further passes that decoding without drafts would need."""
        return self.tokens - self.passes


def parsed(text: bytes) -> Statistics:
    """Returns the statistics in the library's JSON, which may end with a 0."""
    return summed(json.loads(text.rstrip(b"\0")))


def summed(fields: dict[str, Any]) -> Statistics:
    """Returns the statistics with these fields; counts that are not there are 0."""
    names = ("tokens", "passes", "drafted_passes", "drafted", "accepted", "timed_passes", "pass_ns")
    return Statistics(**{name: fields.get(name, 0) for name in names}, fields=fields)
