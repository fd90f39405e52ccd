# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a `FunctionGraph` to a native executable."""
