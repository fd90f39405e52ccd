# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a `FunctionGraph` to a native executable."""

from graphc.compile.ops import as_op as as_op
from graphc.compile.ops import wrap_py as wrap_py
