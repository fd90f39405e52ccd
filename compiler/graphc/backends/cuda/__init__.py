# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The target for NVIDIA's devices: kernels in PTX, and a schedule of what the host does."""
