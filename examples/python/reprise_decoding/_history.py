# SPDX-License-Identifier: Apache-2.0
"""Text of earlier sequences, from which later ones can draft."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _library
from ._arrays import address, text, whole
from ._handle import Owner, shown

if TYPE_CHECKING:
    from ._batch import BatchDrafter
    from ._drafter import Drafter
    from ._session import Session


class History(Owner):
    """Text of earlier sequences. Drafters and sessions that are created with it draft from it.

    Everything in a history may appear in drafts, so share a history only among users who may see each other's text.
    One thread may change a history while others draft from it.

    `max_bytes`: memory of the text and its index; 0: 64 MiB. `next_token_bytes`: memory of the table of next-token
    counts; 0: no table. `key`: secret and random if the text is not trusted. `vocabulary`: the number of logits in a
    row of the model's output; 0: unknown.
    """

    _kind = "history"
    _shared = True
    _waits = True  # adapters make drafters, which read it, in any thread
    _instead = "use this one for all objects, or load() into a new one what save() returns"

    def __init__(self, max_bytes: int = 0, next_token_bytes: int = 0, key: int = 0, vocabulary: int = 0) -> None:
        options = _library.HistoryOptions(
            ctypes.sizeof(_library.HistoryOptions),
            whole(max_bytes, "max_bytes"),
            whole(next_token_bytes, "next_token_bytes"),
            whole(key, "key", most=2**64 - 1),
            whole(vocabulary, "vocabulary", most=2**32 - 1),
        )
        given = {"max_bytes": max_bytes, "next_token_bytes": next_token_bytes, "vocabulary": vocabulary}
        self._create(options, shown(given))

    def add(self, ids: Any, prompt: int = 0, name: int = 0, removable: bool = True) -> None:
        """Stores a sequence, of which the first `prompt` tokens are the prompt.

        Placeholders are not stored, and no match continues across them: negative ids, and those from `vocabulary` on.
        `name`: a number for the sequence, for remove(). `removable`: False if the sequence will never have to be
        removed. Only then are its next tokens counted, because counts cannot be removed.
        """
        array = text(ids, "ids")
        if not isinstance(removable, (bool, np.bool_)):
            raise TypeError(f"removable: must be True or False, but is of the type {type(removable).__name__}")
        self._call(
            "add",
            whole(name, "name", most=2**64 - 1),
            address(array),
            array.size,
            whole(prompt, "prompt", most=array.size),
            int(removable),
        )

    def remove(self, name: int) -> None:
        """Removes the text of all sequences with this name."""
        self._call("remove", whole(name, "name", most=2**64 - 1))

    def clear(self) -> None:
        """Removes everything."""
        self._call("clear")

    def learn(self, source: Drafter | BatchDrafter | Session, slot: int = 0) -> None:
        """Takes over what a drafter, one slot of a batch or a session has learned about the model's acceptances.

        Drafters and sessions that are created, and slots that are assigned, later with this history begin with it.
        """
        kind = getattr(source, "_kind", "")
        if kind not in ("follower", "batch", "session"):
            found = type(source).__name__
            raise TypeError(f"source: must be a Drafter, a BatchDrafter or a Session, but is of the type {found}")
        slots = (whole(slot, "slot"),) if kind == "batch" else ()
        source._alone(lambda: self._call(f"learn_from_{kind}", source._open().pointer, *slots))

    def save(self, tokenizer: int = 0) -> bytes:
        """Returns a snapshot. `tokenizer`: a number for the tokenizer and the model, such as a hash of the file."""
        return self._bytes("save", whole(tokenizer, "tokenizer", most=2**64 - 1))

    def load(self, data: bytes, tokenizer: int = 0) -> None:
        """Adds the contents of a snapshot. A snapshot with an error is refused, and then nothing changes."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data: must be bytes, but is of the type {type(data).__name__}")
        held = bytes(data)
        self._call("load", whole(tokenizer, "tokenizer", most=2**64 - 1), held, len(held))
