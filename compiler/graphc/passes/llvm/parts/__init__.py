# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Large kernels as several modules."""
