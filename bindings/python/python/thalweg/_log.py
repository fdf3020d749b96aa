"""Passes what the libraries report to `logging`."""

import atexit
import logging
import os
import threading
import traceback

from thalweg import _native


class _Listener:
    """A thread that takes the records of the libraries out of their queue."""

    def __init__(self, logger: logging.Logger, level: int) -> None:
        self._logger = logger
        self._queue = _native.LogQueue(level)
        self._thread = threading.Thread(
            target=self._run, name="thalweg-log", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        while (records := self._queue.take()) is not None:
            for record in records:
                try:
                    self._handle(*record)
                except Exception:
                    # As a handler of `logging` does: the other records still count.
                    if logging.raiseExceptions:
                        traceback.print_exc()

    def _handle(self, level: int, target: str, message: str, seconds: float) -> None:
        logger = self._logger.getChild(target)
        if logger.isEnabledFor(level):
            record = logger.makeRecord(logger.name, level, "", 0, message, (), None)
            record.created = seconds
            record.msecs = seconds % 1 * 1000
            logger.handle(record)

    def close(self) -> None:
        self._queue.close()
        if self._thread is not threading.current_thread():
            self._thread.join()


_lock = threading.Lock()
_listener: _Listener | None = None


def log_to(logger: logging.Logger | None, level: int = logging.WARNING) -> None:
    """Passes the log records of all libraries to children of `logger`.

    The child's name is the part of the library that reports: `logger.getChild("service")`. The
    libraries build only records from `level` on: errors are panics and crashes, warnings are limits
    that were reached and work that was lost, and infos are starts and restarts. The records are
    handled on a thread of their own, which ends with the program or with `log_to(None)`. That also
    handles the records that have already arrived. A forked child begins without a logger.
    """
    global _listener
    with _lock:
        listener, _listener = _listener, None
        if listener is not None:
            listener.close()
        if logger is not None:
            _listener = _Listener(logger, level)


def _forget() -> None:
    global _listener, _lock
    _listener, _lock = None, threading.Lock()


atexit.register(log_to, None)
os.register_at_fork(after_in_child=_forget)
