# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Both wheels build, have one version, and do what an installation has to; `make release` installs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from configparser import ConfigParser
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VERSION = "7.8.9"
SOURCES = ("compiler", "dialects", "runtime", "tools", "build_backend", "setup.py", "pyproject.toml")
BUILD = "import sys; sys.path.insert(0, {backend!r}); import {module} as b; b.build_wheel({out!r})"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """The wheels by distribution, made of a copy: setuptools would leave files in the sources."""
    pytest.importorskip("setuptools_scm", reason="wheels need setuptools-scm, from the extra `test`")
    folder = tmp_path_factory.mktemp("sources")
    for name in (*SOURCES, "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, folder / name)
    out = folder / "wheels"
    environment = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": VERSION}
    for place, module in ((folder, "graphc_build"), (folder / "runtime", "setuptools.build_meta")):
        code = BUILD.format(backend=str(folder / "build_backend"), module=module, out=str(out))
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=place, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    return {path.name.partition("-")[0]: path for path in out.iterdir()}


def test_the_version_is_that_of_the_tag_and_one_for_both(wheels):
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as wheel:
            metadata = Parser().parsestr(wheel.read(f"{name}-{VERSION}.dist-info/METADATA").decode())
            if name == "graphc":
                assert f"graphc-runtime=={VERSION}" in (metadata.get_all("Requires-Dist") or [])
                assert not any(file.startswith("graphc_runtime/") for file in wheel.namelist())
            assert any(file.endswith("py.typed") for file in wheel.namelist())
        assert metadata["Version"] == VERSION


def test_each_module_and_each_command_is_in_one_wheel(wheels):
    contents = {name: zipfile.ZipFile(path).namelist() for name, path in wheels.items()}
    for folder, wheel in (
        ("compiler", "graphc"),
        ("dialects", "graphc"),
        ("tools", "graphc"),
        ("runtime", "graphc_runtime"),
    ):
        modules = {str(path.relative_to(ROOT / folder)) for path in (ROOT / folder).rglob("*.py")}
        assert modules - {"setup.py"} - set(contents[wheel]) == set()
    commands = {name: _commands(path) for name, path in wheels.items()}
    assert commands["graphc_runtime"] == {"graphc-run"}
    assert commands["graphc"] == {f"graphc-{name}" for name in ("compile", "lsp", "new", "opt", "view")}


def _commands(wheel: Path) -> set[str]:
    """Names of the commands that an installation of a wheel brings."""
    with zipfile.ZipFile(wheel) as opened:
        name = next(name for name in opened.namelist() if name.endswith("entry_points.txt"))
        parser = ConfigParser()
        parser.read_string(opened.read(name).decode())
    return set(parser["console_scripts"])


def test_what_is_in_the_wheels_works(wheels, tmp_path):
    for path in wheels.values():
        zipfile.ZipFile(path).extractall(tmp_path / "packages")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "packages"), "GRAPHC_CACHE_DIR": ""}
    command = [sys.executable, str(ROOT / "tests" / "release" / "smoke.py")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"{tmp_path}/packages") == 2 and VERSION in done.stdout
