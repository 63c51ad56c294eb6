"""Folders, downloads against a server on this machine, and the cache."""

import collections
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
import hashlib
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
import socket
import threading
import zipfile

import h5py
from hypothesis import HealthCheck
from hypothesis import given
from hypothesis import settings
from hypothesis import strategies as st
import numpy as np
import pytest

from gar_keras.datasets import files
from gar_keras.datasets.base import DataError
from gar_keras.datasets.files import Cached
from gar_keras.datasets.files import Form
from gar_keras.datasets.files import RemoteFile
from gar_keras.datasets.files import Retries
from gar_keras.datasets.files import cache_folders
from gar_keras.datasets.files import create_checked
from gar_keras.datasets.files import data_folder
from gar_keras.datasets.files import fetch
from gar_keras.datasets.files import fingerprint
from gar_keras.datasets.files import read_arrays

CONTENT = np.random.default_rng(0).bytes(3_000_001)
HALF = len(CONTENT) // 2
QUICK = Retries(attempts=3, wait_s=0, timeout_s=10)
ONCE = replace(QUICK, attempts=1)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home of its own for each test, and no settings from outside."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GAR_KERAS_DATA", raising=False)
    monkeypatch.delenv("GAR_KERAS_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    return tmp_path / "home"


class Server(ThreadingHTTPServer):
    """Serves CONTENT, and treats each request as the next plan says.

    Plans: "whole" answers in full, ranges too; "cut" breaks off half way
    through; "no range" ignores ranges; "wrong range" sends another part;
    "endless" does not say how much comes; a number is an HTTP status.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.plans = collections.deque()
        self.ranges = []

    def file(self, **changes):
        file = RemoteFile(
            name="digits.mat",
            bytes=len(CONTENT),
            md5=hashlib.md5(CONTENT, usedforsecurity=False).hexdigest(),
            url=f"http://127.0.0.1:{self.server_port}/digits.mat",
        )
        return replace(file, **changes)


class Handler(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        asked = self.headers["Range"]
        self.server.ranges.append(asked)
        plans, content = self.server.plans, self.server.content
        plan = plans.popleft() if plans else "whole"
        if isinstance(plan, int):
            return self.send_error(plan)
        start = int(asked[len("bytes=") : -1]) if asked else 0
        if start >= len(content):
            return self.send_error(416)
        begin = 0 if plan == "no range" else start
        self.send_response(206 if begin else 200)
        if begin:
            first = begin + (plan == "wrong range")
            span = f"bytes {first}-{len(content) - 1}/{len(content)}"
            self.send_header("Content-Range", span)
        if plan != "endless":
            self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        end = HALF if plan == "cut" else len(content)
        self.wfile.write(content[begin:end])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join(10)


def test_fetch_downloads_once(server, tmp_path):
    folder = tmp_path / "new" / "folder"
    path = fetch(server.file(), folder, QUICK)
    assert path == folder / "digits.mat"
    assert path.read_bytes() == CONTENT
    assert not (folder / "digits.mat.part").exists()
    assert fetch(server.file(), folder, QUICK) == path
    assert server.ranges == [None]


def test_fetch_resumes_where_the_connection_was_cut(server, tmp_path):
    server.plans.extend(["cut", "whole"])
    path = fetch(server.file(), tmp_path, QUICK)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_fetch_resumes_in_a_later_call(server, tmp_path):
    server.plans.append("cut")
    with pytest.raises(DataError) as failure:
        fetch(server.file(), tmp_path, ONCE)
    message = str(failure.value)
    for part in (
        "digits.mat (3,000,001 bytes)",
        server.file().url,
        str(tmp_path),
        "--data-dir",
        "cut after 1,500,000 of 3,000,001 bytes",
        "The first 1,500,000 bytes are kept in digits.mat.part",
    ):
        assert part in message
    part = tmp_path / "digits.mat.part"
    assert part.read_bytes() == CONTENT[:HALF]
    assert not (tmp_path / "digits.mat").exists()
    assert fetch(server.file(), tmp_path, ONCE).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_fetch_starts_over_where_ranges_are_ignored(server, tmp_path):
    server.plans.extend(["cut", "no range"])
    path = fetch(server.file(), tmp_path, QUICK)
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={HALF}-"]


def test_fetch_refuses_another_range(server, tmp_path):
    server.plans.extend(["cut", "wrong range"])
    with pytest.raises(DataError, match="offers"):
        fetch(server.file(), tmp_path, QUICK)
    assert (tmp_path / "digits.mat.part").read_bytes() == CONTENT[:HALF]


def test_fetch_without_a_stated_length(server, tmp_path):
    server.plans.append("endless")
    assert fetch(server.file(), tmp_path, ONCE).read_bytes() == CONTENT


def test_fetch_stops_when_too_much_comes(server, tmp_path):
    server.plans.append("endless")
    server.content = CONTENT + CONTENT
    with pytest.raises(DataError, match="more than 3,000,001 bytes came"):
        fetch(server.file(), tmp_path, QUICK)
    assert len(server.ranges) == 1
    assert not (tmp_path / "digits.mat").exists()


def test_fetch_refuses_another_content(server, tmp_path):
    server.content = CONTENT[:-1] + bytes([CONTENT[-1] ^ 1])
    with pytest.raises(DataError, match="another MD5.* and was removed"):
        fetch(server.file(), tmp_path, QUICK)
    assert not (tmp_path / "digits.mat.part").exists()
    assert not (tmp_path / "digits.mat").exists()
    assert len(server.ranges) == 1


def test_fetch_refuses_another_size(server, tmp_path):
    server.content = CONTENT[:-1]
    with pytest.raises(DataError, match="offers 3000000 bytes, not 3000001"):
        fetch(server.file(), tmp_path, QUICK)
    assert len(server.ranges) == 1


@pytest.mark.parametrize(
    "status, requests", [(404, 1), (403, 1), (503, 2), (429, 2)]
)
def test_fetch_retries_only_what_may_pass(server, tmp_path, status, requests):
    server.plans.append(status)
    if requests == 1:
        with pytest.raises(DataError, match=f"HTTP Error {status}"):
            fetch(server.file(), tmp_path, QUICK)
    else:
        assert fetch(server.file(), tmp_path, QUICK).read_bytes() == CONTENT
    assert len(server.ranges) == requests


def test_fetch_gives_up_after_the_last_attempt(server, tmp_path, monkeypatch):
    waits = []
    monkeypatch.setattr(files.time, "sleep", waits.append)
    server.plans.extend([503] * 4 + ["whole"])
    with pytest.raises(DataError, match="HTTP Error 503"):
        fetch(server.file(), tmp_path, Retries(attempts=4, wait_s=0.5))
    assert len(server.ranges) == 4
    assert waits == [0.5, 1.0, 2.0]


def test_fetch_without_a_server(server, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    file = server.file(url=f"http://127.0.0.1:{port}/digits.mat")
    with pytest.raises(DataError) as failure:
        fetch(file, tmp_path, QUICK)
    assert "refused" in str(failure.value)
    assert "digits.mat (3,000,001 bytes) from http" in str(failure.value)
    assert "kept" not in str(failure.value)
    assert server.ranges == []


def test_fetch_starts_over_from_a_part_that_is_too_long(server, tmp_path):
    (tmp_path / "digits.mat.part").write_bytes(CONTENT + b"more")
    assert fetch(server.file(), tmp_path, QUICK).read_bytes() == CONTENT
    assert server.ranges == [None]


def test_fetch_takes_a_part_that_is_complete(server, tmp_path):
    (tmp_path / "digits.mat.part").write_bytes(CONTENT)
    assert fetch(server.file(), tmp_path, QUICK).read_bytes() == CONTENT
    assert server.ranges == []


def test_fetch_drops_a_part_longer_than_what_is_served(server, tmp_path):
    (tmp_path / "digits.mat.part").write_bytes(CONTENT[:HALF])
    server.content = CONTENT[:1000]
    with pytest.raises(DataError, match="offers 1000 bytes"):
        fetch(server.file(), tmp_path, QUICK)
    assert server.ranges == [f"bytes={HALF}-", None]
    assert not (tmp_path / "digits.mat.part").exists()


@pytest.mark.parametrize(
    "content, message",
    [
        (CONTENT[:HALF], "Received: 1,500,000 bytes, expected 3,000,001"),
        (CONTENT[::-1], "Received: md5="),
        (b"", "Received: 0 bytes"),
    ],
    ids=["short", "altered", "empty"],
)
def test_fetch_refuses_a_bad_file_and_leaves_it(
    server, tmp_path, content, message
):
    path = tmp_path / "digits.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        fetch(server.file(), tmp_path, QUICK)
    assert path.read_bytes() == content
    assert server.ranges == []


def test_fetch_by_several_at_once_downloads_once(server, tmp_path):
    with ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(fetch, server.file(), tmp_path, QUICK) for _ in range(4)
        ]
        contents = {job.result(30).read_bytes() for job in jobs}
    assert contents == {CONTENT}
    assert server.ranges == [None]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"name": "a/b.mat"}, "name='a/b.mat'"),
        ({"name": ""}, "name=''"),
        ({"name": ".."}, "name='..'"),
        ({"bytes": 0}, "bytes=0"),
        ({"bytes": 1.0}, "bytes=1.0"),
        ({"md5": "abc"}, "md5='abc'"),
        ({"md5": "X" * 32}, "md5="),
        ({"url": "ftp://host/a"}, "url='ftp://host/a'"),
        ({"url": "file:///etc/passwd"}, "url="),
    ],
)
def test_remote_file_refuses(changes, message):
    good = RemoteFile("a.mat", 1, "0" * 32, "https://example.org/a.mat")
    with pytest.raises(ValueError, match=f"Received: {message}"):
        replace(good, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"attempts": 0},
        {"attempts": 1.5},
        {"wait_s": -1},
        {"wait_s": float("nan")},
        {"wait_s": float("inf")},
        {"timeout_s": 0},
        {"timeout_s": float("nan")},
    ],
)
def test_retries_refuse(changes):
    (name,) = changes
    with pytest.raises(ValueError, match=f"Received: {name}="):
        Retries(**changes)


def test_data_folder(home, tmp_path, monkeypatch):
    usual = home / ".cache" / "gar_keras"
    assert data_folder() == usual
    monkeypatch.setenv("GAR_KERAS_DATA", "~/data")
    assert data_folder() == home / "data"
    assert data_folder(tmp_path) == tmp_path
    monkeypatch.setenv("GAR_KERAS_DATA", "")
    assert data_folder() == usual


def test_data_folder_refuses_a_file(tmp_path):
    (tmp_path / "digits.mat").touch()
    with pytest.raises(DataError, match="data_dir must be a folder"):
        data_folder(tmp_path / "digits.mat")


def test_cache_folders(home, tmp_path, monkeypatch):
    usual = home / ".cache" / "gar_keras"
    assert cache_folders() == [usual]
    assert cache_folders(tmp_path) == [tmp_path, usual]
    monkeypatch.setenv("GAR_KERAS_CACHE", "~/made")
    assert cache_folders(tmp_path) == [home / "made"]


def test_the_user_s_folder_is_where_the_system_has_caches(
    home, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    own = tmp_path / "caches" / "gar_keras"
    assert data_folder() == own
    assert cache_folders(tmp_path) == [tmp_path, own]
    # Empty counts as unset.
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert data_folder() == home / ".cache" / "gar_keras"


def test_fingerprint_depends_on_content_name_and_settings(tmp_path):
    for name, content in (("a", b"1"), ("b", b"1"), ("c/a", b"1"), ("d", b"2")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
    a, b, same, d = (tmp_path / name for name in ("a", "b", "c/a", "d"))
    one = fingerprint([a], {"seed": 0, "mean": "own"})
    assert one == fingerprint([same], {"mean": "own", "seed": 0})
    others = [
        fingerprint([a], {"seed": 1, "mean": "own"}),
        fingerprint([b], {"seed": 0, "mean": "own"}),
        fingerprint([d], {"seed": 0, "mean": "own"}),
        fingerprint([a, b], {"seed": 0, "mean": "own"}),
        fingerprint([b, a], {"seed": 0, "mean": "own"}),
        fingerprint([], {"seed": 0, "mean": "own"}),
    ]
    assert len({one, *others}) == 7


VALUES = np.arange(60.0).reshape(20, 3)


def write_values(file):
    create_checked(file, "x", VALUES.shape, VALUES.dtype, 5)[:] = VALUES


def read_values(path):
    with h5py.File(path, "r") as file:
        return file["x"][()]


class Counted:
    """A cache of VALUES that counts how often they are written."""

    def __init__(self, mark="a" * 64):
        self.written = 0
        self.cached = Cached("values", mark, self.write, read_values)

    def write(self, file):
        self.written += 1
        write_values(file)


def files_in(folder):
    return sorted(p.name for p in folder.iterdir() if p.suffix != ".lock")


def test_cache_is_written_once(tmp_path):
    counted = Counted()
    for _ in range(2):
        np.testing.assert_array_equal(counted.cached.load(tmp_path), VALUES)
    assert counted.written == 1
    assert files_in(tmp_path) == ["values-aaaaaaaaaaaaaaaa.h5"]


def test_cache_of_other_data_is_not_used(tmp_path):
    first = Counted()
    first.cached.load(tmp_path)
    # Its name has the same beginning of the fingerprint, its inside does not.
    second = Counted("a" * 63 + "b")
    second.cached.load(tmp_path)
    third = Counted("c" * 64)
    third.cached.load(tmp_path)
    assert (first.written, second.written, third.written) == (1, 1, 1)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a sound cache."""
    folder = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GAR_KERAS_CACHE", str(folder))
        Counted().cached.load()
    return (folder / "values-aaaaaaaaaaaaaaaa.h5").read_bytes()


def check_reads_or_remakes(folder, content):
    path = folder / "values-aaaaaaaaaaaaaaaa.h5"
    path.write_bytes(content)
    counted = Counted()
    np.testing.assert_array_equal(counted.cached.load(folder), VALUES)
    return counted.written


@pytest.mark.parametrize("kept", [0.0, 0.1, 0.5, 0.9, 0.9999])
def test_cache_cut_short_is_made_anew(tmp_path, sound, kept):
    content = sound[: int(kept * len(sound))]
    assert check_reads_or_remakes(tmp_path, content) == 1
    assert check_reads_or_remakes(tmp_path, sound) == 0


def test_cache_with_one_altered_value_is_made_anew(tmp_path, sound):
    at = sound.index(VALUES[7].tobytes())
    content = bytearray(sound)
    content[at] ^= 1
    assert check_reads_or_remakes(tmp_path, content) == 1


@pytest.mark.parametrize("bit", [0, 6])
def test_cache_with_a_flipped_bit_never_yields_other_values(
    tmp_path, sound, bit
):
    def refuse(file):
        raise DataError("to be made anew")

    cached = Cached("values", "a" * 64, refuse, read_values)
    path = tmp_path / "values-aaaaaaaaaaaaaaaa.h5"
    places, found = range(bit, len(sound), 29), 0
    for at in places:
        content = bytearray(sound)
        content[at] ^= 1 << bit
        path.write_bytes(content)
        try:
            values = cached.load(tmp_path)
        except DataError:
            found += 1
        else:
            np.testing.assert_array_equal(values, VALUES, strict=True)
    # The others are padding, which carries no information.
    assert found > len(places) / 3


def test_cache_that_cannot_be_written_leaves_nothing(tmp_path):
    def fail(file):
        write_values(file)
        raise OSError("No space left on device")

    cached = Cached("values", "a" * 64, fail, read_values)
    with pytest.raises(DataError, match="No space left.*GAR_KERAS_CACHE"):
        cached.load(tmp_path)
    assert files_in(tmp_path) == []


def test_cache_passes_on_errors_of_the_data(tmp_path):
    def fail(file):
        raise DataError("the data are bad")

    with pytest.raises(DataError, match="^the data are bad$"):
        Cached("values", "a" * 64, fail, read_values).load(tmp_path)
    assert files_in(tmp_path) == []


def test_cache_made_by_several_at_once_is_written_once(tmp_path):
    counted = Counted()
    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(counted.cached.load, tmp_path) for _ in range(4)]
        for job in jobs:
            np.testing.assert_array_equal(job.result(30), VALUES)
    assert counted.written == 1


