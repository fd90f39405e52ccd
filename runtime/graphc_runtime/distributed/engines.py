# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Engines that run tasks: this process, executors of `concurrent.futures`, Dask, Ray. One small interface to
them.

A handle is whatever an engine gives for a value or a result; as an argument of a task it stands for that
value. Engines keep what they need to make a lost result again, so that the end of a worker loses nothing.
"""

from __future__ import annotations

import concurrent.futures
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from graphc_runtime import progress

if TYPE_CHECKING:
    import numpy as np

Call = Callable[..., Any]
# Told how many of how many tasks have ended.
Progress = Callable[[int, int], None]


class Engine(ABC):
    """Runs tasks."""

    @abstractmethod
    def put(self, value: Any) -> Any:
        """A handle of a value that many tasks use."""

    @abstractmethod
    def submit(self, call: Call, *args: Any) -> Any:
        """A handle of the result of ``call(*args)``, in which handles stand for their values."""

    @abstractmethod
    def completed(self, handles: Sequence[Any]) -> Iterator[Any]:
        """Handles in the order in which they end."""

    @abstractmethod
    def results(self, handles: Sequence[Any]) -> list[Any]:
        """Values of handles, in their order."""

    @abstractmethod
    def place(self, partition: Any) -> Any:
        """A handle of the arrays of a partition, which stay where they are used.

        Args:
            partition: a tuple of arrays or of handles; or a function that gives arrays.
        """

    def watch(self, handles: Sequence[object], shown: bool | Progress, name: str) -> None:
        """Waits for tasks.

        Args:
            handles: of the tasks.
            shown: whether lines on stderr say how many have ended; or a function that is told so.
            name: of the tasks, in these lines.
        """
        for done, _ in enumerate(self.completed(handles), 1):
            if callable(shown):
                shown(done, len(handles))
            else:
                progress.report(name, done, len(handles))


def read(partition: Sequence[np.ndarray]) -> tuple[Any, ...]:
    """The arrays of a partition."""
    found = partition() if callable(partition) else partition
    return found if isinstance(found, tuple) else (found,)


class _Local(Engine):
    """This process, at once."""

    def put(self, value: Any) -> Any:
        return value

    def submit(self, call: Call, *args: Any) -> list[np.ndarray]:
        return call(*args)

    def completed(self, handles: Sequence[Any]) -> Iterator[Any]:
        yield from handles

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return list(handles)

    def place(self, partition: Sequence[np.ndarray]) -> Any:
        return read(partition)


class _Executor(Engine):
    """Threads or processes of `concurrent.futures`.

    They keep no values: what several tasks use is sent with each. Results come back to this process, so what
    depends on them, sums, is computed here.
    """

    def __init__(self, executor: concurrent.futures.Executor) -> None:
        self._executor = executor

    def put(self, value: Any) -> Any:
        return value

    def submit(self, call: Call, *args: Any) -> Any:
        if not any(isinstance(arg, concurrent.futures.Future) for arg in args):
            return self._executor.submit(call, *args)
        made: concurrent.futures.Future[Any] = concurrent.futures.Future()
        made.set_result(call(*self.results(args)))
        return made

    def completed(self, handles: Sequence[Any]) -> Iterator[Any]:
        yield from concurrent.futures.as_completed(handles)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return [h.result() if isinstance(h, concurrent.futures.Future) else h for h in handles]

    def place(self, partition: Sequence[np.ndarray]) -> Any:
        return partition


class _Dask(Engine):
    """Workers of a Dask cluster.

    Values are results of tasks, not scattered: the scheduler can then make them again when the only worker
    that had them has ended. Tasks are not pure to Dask, which would hash all their arguments.
    """

    def __init__(self, client: Any) -> None:
        from distributed import as_completed

        self._client, self._as_completed = client, as_completed

    def put(self, value: Any) -> Any:
        return self._client.submit(_same, value, pure=False)

    def submit(self, call: Call, *args: Any) -> Any:
        return self._client.submit(call, *args, pure=False)

    def completed(self, handles: Sequence[Any]) -> Iterator[Any]:
        yield from self._as_completed(handles)

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return list(self._client.gather(list(handles)))

    def place(self, partition: Any) -> Any:
        return self.submit(read, partition)


class _Ray(Engine):
    """Workers of the Ray cluster that this process is connected to."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._remote = ray.remote(_run)

    def put(self, value: Any) -> Any:
        return self._ray.put(value)

    def submit(self, call: Call, *args: Any) -> Any:
        return self._remote.remote(call, *args)

    def completed(self, handles: Sequence[Any]) -> Iterator[Any]:
        left = list(handles)
        while left:
            ended, left = self._ray.wait(left, num_returns=1)
            yield from ended

    def results(self, handles: Sequence[Any]) -> list[Any]:
        return list(self._ray.get(list(handles)))

    def place(self, partition: Any) -> Any:
        if callable(partition):
            return self.submit(read, partition)
        return self.submit(_packed, *partition)


def _same(value: object) -> Any:
    return value


def _packed(*arrays: object) -> tuple[object, ...]:
    return arrays


def _run(call: Call, *args: Any) -> Any:
    return call(*args)


def engine_of(on: object) -> Engine:
    """The engine that an argument ``on`` means.

    Raises:
        TypeError: it means none.
        ImportError: its library is not installed.
        RuntimeError: this process is not connected to a Ray cluster.
    """
    if on is None:
        return _Local()
    if isinstance(on, Engine):
        return on
    if isinstance(on, concurrent.futures.Executor):
        return _Executor(on)
    if isinstance(on, str) and on == "ray":
        return _ray()
    if type(on).__module__.partition(".")[0] == "distributed" and hasattr(on, "submit"):
        return _Dask(on)
    raise TypeError(
        "on= must be None, an executor of concurrent.futures, a distributed.Client of Dask, or 'ray'; "
        f"got {on!r:.100}"
    )


def _ray() -> Engine:
    try:
        import ray
    except ImportError:
        raise ImportError("on='ray' needs the package ray: pip install 'graphc[ray]'") from None
    if not ray.is_initialized():
        raise RuntimeError("on='ray' needs a connection to a Ray cluster: call ray.init() first")
    return _Ray(ray)
