"""Data files: the folder in which they lie, and their download.

Data files lie in `data_dir`; if none is given, in the folder named by the
environment variable `GAR_KERAS_DATA`, else in the user's cache folder
(`gar_keras.utils.files.user_cache`).
"""

import http.client
import mmap
import os
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from gar_keras.datasets.base import DataError, check_md5
from gar_keras.utils.files import user_cache

_BLOCK = 1 << 20

# What a connection can raise, and a later attempt may not.
_PASSING_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ssl.SSLError,
    ConnectionError,
    TimeoutError,
)

# HTTP: request timeout, range not satisfiable, too many requests.
_PASSING_CODES = (408, 416, 429)


@dataclass(frozen=True)
class RemoteFile:
    """A published file, and how to know it.

    Args:
        name: File name, without a folder.
        bytes: Its size in bytes.
        md5: Its MD5, 32 hexadecimal digits.
        url: Where it is published, `http://` or `https://`.
    """

    name: str
    bytes: int
    md5: str
    url: str


@dataclass(frozen=True)
class Retries:
    """Attempts of a download, and the waits between them.

    Args:
        attempts: Number of attempts.
        wait_s: Seconds before the second attempt. The wait doubles each time.
        timeout_s: Seconds without an answer after which an attempt ends.
    """

    attempts: int = 5
    wait_s: float = 1.0
    timeout_s: float = 30.0


PATIENT = Retries()


def data_folder(data_dir=None):
    """The folder that holds the data files.

    Args:
        data_dir: A folder, or `None` for the folder named by the environment
            variable `GAR_KERAS_DATA` or, without that, the user's folder.

    Returns:
        A `Path`. The folder need not exist.

    Raises:
        DataError: if it is a file.

    Example:

    >>> data_folder("~/data") == Path.home() / "data"
    True
    """
    if data_dir is None:
        data_dir = os.environ.get("GAR_KERAS_DATA") or user_cache()
    folder = Path(data_dir).expanduser()
    if folder.exists() and not folder.is_dir():
        raise DataError(
            f"data_dir must be a folder. Received: data_dir={str(folder)!r}. "
            "Give the folder that holds the files."
        )
    return folder


def fetch(file, data_dir=None, retries=PATIENT):
    """The path of a published file, downloaded first if it is not there.

    A download goes to `<name>.part`, from which it is resumed (HTTP Range)
    when it was cut off, in this call or an earlier one. Size and MD5 are
    checked before the file gets its name, and of a file that is there already
    at every call. Processes that want the same file wait for the first one.

    Args:
        file: `RemoteFile`.
        data_dir: As in `data_folder`.
        retries: `Retries`.

    Returns:
        Its `Path`.

    Raises:
        DataError: if the file there is not the published one, or if the
            download fails; the message says where to put the file by hand.
    """
    path = data_folder(data_dir) / file.name
    if path.exists():
        check_file(path, file)
    else:
        _fetch_new(file, path, retries)
    return path


def check_file(path, file):
    """Raises `DataError` unless a file has the size and MD5 published for it.

    Args:
        path: `Path` of the file.
        file: `RemoteFile`.
    """
    size = path.stat().st_size
    if size != file.bytes:
        raise DataError(
            f"{path} was truncated or altered. Received: {size:,} bytes, "
            f"expected {file.bytes:,}. Delete it, and it will be downloaded "
            f"from {file.url}, or put a clean copy in its place."
        )
    with open(path, "rb") as stream:
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            check_md5(content, file.md5, str(path))


def lock(path):
    """The lock of a file, held by one process at a time; it lies beside it."""
    import filelock

    path.parent.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(path.with_name(f"{path.name}.lock"))


def _fetch_new(file, path, retries):
    part = path.with_name(f"{file.name}.part")
    try:
        with lock(path):
            # Another process may have fetched it while this one waited.
            if not path.exists():
                _download(file, part, retries)
                _accept(file, part, path)
    except (OSError, http.client.HTTPException) as error:
        raise DataError(_by_hand(file, part, error)) from error


def _accept(file, part, path):
    try:
        check_file(part, file)
    except DataError as error:
        # Nothing to resume from: these are not the bytes of the file.
        part.unlink()
        reason = "what came has another MD5, and was removed"
        raise DataError(_by_hand(file, part, reason)) from error
    os.replace(part, path)


def _download(file, part, retries):
    """Fills `part` to the size of the file, in several attempts."""
    with _progress_bar() as bar:
        task = bar.add_task(file.name, total=file.bytes)
        for attempt in range(retries.attempts):
            try:
                for size in _download_rest(file, part, retries.timeout_s):
                    bar.update(task, completed=size)
                return
            except _PASSING_ERRORS as error:
                last = attempt == retries.attempts - 1
                if last or not _may_pass(error):
                    raise
                bar.console.print(f"{error}: trying again", markup=False)
            time.sleep(retries.wait_s * 2**attempt)


def _download_rest(file, part, timeout_s):
    """One attempt: yields the size of `part` as it grows."""
    start = part.stat().st_size if part.exists() else 0
    if start == file.bytes:
        return
    headers = {"Accept-Encoding": "identity"}
    if 0 < start < file.bytes:
        headers["Range"] = f"bytes={start}-"
    request = urllib.request.Request(file.url, headers=headers)
    try:
        answer = urllib.request.urlopen(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:
            # The server has fewer bytes than we: not those of this file.
            part.unlink()
        raise
    with answer:
        # Servers may ignore Range and send the whole file again.
        size = start if answer.status == 206 else 0
        _check_offer(file, answer, size)
        with open(part, "ab" if size else "wb") as out:
            while block := answer.read(min(_BLOCK, file.bytes - size + 1)):
                size += len(block)
                if size > file.bytes:
                    raise _OtherFile(f"more than {file.bytes:,} bytes came")
                out.write(block)
                yield size
    if size < file.bytes:
        raise ConnectionError(
            f"the connection was cut after {size:,} of {file.bytes:,} bytes"
        )


class _OtherFile(OSError):
    """The server offers another file under this address."""


def _check_offer(file, answer, start):
    expected = file.bytes - start
    offered = answer.headers.get("Content-Length", str(expected))
    if offered != str(expected):
        raise _OtherFile(f"the server offers {offered} bytes, not {expected}")
    if answer.status == 206:
        span = f"bytes {start}-{file.bytes - 1}/"
        received = answer.headers.get("Content-Range", "")
        if not received.startswith(span):
            raise _OtherFile(f"the server offers {received!r}, not {span!r}")


def _may_pass(error):
    if not isinstance(error, urllib.error.HTTPError):
        return True
    return error.code >= 500 or error.code in _PASSING_CODES


def _progress_bar():
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


def _by_hand(file, part, reason):
    message = (
        f"Could not download {file.name} ({file.bytes:,} bytes) from "
        f"{file.url}: {reason}. Try again, or download it by other means and "
        f"put it in {part.parent} (--data-dir names another folder)."
    )
    if part.exists():
        message += (
            f" The first {part.stat().st_size:,} bytes are kept in {part.name}"
            " there, and another try goes on from them."
        )
    return message