@pytest.fixture
def read_only(tmp_path):
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)


def test_cache_of_a_read_only_folder_lies_in_the_home(home, read_only):
    counted = Counted()
    for _ in range(2):
        counted.cached.load(read_only)
    assert counted.written == 1
    assert files_in(read_only) == []
    assert len(files_in(home / ".cache" / "gar_keras")) == 1


def test_cache_in_a_read_only_folder_is_read(read_only):
    read_only.chmod(0o755)
    Counted().cached.load(read_only)
    read_only.chmod(0o555)
    counted = Counted()
    counted.cached.load(read_only)
    assert counted.written == 0


def test_cache_with_nowhere_to_lie(read_only, monkeypatch):
    monkeypatch.setenv("GAR_KERAS_CACHE", str(read_only / "made"))
    with pytest.raises(DataError, match="Set the environment variable"):
        Counted().cached.load()


def test_cache_in_the_folder_of_the_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("GAR_KERAS_CACHE", str(tmp_path / "made"))
    (tmp_path / "data").mkdir()
    Counted().cached.load(tmp_path / "data")
    assert files_in(tmp_path / "data") == []
    assert len(files_in(tmp_path / "made")) == 1


ARRAYS = {"x": np.arange(24, dtype="uint8").reshape(2, 3, 4), "y": np.arange(2)}


