# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Derivatives and batches of loops, which are loops."""

from __future__ import annotations

from graphc.scan.batch import batch
from graphc.scan.gradient.forward import pushforward
from graphc.scan.gradient.reverse import pullback
from graphc.scan.op import Rules, Scan

Scan.rules = Rules(pullback, pushforward, batch)
