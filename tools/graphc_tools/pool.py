# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes machine code that ships: `pool_code.py`, the thread pool, and `wide_integers_code.py`, which adapts
BLAS and LAPACK with 64-bit integers, for processes without a compiler; `shipped_parts.bin`, parts that many
functions have.

python -m graphc_tools.pool
"""

from __future__ import annotations

import base64
import hashlib
import textwrap
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from graphc.backends.cpu import object
from graphc.backends.cpu.object import shipped_works
from graphc.library.pool import MACHINES, pool_ir
from graphc.library.wide_integers import wide_integers_ir

FOLDER = Path(__file__).resolve().parents[2] / "runtime" / "graphc_runtime"
_HEAD = '''# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machine code of {what}.

Written by `python -m graphc_tools.pool` from `{module}`.
"""

from __future__ import annotations

# SHA-256 of the IR of each architecture.
SOURCE = {{
{hashes}
}}

# ELF objects, compressed and in base 64, which Python decodes in C.
OBJECT = {{
{objects}
}}
'''


@dataclass(frozen=True)
class Shipped:
    """Code of the runtime.

    Attributes:
        what: it is.
        module: that has its source.
        ir_text: the source for an architecture.
    """

    what: str
    module: str
    ir_text: Callable[[str], str]

    def source_hash(self, machine: str) -> str:
        """SHA-256 of the IR that the code of an architecture is made from."""
        return hashlib.sha256(self.ir_text(machine).encode()).hexdigest()

    def module_text(self) -> str:
        """The text of the runtime's module."""
        hashes = "\n".join(f'    "{machine}": "{self.source_hash(machine)}",' for machine in MACHINES)
        objects = "\n".join(f'    "{machine}": (\n{self._literal(machine)}\n    ),' for machine in MACHINES)
        return _HEAD.format(what=self.what, module=self.module, hashes=hashes, objects=objects)

    def _literal(self, machine: str) -> str:
        code = object.compile_shipped(self.ir_text(machine), machine)
        text = base64.b64encode(zlib.compress(code, 9)).decode()
        return "\n".join(f'        "{line}"' for line in textwrap.wrap(text, 96, break_on_hyphens=False))


SHIPPED = {
    "pool_code": Shipped("the thread pool", "graphc.library.pool", pool_ir),
    "wide_integers_code": Shipped(
        "functions that adapt integers of BLAS and LAPACK",
        "graphc.library.wide_integers",
        lambda machine: wide_integers_ir(),
    ),
}


def main() -> None:
    for name, code in SHIPPED.items():
        (FOLDER / f"{name}.py").write_text(code.module_text())
    works = {key: make for level in object.LEVELS for key, make in shipped_works(level).items()}
    object.write_shipped({key: make() for key, make in works.items()})


if __name__ == "__main__":
    main()
