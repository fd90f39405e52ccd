# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process that a `worker.Worker` runs: requests on standard input, answers on standard output."""

from __future__ import annotations

import os
import pickle
import struct
import sys
import time
import traceback
from collections.abc import Sequence
from typing import Any

from checked import Checked, Finding, said
from growing import grow
from processes import Answer
from ways import found_in


def _evaluate(program: Any, ways: Sequence[str]) -> Answer:
    answer = Answer(program)
    checked = Checked(program)
    if checked.error is not None and not program.raises:
        answer.findings = [Finding("interpreter", "error", said(checked.error))]
        return answer
    answer.evidence = (sum(e.evidence for e in checked.expected), len(program.wanted))
    for way in ways:
        start = time.monotonic()
        answer.findings += found_in(way, checked)
        answer.seconds[way] = time.monotonic() - start
    return answer


def _handle(kind: str, *request: Any) -> Any:
    if kind == "grow":
        return grow(*request)
    return _evaluate(*request)


def serve() -> None:
    """Answer requests until the input ends."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        head = sys.stdin.buffer.read(8)
        if len(head) < 8:
            return
        (size,) = struct.unpack("q", head)
        request = pickle.loads(sys.stdin.buffer.read(size))
        try:
            answer = _handle(*request)
        except Exception as error:
            answer = RuntimeError(f"{type(error).__name__}: {error}\n{traceback.format_exc(limit=-6)}")
        data = pickle.dumps(answer)
        answers.write(struct.pack("q", len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    serve()
