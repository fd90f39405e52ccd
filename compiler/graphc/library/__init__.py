# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Native code that ships with compiled functions, one folder a family."""
