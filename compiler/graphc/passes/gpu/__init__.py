# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From bufferised linalg to kernels of the gpu dialect, one pass a class of kernels."""
