# SPDX-License-Identifier: Apache-2.0
"""The memory that an engine keeps between requests."""

from __future__ import annotations

import ctypes
import hashlib
import secrets
from typing import Any

from . import _library
from ._arrays import address, text, whole
from ._handle import Owner, shown

_NAMES = secrets.token_bytes(16)  # numbers of salts are not known outside this process


class Memory(Owner):
    """Keeps text and learned weights between requests: make one, and keep it as long as the engine.

    Drafters, batches and sessions that are created with it leave each request to it when the request has ended, and
    begin with what it has: the text of requests, prompts included, what was learned about the model's acceptances, and
    the costs of passes. Text never crosses salts; a salt is a number or a name for the parties that may see each
    other's text. Any number of threads may use objects with one memory at the same time.

    `max_bytes`: memory of the text of a salt, 18 bytes for each token; 0: 64 MiB. `text`: False keeps no text, only
    what was learned. `prompts`, `outputs`: False leaves out their text. `next_token_bytes`: memory of the counts of
    next tokens of a salt; None: 4 MiB; 0: no counts. `salts`: how many salts are kept at the same time; 0: 4. `key`:
    secret and random if the text is not trusted. `vocabulary`: the number of logits in a row of the model's output; 0:
    unknown. `shared_calibration`: False: salts do not share what reveals no token, either.
    """

    _kind = "memory"
    _shared = True
    _waits = True  # a second thread waits for the first
    _instead = "use this one for all objects, or load() into a new one what save() returns"

    def __init__(
        self,
        max_bytes: int = 0,
        *,
        text: bool = True,
        prompts: bool = True,
        outputs: bool = True,
        next_token_bytes: int | None = None,
        salts: int = 0,
        key: int = 0,
        vocabulary: int = 0,
        shared_calibration: bool = True,
    ) -> None:
        without = [not flag(value, name) for name, value in
                   (("text", text), ("prompts", prompts), ("outputs", outputs))]  # fmt: skip
        without += [next_token_bytes == 0, not flag(shared_calibration, "shared_calibration")]
        options = _library.MemoryOptions(
            ctypes.sizeof(_library.MemoryOptions),
            whole(max_bytes, "max_bytes"),
            whole(next_token_bytes or 0, "next_token_bytes"),
            whole(salts, "salts"),
            whole(key, "key", most=2**64 - 1),
            whole(vocabulary, "vocabulary", most=2**32 - 1),
            sum(bit << place for place, bit in enumerate(without)),
        )
        given = {"max_bytes": max_bytes, "next_token_bytes": next_token_bytes, "salts": salts, "vocabulary": vocabulary}
        self._create(options, shown({**given, "without_text": not text}))

    def add(self, ids: Any, prompt: int = 0, salt: int | str = 0) -> None:
        """Keeps a text that no drafter has decoded. Its first `prompt` tokens are the prompt.

        Placeholders are not kept, and no match continues across them: negative ids, and those from `vocabulary` on.
        """
        array = text(ids, "ids")
        self._call("add", salt_number(salt), address(array), array.size, whole(prompt, "prompt", most=array.size))

    def forget(self, salt: int | str = 0) -> None:
        """Forgets all that was kept for a salt. Objects that use it go on with what they have."""
        self._call("forget", salt_number(salt))

    def save(self, tokenizer: int = 0, salt: int | str = 0) -> bytes:
        """Returns a snapshot of a salt, without costs.

        `tokenizer`: a number for the tokenizer and the model, such as a hash of the file.
        """
        return self._bytes("save", salt_number(salt), whole(tokenizer, "tokenizer", most=2**64 - 1))

    def load(self, data: bytes, tokenizer: int = 0, salt: int | str = 0) -> None:
        """Adds the contents of a snapshot to a salt. A snapshot with an error is refused, and then nothing changes."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data: must be bytes, but is of the type {type(data).__name__}")
        held = bytes(data)
        self._call("load", salt_number(salt), whole(tokenizer, "tokenizer", most=2**64 - 1), held, len(held))


def salt_number(salt: int | str, key: int | None = None) -> int:
    """Returns the number of a salt. A name has a number that cannot be guessed without the key.

    `key`: processes with the same one have the same numbers; None: a key of this process.
    """
    if isinstance(salt, str):
        name, secret = salt.encode(errors="surrogatepass"), _NAMES if key is None else key.to_bytes(8, "little")
        return int.from_bytes(hashlib.blake2b(name, digest_size=8, key=secret).digest(), "little")
    return whole(salt, "salt", most=2**64 - 1)


def flag(value: bool, name: str) -> bool:
    """Returns `value`, which must be True or False. `name`: for errors."""
    if not isinstance(value, bool):
        raise TypeError(f"{name}: must be True or False, but is of the type {type(value).__name__}")
    return value
