"""Data files: where they lie, how they are fetched, and how they are cached.

Folders, for every loader whose files do not ship with the package:

- Data files lie in `data_dir`; if none is given, in the folder named by the
  environment variable `GAR_KERAS_DATA`, else in the user's folder.
- Files made from them lie in the folder named by `GAR_KERAS_CACHE`; without
  it, in the folder of the data files if that can be written, else in the
  user's folder.

The user's folder is `gar_keras` in the folder named by `XDG_CACHE_HOME`;
without it, `~/.cache/gar_keras`.

A file made from others carries a fingerprint of all that it depends on, in its
name and inside. It is written under another name first, then renamed, and
HDF5 keeps a checksum of all that is in it. So one that is stale, cut short or
damaged is never used; it is made anew. They can be deleted at any time.
"""

from collections.abc import Callable
from dataclasses import dataclass
import hashlib
import http.client
import json
import mmap
import os
from pathlib import Path
import ssl
import time
import tokenize
import urllib.error
import urllib.request
import zipfile
import zlib

import filelock
import h5py
import numpy as np

from gar_keras.datasets.base import DataError
from gar_keras.datasets.base import check_md5
from gar_keras.utils.validation import check_count

_BLOCK = 1 << 20

# What a connection can raise, and a later attempt may not.
_PASSING_ERRORS = (
    urllib.error.URLError,
    http.client.HTTPException,
    ssl.SSLError,
    ConnectionError,
    TimeoutError,
)
# From this version of its format on, HDF5 has checksums over metadata too. In
# older ones, one flipped bit there can yield other data without any error.
_CHECKED = ("v110", "v110")

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

    Raises:
        ValueError: if one of them cannot be.

    Example:

    >>> RemoteFile("a.mat", 5, "5d41402abc4b2a76b9719d911017c592", "a.mat")
    Traceback (most recent call last):
        ...
    ValueError: url must begin with http:// or https://. Received: url='a.mat'
    """

    name: str
    bytes: int
    md5: str
    url: str

    def __post_init__(self):
        if Path(self.name).name != self.name or self.name in ("", ".."):
            raise ValueError(
                "name must be a file name without a folder. Received: "
                f"name={self.name!r}"
            )
        check_count("bytes", self.bytes, least=1)
        if len(self.md5) != 32 or set(self.md5) - set("0123456789abcdef"):
            raise ValueError(
                "md5 must be 32 hexadecimal digits in lower case. Received: "
                f"md5={self.md5!r}"
            )
        if not self.url.startswith(("http://", "https://")):
            raise ValueError(
                "url must begin with http:// or https://. Received: "
                f"url={self.url!r}"
            )


@dataclass(frozen=True)
class Retries:
    """How patiently a download is tried.

    Args:
        attempts: Number of attempts.
        wait_s: Seconds before the second attempt. The wait doubles each time.
        timeout_s: Seconds without an answer after which an attempt ends.

    Raises:
        ValueError: if a number is out of range.
    """

    attempts: int = 5
    wait_s: float = 1.0
    timeout_s: float = 30.0

    def __post_init__(self):
        check_count("attempts", self.attempts, least=1)
        if not 0 <= self.wait_s < float("inf"):
            raise ValueError(
                "wait_s must be a finite number of seconds from 0 on. "
                f"Received: wait_s={self.wait_s!r}"
            )
        if not 0 < self.timeout_s < float("inf"):
            raise ValueError(
                "timeout_s must be a finite number of seconds above 0. "
                f"Received: timeout_s={self.timeout_s!r}"
            )


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
        data_dir = os.environ.get("GAR_KERAS_DATA") or _user_folder()
    folder = Path(data_dir).expanduser()
    if folder.exists() and not folder.is_dir():
        raise DataError(
            f"data_dir must be a folder. Received: data_dir={str(folder)!r}. "
            "Give the folder that holds the files."
        )
    return folder


def cache_folders(data_dir=None):
    """The folders in which files made from the data may lie.

    They are looked for in all of these, in this order, and written to the
    first that can be written. A folder without any write permission counts as
    read-only even for root.

    Args:
        data_dir: As in `data_folder`.

    Returns:
        A list of `Path`: the folder named by the environment variable
        `GAR_KERAS_CACHE` alone or, without that, the folder of the data files
        and the user's folder.
    """
    chosen = os.environ.get("GAR_KERAS_CACHE")
    if chosen:
        return [Path(chosen).expanduser()]
    return list(dict.fromkeys([data_folder(data_dir), _user_folder()]))


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


def fingerprint(paths, settings):
    """SHA-256 over the content of files and over settings.

    Args:
        paths: Paths of files. Their names count, their folders do not.
        settings: What JSON can hold, e.g. a dict.

    Returns:
        64 hexadecimal digits.

    Example:

    >>> fingerprint([], {"seed": 0})[:8]
    'de7d7744'
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for path in paths:
        with open(path, "rb") as stream:
            content = hashlib.file_digest(stream, "sha256")
        digest.update(f"|{path.name}|{content.hexdigest()}".encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class Cached:
    """An HDF5 file made once from the data, and then read.

    Args:
        name: What its file name begins with.
        fingerprint: `fingerprint` of all that its content depends on.
        write: `write(file)` fills an open, empty `h5py.File`, by means of
            `create_checked`.
        read: `read(path)` returns what is wanted of it. It raises `OSError`,
            `KeyError` or `ValueError` if the file is damaged.
    """

    name: str
    fingerprint: str
    write: Callable
    read: Callable

    def load(self, data_dir=None):
        """Reads the file, made first if there is none that is sound.

        Args:
            data_dir: As in `data_folder`.

        Returns:
            What `read` returns.

        Raises:
            DataError: if the data are bad, or if the file cannot be written.
        """
        name = f"{self.name}-{self.fingerprint[:16]}.h5"
        folders = cache_folders(data_dir)
        for folder in folders:
            content = self._read_sound(folder / name)
            if content is not None:
                return content
        path = _first_writable(folders) / name
        try:
            with _lock(path):
                # Another process may have made it while this one waited.
                content = self._read_sound(path)
                if content is None:
                    self._make(path)
        except (OSError, RuntimeError) as error:
            raise DataError(
                f"Could not write {path}: {error}. Make room there, or set "
                "the environment variable GAR_KERAS_CACHE to a folder with "
                "room."
            ) from error
        return self.read(path) if content is None else content

    def _read_sound(self, path):
        """What `read` returns, or `None` if the file is absent or unsound."""
        try:
            with h5py.File(path, "r") as file:
                same = file.attrs["fingerprint"] == self.fingerprint.encode()
            return self.read(path) if same else None
        except (OSError, KeyError, ValueError, RuntimeError):
            return None

    def _make(self, path):
        temporary = path.with_name(f"{path.name}.tmp")
        try:
            with h5py.File(temporary, "w", libver=_CHECKED) as file:
                self.write(file)
                # Of fixed length: strings of any length have no checksum.
                file.attrs["fingerprint"] = np.bytes_(self.fingerprint)
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def create_checked(file, key, shape, dtype, per_chunk):
    """An empty data set in an HDF5 file, with a checksum for every chunk.

    Args:
        file: Open `h5py.File`.
        key: Its name.
        shape: Its shape.
        dtype: Its dtype.
        per_chunk: Rows in a chunk, at most.

    Returns:
        The `h5py.Dataset`.
    """
    chunks = (min(per_chunk, shape[0]), *shape[1:])
    return file.create_dataset(
        key, shape, dtype, chunks=chunks, fletcher32=True
    )


@dataclass(frozen=True)
class Form:
    """Dtype and shape that an array of a file must have.

    Args:
        dtype: NumPy type, which may be an abstract one such as `np.integer`.
        shape: Length of each axis; a `range` where several are allowed.

    Example:

    >>> form = Form(np.integer, (range(4), 2))
    >>> print(form, form.fits(np.dtype("int8"), (3, 2)))
    integer (0..3, 2) True
    """

    dtype: type
    shape: tuple

    def __str__(self):
        lengths = [
            f"{n[0]}..{n[-1]}" if isinstance(n, range) else str(n)
            for n in self.shape
        ]
        comma = "," if len(lengths) == 1 else ""
        return f"{self.dtype.__name__} ({', '.join(lengths)}{comma})"

    def fits(self, dtype, shape):
        """Whether an array of this dtype and shape has the form."""
        return (
            np.issubdtype(dtype, self.dtype)
            and len(shape) == len(self.shape)
            and all(
                n in wanted if isinstance(wanted, range) else n == wanted
                for n, wanted in zip(shape, self.shape, strict=True)
            )
        )


def read_arrays(path, forms):
    """Reads arrays from an `.npz` file.

    The header of an array is checked before memory is taken for it, so a
    damaged or crafted file cannot ask for more than its data set needs.

    Args:
        path: `Path` of the file.
        forms: Dict of `Form` by name of the array.

    Returns:
        A dict of arrays.

    Raises:
        DataError: if the file is damaged, lacks one of them or holds it in
            another form.
    """
    try:
        with open(path, "rb") as stream, zipfile.ZipFile(stream) as archive:
            return {k: _read_member(archive, k, f) for k, f in forms.items()}
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        EOFError,
        MemoryError,
        RuntimeError,
        tokenize.TokenError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise DataError(
            f"{path} is not a readable .npz file with {', '.join(forms)}: "
            f"{error}. Put a clean copy in its place."
        ) from error


def _read_member(archive, key, form):
    with archive.open(f"{key}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(
                f"{key} must be of version (1, 0) of the format. Received: "
                f"{version}"
            )
        shape, _, dtype = np.lib.format.read_array_header_1_0(stream)
        if not form.fits(dtype, shape):
            raise ValueError(f"{key} must be {form}. Received: {dtype} {shape}")
        stream.seek(0)
        array = np.lib.format.read_array(stream)
        # At the end, and not before, the checksum is compared.
        if stream.read(1):
            raise ValueError(f"{key} has bytes behind its {dtype} {shape}")
    return array


def _user_folder():
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "gar_keras"


def _first_writable(folders):
    for folder in folders:
        if _is_writable(folder):
            return folder
    raise DataError(
        "No folder for files made from the data can be written. Received: "
        f"{', '.join(map(str, folders))}. Set the environment variable "
        "GAR_KERAS_CACHE to one that can."
    )


def _is_writable(folder):
    while not folder.exists():
        folder = folder.parent
    # root may write to any folder: go by what its owner wants.
    wanted = folder.stat().st_mode & 0o222
    return bool(wanted) and os.access(folder, os.W_OK | os.X_OK)


def _lock(path):
    """Held by one process at a time; made beside the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return filelock.FileLock(path.with_name(f"{path.name}.lock"))


def _fetch_new(file, path, retries):
    part = path.with_name(f"{file.name}.part")
    try:
        with _lock(path):
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
    from rich.progress import BarColumn
    from rich.progress import DownloadColumn
    from rich.progress import Progress
    from rich.progress import TextColumn
    from rich.progress import TimeRemainingColumn
    from rich.progress import TransferSpeedColumn

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
