"""Folder of the data files, and downloads from a server on this machine."""

import collections
import hashlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from gar_keras.datasets import download
from gar_keras.datasets.base import DataError
from gar_keras.datasets.download import RemoteFile, Retries, data_folder, fetch

pytestmark = pytest.mark.usefixtures("home")


CONTENT = np.random.default_rng(0).bytes(3_000_001)
HALF = len(CONTENT) // 2
QUICK = Retries(attempts=3, wait_s=0, timeout_s=10)
ONCE = replace(QUICK, attempts=1)


class Server(ThreadingHTTPServer):
    """Serves CONTENT, and treats each request as the next plan says.

    Plans: "whole" answers in full, ranges too; "cut" breaks off halfway
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
    monkeypatch.setattr(download.time, "sleep", waits.append)
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
