"""Where the library of a service is."""

import errno
import os
from os import PathLike
from pathlib import Path


def library_path(path: str | PathLike[str] | None, module: str) -> str | PathLike[str]:
    """The path of a library: `path`, or without one the library in the package of `module`.

    `thalweg package --python` puts it there. `module` is the `__file__` of a module. Generated
    code calls this function.

    Raises `FileNotFoundError` if there is no `path` and the package has no library.
    """
    if path is not None:
        return path
    folder = Path(module).resolve().parent
    found = sorted(folder.glob("lib*.so"))
    if len(found) == 1:
        return found[0]
    reason = "the package contains no library; pass the path of one to open()"
    if found:
        reason = (
            "the package contains several libraries; pass the path of one to open()"
        )
    raise FileNotFoundError(errno.ENOENT, reason, os.fspath(folder))
