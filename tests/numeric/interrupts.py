# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Ctrl-C while compiling: ``python tests/numeric/interrupts.py [PROCESSES] [WARM]``.

Starts that many processes (60 by default), each of which gets SIGINT during its first compilation, 6 ms later
than the one before, and one that gets it in WARM (300) further compilations. Each interrupt has to arrive as
KeyboardInterrupt, and the next compilation has to work. Prints what went wrong and fails if anything did.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

# Seconds up to which compilations are interrupted: the first one of a process, and later ones.
LONGEST, WARM_LONGEST = 0.36, 0.15
# A process that takes longer hangs.
LIMIT = 120

# Says when a compilation begins, and takes the one interrupt that comes in it or after it.
CHILD = """
import signal, sys, time
import numpy as np
import graphc, graphc.tensor as pt

# Processes in the background of a shell ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)

def compiled(number):
    x = pt.dmatrix("x")
    y = pt.exp(x * (number + 1.5)).sum(axis=0)
    if number % 3 == 1:
        y = graphc.scan(lambda v: pt.tanh(v @ x), outputs_info=y, n_steps=3, return_updates=False)[-1]
    return graphc.function([x], y), number

def right(f, number):
    expected = np.exp(np.eye(3) * (number + 1.5)).sum(axis=0)
    np.testing.assert_allclose(f(np.eye(3)), expected)

for turn in range(int(sys.argv[1])):
    try:
        print("begin", flush=True)
        compiled(3 * turn + turn % 2)
        time.sleep(20)
        print("lost", flush=True)
    except KeyboardInterrupt:
        right(*compiled(3 * turn + 2))
        print("right", flush=True)
print("end", flush=True)
"""


def run(delays: list[float], environment: dict[str, str]) -> list[str]:
    """What went wrong in a process whose compilations are interrupted, each after some seconds."""
    command = [sys.executable, "-c", CHILD, str(len(delays))]
    wrong = []
    with (
        tempfile.TemporaryFile("w+") as noise,
        subprocess.Popen(command, text=True, env=environment, stdout=subprocess.PIPE, stderr=noise) as child,
    ):
        assert child.stdout is not None
        watch = threading.Timer(LIMIT + len(delays), child.kill)
        watch.start()
        for number, delay in enumerate(delays):
            if child.stdout.readline() != "begin\n":
                break
            time.sleep(delay)
            child.send_signal(signal.SIGINT)
            answer = child.stdout.readline().strip()
            if answer != "right":
                wrong.append(f"turn {number}, after {delay * 1e3:.0f} ms: {answer or 'died'}")
        rest, status = child.stdout.read().strip(), child.wait()
        watch.cancel()
        noise.seek(0)
        if rest != "end" or status:
            wrong.append(f"ended with status {status}, {rest!r}: {noise.read().strip()}")
    return wrong


def sweep(processes: int, warm: int, environment: dict[str, str] | None = None) -> list[str]:
    """What went wrong in all processes.

    Args:
        processes: how many are interrupted in their first compilation, at moments spread over `LONGEST`.
        warm: how many compilations of one more process are interrupted.
        environment: of the processes; the disk cache is off by default.
    """
    environment = environment or {**os.environ, "GRAPHC_CACHE_DIR": ""}
    step = LONGEST / processes
    moments = [[step * (number + 1)] for number in range(processes)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda delays: run(delays, environment), moments))
    random.seed(0)
    # The first of them makes the others warm.
    found.append(run([2.0, *(random.uniform(0, WARM_LONGEST) for _ in range(warm))], environment))
    return [wrong for each in found for wrong in each]


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    wrong = sweep(*(numbers + [60, 300][len(numbers) :]))
    print("\n".join([*wrong, f"{len(wrong)} wrong"]))
    sys.exit(bool(wrong))
