# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiling in a helper process (``config.compile_isolated``)."""

from __future__ import annotations

from graphc.backends.cpu import worker
from graphc.backends.cpu.job import Job, Made
from graphc.backends.cpu.lower import pipeline_of, with_donations
from graphc.backends.cpu.reproducer import write_reproducer
from graphc.config import config
from graphc.errors import CompileError

_MAKE = "graphc.backends.cpu.job:make"


def make_isolated(job: Job) -> Made:
    """Compiles in a helper process, which a crash ends instead of this one.

    Raises:
        CompileError: as `make`; also where the process crashed or took longer than
            ``config.compile_time_limit``. The message names a file with which it happens again.
    """
    try:
        made: Made = worker.call(_MAKE, job, seconds=config.compile_time_limit)
    except worker.WorkerDied as death:
        raise CompileError(_report(job, death)) from None
    return made


def _report(job: Job, death: worker.WorkerDied) -> str:
    entries = pipeline_of(job.text, job.mode, job.fastmath)
    path = write_reproducer(
        with_donations(job.text, job.donate),
        ",".join(text for text, _ in entries),
        [f"mode {job.mode}: {death.how}", *death.output.splitlines()],
    )
    written = f"could not be written to {config.reproducer_dir!r}" if path is None else f"is in {path}"
    output = f"\n{death.output}" if death.output else ""
    return (
        f"the process that compiled {job.signature.name!r} failed: {death.how}; please report this with the "
        f"module that was compiled, which {written}{output}"
    )
