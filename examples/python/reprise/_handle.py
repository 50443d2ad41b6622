# SPDX-License-Identifier: Apache-2.0
"""The common part of all objects of the library: one handle, its errors, and one thread at a time."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, SupportsIndex, TypeVar

from . import _library
from ._arrays import BELOW
from ._errors import OrderError, error


Self = TypeVar("Self", bound="Owner")


# Protects the users of all handles, because Python may run without its global lock. A thread may take it twice: while it
# counts, the garbage collector can release another object.
_counting = threading.RLock()


class Handle:
    """A handle of the library. It is destroyed when nobody uses it any more."""

    __slots__ = ("pointer", "_destroy", "_users", "_uses")

    def __init__(self, pointer: int, destroy: Callable[[int], None]) -> None:
        self.pointer = pointer
        self._destroy = destroy
        self._users = 1
        self._uses: dict[int, Handle] = {}  # they have to outlive this handle

    def use(self, used: Handle | None, place: int = -1) -> None:
        """Keeps `used` alive, in place of the handle that was used at this place before."""
        before = self._uses.pop(place, None)
        if used is not None:
            with _counting:
                used._users += 1
            self._uses[place] = used
        if before is not None:
            before.release()

    def used(self, place: int = -1) -> Handle | None:
        """The handle that is used at this place."""
        return self._uses.get(place)

    def release(self) -> None:
        with _counting:
            self._users -= 1
            last = self._users == 0
        if last:
            self._destroy(self.pointer)
            for used in self._uses.values():
                used.release()


class Owner:
    """The owner of a handle. Every call of the library goes through _call()."""

    _kind = ""  # part of the names of its functions, such as "session"
    _instead = ""  # what to do in place of a copy
    _shown = "not created"  # for repr()
    _closed = True
    _below = BELOW  # the bound of token ids
    _waits = False  # whether a second thread waits for the first

    def _own(self, pointer: int, shown: str, uses: Handle | None = None) -> None:
        self._shown = shown
        self._handle = Handle(pointer, getattr(_library.library, f"reprise_{self._kind}_destroy"))
        self._handle.use(uses)
        self._error: Any = getattr(_library.library, f"reprise_{self._kind}_error", None)
        self._lock = threading.Lock()
        self._closed = False

    def _create(self, options: Any, shown: str, owners: Sequence[Owner] = (), *more: Any) -> None:
        """Creates the handle. `owners`: the objects that the options refer to. `more`: arguments after the options."""
        pointer, described = ctypes.c_void_p(), _library.LibraryError()
        create = getattr(_library.library, f"reprise_{self._kind}_create")
        with locked(owners):
            status = create(ctypes.byref(options), *more, ctypes.byref(pointer), ctypes.byref(described))
            if status != _library.OK:
                raise error(status, described, type(self).__name__)
            self._own(pointer.value or 0, shown, history_of(owners))

    def _call(self, name: str, *arguments: Any, read: Callable[[], Any] | None = None) -> Any:
        """Calls a function of the library, and returns read(). Raises an exception if it fails."""
        function = getattr(_library.library, f"reprise_{self._kind}_{name}")
        self._enter()
        try:
            status = function(self._handle.pointer, *arguments)
            if status != _library.OK:
                raise error(status, self._error(self._handle.pointer).contents, name)
            return read() if read is not None else None
        finally:
            self._lock.release()

    def _enter(self) -> None:
        self._acquire()
        if self._closed:
            self._lock.release()
            raise OrderError(f"{type(self).__name__}: it has been closed; create a new one")

    def _acquire(self) -> None:
        if not self._lock.acquire(self._waits):
            raise OrderError(f"{type(self).__name__}: another thread is using it; use one object for each thread")

    def _bytes(self, name: str, *arguments: Any) -> bytes:
        """Calls a function that fills a buffer."""
        needed, room = ctypes.c_size_t(), 4096
        while True:
            buffer = ctypes.create_string_buffer(room)
            try:
                self._call(name, *arguments, buffer, room, ctypes.byref(needed))
                return buffer.raw[: needed.value]
            except ValueError as failed:
                if getattr(failed, "status", 0) != _library.OUT_OF_ROOM or needed.value <= room:
                    raise
                room = needed.value

    def close(self) -> None:
        """Frees the memory now, as the end of a `with` block does. Later calls raise OrderError, except close()."""
        self._acquire()
        closed, self._closed = self._closed, True
        self._lock.release()
        if not closed:
            self._handle.release()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if not self._closed:
            self._closed = True
            self._handle.release()

    def __reduce_ex__(self, _: SupportsIndex) -> NoReturn:
        # Two objects with one handle would both free it.
        raise TypeError(f"{type(self).__name__}: it cannot be copied or pickled: {self._instead}")

    def __repr__(self) -> str:
        # It calls nothing of the library, and takes no lock, so that another thread can call it at any time.
        state = ", closed" if self._closed else ", in use" if self._lock.locked() else ""
        return f"<reprise.{type(self).__name__}: {self._shown}{state}>"


def shown(given: dict[str, Any]) -> str:
    """Returns a text for repr(), of the options that are given. They must not be secret."""
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value) or "default options"


@contextlib.contextmanager
def locked(owners: Sequence[Owner]) -> Iterator[None]:
    """Holds the locks of objects that options refer to. None of them may have been closed."""
    with contextlib.ExitStack() as used:
        for owner in owners:  # all threads take the locks in this order
            used.enter_context(owner._lock)
            if owner._closed:
                raise OrderError(f"{type(owner).__name__}: it has been closed; create a new one")
        yield


def history_of(owners: Sequence[Owner]) -> Handle | None:
    """Returns the handle of the history among the objects that options refer to."""
    return next((owner._handle for owner in owners if owner._kind == "history"), None)
