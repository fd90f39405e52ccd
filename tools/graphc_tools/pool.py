# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes graphc_runtime/pool_code.py: the thread pool as machine code, for processes without a compiler.

python -m graphc_tools.pool
"""

from __future__ import annotations

import base64
import hashlib
import textwrap
import zlib
from pathlib import Path

from graphc.library.pool.build import MACHINES, compile_pool, pool_ir

PATH = Path(__file__).resolve().parents[2] / "runtime" / "graphc_runtime" / "pool_code.py"
_HEAD = '''# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code of the thread pool (`graphc.library.pool.build`). Written by `python -m graphc_tools.pool`."""

from __future__ import annotations

# SHA-256 of the IR of each architecture.
SOURCE = {
%s
}

# ELF objects, compressed and in base 85.
OBJECT = {
%s
}
'''


def source_hash(machine: str) -> str:
    """SHA-256 of the IR that the code of an architecture is made from."""
    return hashlib.sha256(pool_ir(machine).encode()).hexdigest()


def module_text() -> str:
    """The text of `graphc_runtime/pool_code.py`."""
    hashes = "\n".join(f'    "{machine}": "{source_hash(machine)}",' for machine in MACHINES)
    objects = "\n".join(f'    "{machine}": (\n{_literal(machine)}\n    ),' for machine in MACHINES)
    return _HEAD % (hashes, objects)


def _literal(machine: str) -> str:
    text = base64.b85encode(zlib.compress(compile_pool(machine), 9)).decode()
    return "\n".join(f'        "{line}"' for line in textwrap.wrap(text, 96))


def main() -> None:
    PATH.write_text(module_text())


if __name__ == "__main__":
    main()
