# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A check that graphc has the runtime that it was installed with.

The distributions ``graphc`` and ``graphc-runtime`` both have the package ``graphc_runtime``: pip can neither
build two distributions from one folder or git URL, nor refuse two that have the same files. Of one version
they are equal, and one may be installed over the other. Of two versions, the later installation replaces
files of the earlier one, and removing one takes the other's: `check_runtime` says so and names the way out.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path


def check_runtime(cause: ImportError | None = None) -> None:
    """Compares the runtime that is imported with the one that graphc was installed with.

    Args:
        cause: what went wrong already.

    Raises:
        ImportError: files of the runtime are missing, or of another version.
    """
    for path in _foreign_files():
        raise ImportError(
            f"{path} is not what graphc was installed with: the distribution graphc-runtime, which has the "
            "same files, was installed or removed after it. Say\n"
            "    pip uninstall -y graphc-runtime\n"
            "    pip install --force-reinstall --no-deps graphc  # or the folder or URL it came from"
        ) from cause


def _foreign_files() -> Iterator[Path]:
    """Files of the runtime that graphc's sources or installation do not have, or have with other contents."""
    folder = Path(__file__).parents[1]
    sources, spec = folder.parent / "runtime" / "graphc_runtime", importlib.util.find_spec("graphc_runtime")
    if sources.is_dir() and spec and spec.origin and not sources.samefile(Path(spec.origin).parent):
        yield Path(spec.origin)
    for record in folder.glob("graphc-*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            name, checksum, _ = line.rsplit(",", 2)
            if name.startswith("graphc_runtime/") and name.endswith(".py"):
                if not _has(folder / name, checksum):
                    yield folder / name


def _has(path: Path, checksum: str) -> bool:
    """True if a file has the checksum that an installation's RECORD gives for it."""
    import base64
    import hashlib

    kind, _, expected = checksum.partition("=")
    if not path.is_file():
        return False
    digest = hashlib.new(kind, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=") == expected