FORMS = {
    "x": Form(np.uint8, (2, range(1, 4), 4)),
    "y": Form(np.integer, (2,)),
}


@pytest.fixture(scope="module")
def npz(tmp_path_factory):
    path = tmp_path_factory.mktemp("npz") / "sound.npz"
    np.savez_compressed(path, **ARRAYS, other=np.zeros(1))
    return path.read_bytes()


def test_read_arrays(tmp_path, npz):
    (tmp_path / "a.npz").write_bytes(npz)
    arrays = read_arrays(tmp_path / "a.npz", FORMS)
    assert arrays.keys() == {"x", "y"}
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[key], strict=True)


def test_read_arrays_refuses_other_files(tmp_path, npz):
    path = tmp_path / "a.npz"
    with pytest.raises(DataError, match="not a readable .npz file"):
        read_arrays(path, FORMS)
    path.write_bytes(npz)
    with pytest.raises(DataError, match="with x, z: .*no item named 'z.npy'"):
        read_arrays(path, {"x": FORMS["x"], "z": FORMS["y"]})
    with path.open("wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(DataError, match="not a readable .npz file"):
        read_arrays(path, FORMS)


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (Form(np.uint8, (2, 4, 4)), r"uint8 \(2, 4, 4\)"),
        (Form(np.uint8, (range(3, 9), 3, 4)), r"uint8 \(3..8, 3, 4\)"),
        (Form(np.uint8, (2,)), r"uint8 \(2,\)"),
        (Form(np.int64, (2, 3, 4)), r"int64 \(2, 3, 4\)"),
        (Form(np.floating, (2, 3, 4)), r"floating \(2, 3, 4\)"),
    ],
    ids=["length", "range", "axes", "dtype", "abstract"],
)
def test_read_arrays_refuses_other_forms(tmp_path, npz, form, message):
    path = tmp_path / "a.npz"
    path.write_bytes(npz)
    with pytest.raises(
        DataError,
        match=rf"{path} .*: x must be {message}. Received: uint8 \(2, 3, 4\)"
        ". Put a clean copy in its place",
    ):
        read_arrays(path, {"x": form})


