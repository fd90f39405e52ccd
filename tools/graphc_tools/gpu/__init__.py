# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kernels without a device: an interpreter of the gpu dialect, and a driver that runs schedules with it."""
