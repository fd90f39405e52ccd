# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether other threads run; the pool is tested with compiled functions (tests/numeric/test_threads.py)."""

from __future__ import annotations

import subprocess
import sys

# Alone, next to a thread, and while collections run Python code, in which `sys._current_frames` stopped all
# threads for ever.
PROGRAM = """
import gc, sys, threading
from graphc_runtime.threads import is_alone
from graphc_runtime.worker import apart

apart(int)  # a thread that only waits for work does not count
print(is_alone())
stop = threading.Event()
sys.setswitchinterval(1e-6)
gc.callbacks.append(lambda phase, info: sum(range(100)))
gc.set_threshold(1)

def ask():
    while not stop.is_set():
        [is_alone() and [] for _ in range(10)]

threads = [threading.Thread(target=ask) for _ in range(4)]
for thread in threads:
    thread.start()
print(any(is_alone() for _ in range(1000)))
stop.set()
for thread in threads:
    thread.join()
print(is_alone())
"""


def test_is_alone():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.split() == ["True", "False", "True"]
