# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs schedules of kernels on NVIDIA devices: needs NumPy and the CUDA driver, no compiler."""
