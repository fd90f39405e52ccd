# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphc_runtime.cache import DiskCache, default_directory


def key(value):
    return hashlib.sha256(str(value).encode()).hexdigest()


def files(directory):
    return [path for path in Path(directory).rglob("*") if path.is_file()]


def test_store_and_find(tmp_path):
    cache = DiskCache(str(tmp_path / "new"))
    assert cache.get(key(1)) is None
    cache.put(key(1), b"one")
    assert DiskCache(str(tmp_path / "new")).get(key(1)) == b"one"
    assert cache.get(key(1)) == b"one"
    assert (cache.statistics.hits, cache.statistics.misses, cache.statistics.stores) == (1, 1, 1)
    cache.discard(key(1))
    assert cache.get(key(1)) is None


@pytest.mark.parametrize("bad", ["", "../../etc/passwd", "ABCDEF0123", "12", "zz" * 32])
def test_keys_are_hexadecimal(tmp_path, bad):
    with pytest.raises(ValueError, match="hexadecimal"):
        DiskCache(str(tmp_path)).get(bad)


@pytest.mark.parametrize(
    "damage", [lambda d: d[:-1], lambda d: b"", lambda d: d[:-1] + b"x", lambda d: b"x" + d[1:]]
)
def test_corrupt_entries_are_dropped(tmp_path, damage):
    cache = DiskCache(str(tmp_path))
    cache.put(key(1), b"content")
    (path,) = files(tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    assert cache.get(key(1)) is None
    assert cache.statistics.corrupt == 1 and not files(tmp_path)
    cache.put(key(1), b"content")
    assert cache.get(key(1)) == b"content"


def test_an_entry_under_another_key_is_corrupt(tmp_path):
    cache = DiskCache(str(tmp_path))
    cache.put(key(1), b"content")
    (path,) = files(tmp_path)
    target = tmp_path / key(2)[:2] / f"{key(2)}.bin"
    target.parent.mkdir(exist_ok=True)
    path.rename(target)
    assert cache.get(key(2)) is None


def test_least_recently_used_goes_first(tmp_path):
    cache = DiskCache(str(tmp_path), max_bytes=20_000)
    for i in range(8):
        cache.put(key(i), bytes(2000))
        path = next(path for path in files(tmp_path) if path.stem == key(i))
        os.utime(path, (1000 + i, 1000 + i))
    assert cache.get(key(0)) is not None  # used now, so the newest
    for i in range(8, 12):
        cache.put(key(i), bytes(2000))
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 20_000
    assert cache.get(key(0)) is not None and cache.get(key(11)) is not None and cache.get(key(1)) is None
    assert cache.statistics.evictions
    cache.put(key(99), bytes(30_000))
    assert cache.get(key(99)) is None


def test_leftover_temporary_files_go(tmp_path):
    cache = DiskCache(str(tmp_path))
    cache.put(key(1), b"1")
    old = tmp_path / key(1)[:2] / ".tmp-crashed"
    old.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    DiskCache(str(tmp_path)).put(key(2), b"2")
    assert not old.exists()


def test_unusable_directory_warns_once(tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    cache = DiskCache(str(blocker / "cache"))
    with pytest.warns(RuntimeWarning, match="going on without it") as caught:
        cache.put(key(1), b"1")
        cache.put(key(1), b"1")
        assert cache.get(key(1)) is None
    assert len(caught) == 1


def test_switched_off(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHC_CACHE_DIR", "")
    cache = DiskCache()
    cache.put(key(1), b"1")
    assert cache.get(key(1)) is None
    monkeypatch.delenv("GRAPHC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_directory() == str(tmp_path / "graphc")


WORKER = """
import hashlib, sys
from graphc_runtime.cache import DiskCache
cache = DiskCache(sys.argv[1], max_bytes=60_000)
for i in range(400):
    key = hashlib.sha256(str(i % 40).encode()).hexdigest()
    content = key.encode() * 50
    found = cache.get(key)
    assert found is None or found == content, i
    if found is None:
        cache.put(key, content)
assert cache.statistics.corrupt == 0
"""


def test_processes_share_it(tmp_path):
    command = [sys.executable, "-W", "error", "-c", WORKER, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    workers = [subprocess.Popen(command, env=environment) for _ in range(3)]
    assert [worker.wait(timeout=60) for worker in workers] == [0, 0, 0]
    assert not [path for path in files(tmp_path) if path.name.startswith(".tmp-")]


def _fifo(path, other):
    os.mkfifo(path)


def _socket(path, other):
    # The path of a socket has about 100 characters at most.
    server, here = socket.socket(socket.AF_UNIX), os.getcwd()
    os.chdir(path.parent)
    server.bind(path.name)
    os.chdir(here)
    server.close()


def _folder(path, other):
    path.mkdir()


def _link(path, other):
    path.symlink_to(other)


def _foreign(path, other):
    """An entry that is right but belongs to somebody else."""
    other.rename(path)
    os.chown(path, 12345, -1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs on this system")
@pytest.mark.parametrize("make", [_fifo, _socket, _folder, _link, _foreign])
def test_entries_are_ordinary_files_of_this_user(tmp_path, make):
    if make is _foreign and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    cache = DiskCache(str(tmp_path))
    cache.put(key(1), b"content")
    (path,) = files(tmp_path)
    other = tmp_path / "other"
    path.rename(other)
    make(path, other)
    assert cache.get(key(1)) is None and cache.statistics.corrupt == 1
    assert not os.path.lexists(path)
    cache.put(key(1), b"content")
    assert cache.get(key(1)) == b"content"


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no owners of files on this system")
@pytest.mark.parametrize("kind", ["writable", "group", "another's", "link"])
def test_folders_that_others_can_write_to_are_not_used(tmp_path, kind):
    if kind in ("another's", "link", "group") and os.geteuid() != 0:
        pytest.skip("only root can give folders away")
    folder = tmp_path / "cache"
    DiskCache(str(folder)).put(key(1), b"content")
    assert folder.stat().st_mode & 0o777 == 0o700
    if kind == "writable":
        folder.chmod(0o777)
    elif kind == "group":
        os.chown(folder, -1, 12345)
        folder.chmod(0o770)
    else:
        os.chown(folder, 12345, -1)
    if kind == "link":
        folder.rename(tmp_path / "their")
        folder.symlink_to(tmp_path / "their")
    cache = DiskCache(str(folder))
    with pytest.warns(RuntimeWarning, match=r"others may write|belongs to user 12345") as caught:
        assert cache.get(key(1)) is None
        cache.put(key(2), b"content")
        assert cache.get(key(2)) is None
    assert len(caught) == 1 and "going on without it" in str(caught[0].message)


@pytest.mark.parametrize("size", [1 << 30, 1 << 40])
def test_entries_larger_than_entries_get_are_not_read(tmp_path, size):
    cache = DiskCache(str(tmp_path))
    cache.put(key(1), b"content")
    (path,) = files(tmp_path)
    os.truncate(path, size)  # sparse: it takes no room on the disk
    assert cache.get(key(1)) is None and cache.statistics.corrupt == 1
    assert not path.exists()
    cache.put(key(1), b"content")
    assert cache.get(key(1)) == b"content"
