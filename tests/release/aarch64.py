# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runtime alone on an emulated AArch64: Debian's Python and NumPy's wheel for it, under qemu-user.

    aarch64.py --wheels dist --model build/release/3.13/model.gcx --folder build/release/aarch64

Needs qemu-user and debootstrap (packages of Debian), the latter as root, and a network; where these are not
there, it says that nothing was tried. Takes some minutes.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SUITE, VERSION = "trixie", "3.13"  # Debian's release, and the Python in it
PACKAGES = ("python3-minimal", f"libpython{VERSION}-stdlib")
TAGS = ("manylinux2014_aarch64", "manylinux_2_27_aarch64", "manylinux_2_28_aarch64")


def obstacle() -> str | None:
    """What is missing."""
    missing = [name for name in ("qemu-aarch64", "debootstrap", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        return f"no {', '.join(missing)}"
    return None if os.geteuid() == 0 else "debootstrap needs root"


def system(folder: Path) -> Path:
    """Debian's packages for AArch64, unpacked and not configured: none of their programs runs but Python."""
    root = folder / "root"
    if not (root / f"usr/bin/python{VERSION}").exists():
        command = ["debootstrap", "--arch=arm64", "--foreign", "--variant=minbase"]
        run([*command, f"--include={','.join(PACKAGES)}", SUITE, root, "http://deb.debian.org/debian"])
        for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
            run(["dpkg-deb", "-x", package, root])
    return root


def site(folder: Path, wheels: Path) -> Path:
    """The runtime and NumPy."""
    target = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", target, "--upgrade"]
    platforms = [f"--platform={tag}" for tag in TAGS]
    run([*pip, "--only-binary=:all:", f"--python-version={VERSION}", *platforms, "numpy"])
    run([*pip, "--no-deps", *wheels.glob("graphc_runtime*.whl")])
    return target


def run(command: Sequence[object], **variables: object) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment |= {key: str(value) for key, value in variables.items()}
    subprocess.run([str(each) for each in command], env=environment, check=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--wheels", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True, help="the file that smoke.py wrote")
    parser.add_argument("--folder", type=Path, required=True)
    options = parser.parse_args(argv)
    if reason := obstacle():
        print(f"release: NOT TRIED on AArch64: {reason}")
        return 0
    folder = options.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    root, packages = system(folder), site(folder, options.wheels)
    given = [f"PYTHONHOME={root}/usr", f"PYTHONPATH={packages}", "PYTHONDONTWRITEBYTECODE=1"]
    command = ["qemu-aarch64", "-L", root, *(part for each in given for part in ("-E", each))]
    run([*command, root / f"usr/bin/python{VERSION}", HERE / "smoke_runtime.py", options.model])
    print("release: passed on an emulated AArch64")
    return 0


if __name__ == "__main__":
    sys.exit(main())
