# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests/bench/gpu.py measures computes the right thing; nothing here is timed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench" / "gpu.py"


def test_lines_of_the_benchmark_agree_with_float64(tmp_path: Path) -> None:
    names = "softmax_8192x8192,mask,twenty_kernels,one_kernel"
    for what in ("build", "host", "simulate"):
        done = subprocess.run(
            [sys.executable, str(BENCH), what, str(tmp_path), "--only", names],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert what != "host" or "twenty_kernels: " in done.stdout
    checked = [line.partition(":")[0] for line in done.stdout.splitlines() if "error" in line]
    assert checked == names.split(",")
