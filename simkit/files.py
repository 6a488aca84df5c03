"""Write a file whole or not at all."""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

from simkit.errors import StoreError

_REMEDIES = {
    errno.ENOSPC: "the disk is full: free some space and run again",
    errno.EDQUOT: "the disk quota is used up: free some space and run again",
    errno.EACCES: "permission denied: change the permissions or choose another folder",
    errno.EPERM: "permission denied: change the permissions or choose another folder",
    errno.EROFS: "the file system is read-only: choose another folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder: choose another folder",
    errno.EEXIST: "a part of the path is a file, not a folder: choose another folder",
    errno.EISDIR: "a folder has this name: remove it or choose another name",
}


def atomic_write(path: str | os.PathLike[str], content: bytes | str) -> None:
    r"""Write ``content`` to ``path``: readers see the old file or the new one, never a half.

    The content goes to a temporary file in the same folder (a rename is atomic only within one file
    system), is flushed to the disk, and takes the final name in one step. Missing parent folders are made.

    Parameters
    ----------
    path
        The file to write; an existing file is replaced.
    content
        Text is written as UTF-8 and its line ends are kept as they are.

    Raises
    ------
    StoreError
        If the folder or the file cannot be written; no temporary file is left behind.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atomic_write(Path(folder) / "new" / "a.txt", "α\n")
    ...     (Path(folder) / "new" / "a.txt").read_bytes()
    b'\xce\xb1\n'
    """
    path = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    # Not tempfile.mkstemp: its files are private (0600), and a report is there to be read by others.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_through(temporary, data)
        os.replace(temporary, path)
    except OSError as error:
        raise store_error("write", path, error) from error
    finally:
        # After a successful replace the name is gone; after anything else (Ctrl-C too) nothing may stay.
        with suppress(OSError):
            temporary.unlink()


def store_error(action: str, path: str | os.PathLike[str], error: OSError) -> StoreError:
    """Turn an ``OSError`` met while doing ``action`` to ``path`` into a message that says what to do.

    Examples
    --------
    >>> print(store_error("write", "reports/index.html", OSError(errno.ENOSPC, "No space left")))
    cannot write reports/index.html: the disk is full: free some space and run again
    """
    reason = error.strerror or str(error) or type(error).__name__
    remedy = _REMEDIES.get(error.errno or 0, f"{reason}: check the path and run again")
    return StoreError(f"cannot {action} {os.fspath(path)}: {remedy}")


def _write_through(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
