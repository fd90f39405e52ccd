# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs programs in processes of their own: one that crashes or hangs is a finding, not the end of a run."""

from __future__ import annotations

import os
import pickle
import select
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATHS = [str(ROOT / name) for name in ("tests/fuzz", "tests/numeric")]


@dataclass
class Answer:
    """What became of a program.

    Attributes:
        program: what ran; None where not even that is known.
        findings: what is wrong.
        seconds: by way, and "grow" for growing it.
        evidence: how many results could be compared, and how many there are.
    """

    program: Any = None
    findings: list[Any] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    evidence: tuple[int, int] = (0, 0)


class Dead(Exception):
    """A process has ended, or has not answered."""


class Worker:
    """A process that evaluates programs.

    Args:
        source: folders of the compiler's packages, in the place of those that this process uses.
        tier: the way into compiled functions, ``GRAPHC_CALL_TIER``.
        timeout: seconds after which a request counts as hanging.
    """

    def __init__(self, source: str = "", tier: str = "", timeout: float = 180.0) -> None:
        self.source, self.tier, self.timeout = source, tier, timeout
        self.process: subprocess.Popen[bytes] | None = None

    def _start(self) -> subprocess.Popen[bytes]:
        environment = dict(os.environ)
        packages = self.source.split(":") if self.source else [p for p in sys.path if p and p not in PATHS]
        environment["PYTHONPATH"] = ":".join([*packages, *PATHS])
        if self.tier:
            environment["GRAPHC_CALL_TIER"] = self.tier
        return subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("serving.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=ROOT,
        )

    def ask(self, *request: Any) -> Any:
        """Send a request to the process, which is started if there is none.

        Raises:
            Dead: it crashed, or did not answer in time; the next request starts another one.
        """
        if self.process is None:
            self.process = self._start()
        process = self.process
        assert process.stdin is not None and process.stdout is not None
        try:
            data = pickle.dumps(request)
            process.stdin.write(struct.pack("q", len(data)) + data)
            process.stdin.flush()
            end = time.monotonic() + self.timeout
            (size,) = struct.unpack("q", _read(process.stdout, 8, end))
            return pickle.loads(_read(process.stdout, size, end))
        except (EOFError, BrokenPipeError) as error:
            code = process.wait()
            self.process = None
            raise Dead(f"crash: the process ended with status {code}") from error
        except TimeoutError as error:
            self.close()
            raise Dead(f"hang: no answer within {self.timeout:.0f} s") from error

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def _read(stream: Any, count: int, end: float) -> bytes:
    data = b""
    while len(data) < count:
        ready, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(stream.fileno(), count - len(data))
        if not part:
            raise EOFError
        data += part
    return data
