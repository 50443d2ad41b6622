# SPDX-License-Identifier: Apache-2.0
"""The owner of a session that a caller passes to several generations."""

from __future__ import annotations

import weakref

from ._arrays import Tokens
from ._errors import ArgumentError, OrderError
from ._memory import Memory
from ._request import Request
from ._session import Session


def session_for(ids: Tokens, request: Request, session: Session | None, memory: Memory | None) -> Session:
    """Returns the session of a request: that of the caller, or a new one with the salt of the request."""
    if not ids.size:  # begin() would refuse them, after predict(): the next request would draft from the prediction
        raise ArgumentError("ids: the context is empty: begin with at least one token (BOS will do)")
    if session is None:
        return Session(memory=memory, salt=request.salt or 0)
    if memory is not None or request.salt is not None:
        raise ArgumentError("session: has a memory and a salt of its own; for a salt of a request, pass `memory` alone")
    return session


class Generation:
    """One of the generations that a session serves one after another. Its own loop ends it, or the collector does.

    The end is an assignment, because a signal handler may raise an exception at the begin of any function.
    """

    begun = False
    over = False

    def begin(self, session: Session) -> None:
        """Gives the session to this generation. Raises OrderError if another one uses it."""
        session._alone(self._begin, session)

    def _begin(self, session: Session) -> None:
        used = session._generation
        other = used() if used is not None else None
        if other is not None and not other.over:
            raise OrderError(
                "session: another generation uses it; run that one to its end, close() it, or pass another session"
            )
        session._generation = weakref.ref(self)
        self.begun = True
