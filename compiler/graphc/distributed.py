# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions on a cluster: `graphc_runtime.distributed`, which workers have without a compiler."""

from graphc_runtime.distributed import SumOverPartitions, map_batches, sample_chains, value_and_grad

__all__ = ["SumOverPartitions", "map_batches", "sample_chains", "value_and_grad"]
