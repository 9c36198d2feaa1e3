"""What goes wrong, as exceptions of one family: each says what failed, why, and what to do."""

from __future__ import annotations

__all__ = [
    "CollectError",
    "Error",
    "FileError",
    "HistoryError",
    "MissingPackageError",
    "OperationError",
    "QueryError",
    "SelectionError",
    "ServiceError",
    "StreamError",
]


class Error(Exception):
    """Something that Telltale could not do.

    ``message`` says what failed, and after a semicolon what to do about it; ``cause`` says why, where that is known.
    Those that are an ``OSError`` have the system's number in ``errno``, where one of their causes is the system's.
    """

    message: str
    cause: str | None

    def __init__(self, message: str, cause: str | None = None, number: int | None = None) -> None:
        # One argument: OSError would take two for a number and a text.
        super().__init__(message)
        self.message = message
        self.cause = cause
        self._number = number
        if isinstance(self, OSError):
            self.errno = number

    def __reduce__(self) -> tuple[type[Error], tuple[str, str | None, int | None]]:
        return type(self), (self.message, self.cause, self._number)

    @property
    def remedy(self) -> str | None:
        """What to do, where the message or the cause says it."""
        for text in (self.message, self.cause or ""):
            _, semicolon, remedy = text.rpartition("; ")
            if semicolon:
                return remedy
        return None

    def __str__(self) -> str:
        return self.message if self.cause is None else f"{self.message}: {self.cause}"


class QueryError(Error, ValueError):
    """An argument that cannot be used: a text that is no query, no moment or no number, or two that contradict."""


class CollectError(Error, OSError):
    """A place that cannot be read."""


class ServiceError(Error, ConnectionError):
    """A service that does not answer, refuses, or answers something that cannot be."""


class FileError(Error, OSError):
    """A recording or a capture that cannot be read: it is damaged, or something else."""


class HistoryError(Error, LookupError):
    """A history that is not kept here, or does not go as far."""


class SelectionError(Error, LookupError):
    """Fewer devices fit than a job wants."""


class OperationError(Error, RuntimeError):
    """An operation on an emulated chip that was not done, or a chip or tensor that cannot be used."""


class MissingPackageError(Error, ImportError):
    """A package that is not installed, and is needed for what was called."""


class StreamError(Error, OSError):
    """A debug stream that cannot be connected to, read, or published to."""
