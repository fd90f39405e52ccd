# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of neural networks: ``graphc.tensor.nn``."""

from __future__ import annotations

from graphc.tensor.nn.activations import *  # noqa: F403
from graphc.tensor.nn.activations import __all__ as _activations
from graphc.tensor.nn.convolution import *  # noqa: F403
from graphc.tensor.nn.convolution import __all__ as _convolution
from graphc.tensor.nn.losses import *  # noqa: F403
from graphc.tensor.nn.losses import __all__ as _losses
from graphc.tensor.nn.normalization import *  # noqa: F403
from graphc.tensor.nn.normalization import __all__ as _normalization
from graphc.tensor.nn.pooling import *  # noqa: F403
from graphc.tensor.nn.pooling import __all__ as _pooling
from graphc.tensor.special import log_softmax, logsumexp, softmax

logsoftmax = log_softmax

__all__ = ["log_softmax", "logsoftmax", "logsumexp", "softmax"]
__all__ += [*_activations, *_convolution, *_losses, *_normalization, *_pooling]
