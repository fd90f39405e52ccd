# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every line of the benchmark, in the order of the page."""

from __future__ import annotations

import cases
import immediate_lines
import indexing_lines
import join_lines
import lazy_lines
import linalg_lines
import model_lines
import nn_lines
import random_lines
import scan_lines
import sparse_lines

CASES = [
    *cases.CASES,
    *join_lines.CASES,
    *random_lines.CASES,
    *indexing_lines.CASES,
    *linalg_lines.CASES,
    *nn_lines.CASES,
    *sparse_lines.CASES,
    *lazy_lines.CASES,
    *immediate_lines.CASES,
    *model_lines.CASES,
    *scan_lines.CASES,
]
