# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The graphc dialect of MLIR. Import `graphc_dialects.dialect` to load the bindings."""
