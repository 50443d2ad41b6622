# SPDX-License-Identifier: Apache-2.0
"""The owner of a session that a caller passes to several generations."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Iterator

from ._errors import OrderError
from ._session import Session

_lock = threading.Lock()
_owned: weakref.WeakSet[Session] = weakref.WeakSet()


@contextlib.contextmanager
def owned(session: Session) -> Iterator[None]:
    """Gives the session to one generation, until it ends, is closed or is collected."""
    with _lock:
        if session in _owned:
            raise OrderError(
                "session: another generation uses it; run that one to its end, close() it, or pass another session"
            )
        _owned.add(session)
    try:
        yield
    finally:
        _owned.discard(session)
