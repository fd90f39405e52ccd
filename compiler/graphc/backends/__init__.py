# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What runs graphs: compilers and interpreters."""
