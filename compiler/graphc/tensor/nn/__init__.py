# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of neural networks: ``graphc.tensor.nn``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphc.tensor.nn import activations, convolution, losses, normalization, pooling
from graphc.tensor.nn.activations import *  # noqa: F403
from graphc.tensor.nn.convolution import *  # noqa: F403
from graphc.tensor.nn.losses import *  # noqa: F403
from graphc.tensor.nn.normalization import *  # noqa: F403
from graphc.tensor.nn.pooling import *  # noqa: F403
from graphc.tensor.special import log_softmax as log_softmax
from graphc.tensor.special import logsumexp as logsumexp
from graphc.tensor.special import softmax as softmax

logsoftmax = log_softmax

if not TYPE_CHECKING:  # type checkers read no sums of lists: without this one they take all names
    __all__ = ["log_softmax", "logsoftmax", "logsumexp", "softmax", *activations.__all__]
    __all__ += [*convolution.__all__, *losses.__all__, *normalization.__all__, *pooling.__all__]
