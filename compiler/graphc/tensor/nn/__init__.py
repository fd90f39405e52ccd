# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Functions of neural networks: ``graphc.tensor.nn``."""

from graphc.hooks import publish as _publish
from graphc.ops.math import sigmoid as sigmoid
from graphc.ops.math import softplus as softplus
from graphc.tensor.nn.activations import *  # noqa: F403
from graphc.tensor.nn.convolution import *  # noqa: F403
from graphc.tensor.nn.losses import *  # noqa: F403
from graphc.tensor.nn.normalization import *  # noqa: F403
from graphc.tensor.nn.pooling import *  # noqa: F403
from graphc.tensor.special import log_softmax as log_softmax
from graphc.tensor.special import logsumexp as logsumexp
from graphc.tensor.special import softmax as softmax

logsoftmax = log_softmax

_publish(globals(), imported=True)
