# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled functions on many machines: batches, sums over partitions of data, chains of random draws.

Functions and artifacts travel as machine code; workers need this package and NumPy, and what they run is
what one process would run. Where it runs is the argument ``on``: a `concurrent.futures.Executor` (joblib's
`get_reusable_executor()` is one), a `distributed.Client` of Dask (extra ``dask``), ``"ray"`` (extra ``ray``),
or None for this process. Results do not depend on it, nor on the number of workers.
"""

from graphc_runtime.distributed.batches import map_batches
from graphc_runtime.distributed.chains import sample_chains
from graphc_runtime.distributed.gradients import SumOverPartitions, value_and_grad

__all__ = ["SumOverPartitions", "map_batches", "sample_chains", "value_and_grad"]
