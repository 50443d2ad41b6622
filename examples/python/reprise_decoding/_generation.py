# SPDX-License-Identifier: Apache-2.0
"""The owner of a session that a caller passes to several generations."""

from __future__ import annotations

import weakref

from ._errors import OrderError
from ._session import Session


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
