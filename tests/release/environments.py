# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs graphc and the runtime alone into bare environments of each Python there is.

    environments.py --wheels dist --folder build [python3.13 ...]

For each version that we claim: this folder and an archive of the sources with the newest packages, a wheel
with the oldest that `oldest.txt` allows, and the runtime alone, which gets a file that the compiler wrote;
`pip check` and a smoke test in each. Versions without an interpreter are named at the end. Needs the standard
library only.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
VERSION_OF = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"


def version(python: str) -> str | None:
    """Version of an interpreter that can make environments; None if it cannot."""
    found = shutil.which(python)
    if found is None:
        return None
    done = subprocess.run([found, "-c", VERSION_OF], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def interpreters(given: Sequence[str]) -> dict[str, str]:
    """An interpreter for each version that we claim, as far as there are any; what was given comes first."""
    found: dict[str, str] = {}
    for python in (*given, *(f"python{each}" for each in VERSIONS), "python3"):
        name = version(python)
        if name in VERSIONS:
            found.setdefault(name, python)
    return {name: found[name] for name in VERSIONS if name in found}


def run(*command: object, cwd: Path) -> None:
    """Runs a command away from the sources, which would be taken for installed packages."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    subprocess.run([str(each) for each in command], cwd=cwd, env=environment, check=True)


def bare(python: str, folder: Path, *packages: object) -> Path:
    """A new environment with packages that agree with each other; gives its interpreter."""
    run(shutil.which(python) or python, "-m", "venv", "--clear", folder, cwd=folder.parent)
    inside = folder / "bin" / "python"
    run(inside, "-m", "pip", "install", "--quiet", *packages, cwd=folder.parent)
    run(inside, "-m", "pip", "check", cwd=folder.parent)
    return inside


def check(python: str, wheels: Path, folder: Path) -> None:
    """All environments of one interpreter."""
    folder.mkdir(parents=True, exist_ok=True)
    (archive,), (wheel,) = wheels.glob("graphc-*.tar.gz"), wheels.glob("graphc-*.whl")
    (runtime,) = wheels.glob("graphc_runtime-*.whl")
    ways = {
        "folder": [f"{HERE.parents[1]}[demo]"],
        "newest": [archive],
        "oldest": [wheel, "-r", HERE / "oldest.txt"],
    }
    for name, what in ways.items():
        inside = bare(python, folder / name, *what)
        run(inside, HERE / "smoke.py", "--write", folder / "model.gcx", cwd=folder)
    inside = bare(python, folder / "runtime", runtime)
    run(inside, HERE / "smoke_runtime.py", folder / "model.gcx", cwd=folder)
    for name in (*ways, "runtime"):
        shutil.rmtree(folder / name)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True, help="for the environments")
    parser.add_argument("pythons", nargs="*", help="interpreters to use beside those on the path")
    options = parser.parse_args(argv)
    found = interpreters(options.pythons)
    for name, python in found.items():
        print(f"release: Python {name} ({shutil.which(python)})", flush=True)
        check(python, options.wheels.resolve(), options.folder.resolve() / name)
    print("\n".join(summary(found)))
    return int(not found)


def summary(found: Collection[str]) -> Iterator[str]:
    """What was tried, and what was not."""
    missing = [name for name in VERSIONS if name not in found]
    yield f"release: passed on Python {', '.join(found) or 'nothing'}"
    if missing:
        yield f"release: NOT TRIED on Python {', '.join(missing)}: no interpreter on the path, nor in PYTHONS"


if __name__ == "__main__":
    sys.exit(main())
