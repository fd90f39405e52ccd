# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Immediate mode: the functions of ``graphc.tensor``, run at once.

``gt = graphc.immediate.Environment()`` in place of ``import graphc.tensor as gt`` lets code that builds
graphs compute values instead. Each operation is compiled when it is first used and kept for later calls.
"""

from graphc.hooks import publish as _publish
from graphc.immediate.environment import Environment as Environment
from graphc.immediate.environment import current as current
from graphc.immediate.operation import Operation as Operation
from graphc.immediate.operation import OpFactory as OpFactory
from graphc.immediate.operation import OpWrapper as OpWrapper
from graphc.immediate.record import RecordedGraph as RecordedGraph
from graphc.immediate.record import Recording as Recording
from graphc.immediate.tape import Tape as Tape
from graphc.immediate.tensor import Tensor as Tensor

_publish(globals(), imported=True)