def npy(header, content=b""):
    """An .npy file of this header."""
    size = len(header).to_bytes(2, "little")
    return b"\x93NUMPY\x01\x00" + size + header.encode() + content


HEADER = "{{'descr': '|u1', 'fortran_order': False, 'shape': {}, }}\n"


@pytest.mark.parametrize(
    ("member", "message"),
    [
        (npy(HEADER.format((10**12,))), "x must be .* Received: uint8 .10000"),
        (npy(HEADER.format((-2, 3, 4))), "x must be .* Received: uint8 .-2"),
        (npy(HEADER.format((2, 3, 4))), "EOF"),
        (npy(HEADER.format((2, 3, 4)), bytes(25)), "x has bytes behind"),
        (npy("{'descr': ("), "EOF"),
        (npy("-" * 9_000 + "1"), ".npz"),
        (b"\x93NUMPY\x02\x00" + bytes(9), r"version \(1, 0\)"),
    ],
    ids=["huge", "negative", "cut", "more", "open", "nested", "version"],
)
def test_read_arrays_refuses_members(tmp_path, member, message):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", member)
    with pytest.raises(DataError, match=message):
        read_arrays(path, {"x": FORMS["x"]})


def test_read_arrays_reads_no_more_than_the_form(tmp_path, peak):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, x=np.zeros((2, 3, 10_000_000), "uint8"))

    def read():
        with pytest.raises(DataError, match="x must be"):
            read_arrays(path, {"x": FORMS["x"]})

    assert peak(read) < 1_000_000


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_read_arrays_never_yields_other_values(tmp_path, npz, data):
    content = bytearray(npz)
    at = data.draw(st.integers(0, len(content) - 1))
    if data.draw(st.booleans()):
        content = content[:at]
    else:
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    (tmp_path / "a.npz").write_bytes(content)
    try:
        arrays = read_arrays(tmp_path / "a.npz", FORMS)
    except DataError:
        return
    for key, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[key], strict=True)
