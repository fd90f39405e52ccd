# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plain pip installs graphc from everything that it takes: folders, archives, git URLs, wheels, editable.

Environments are bare but for the dependencies of this one, which pip finds installed: with no index it
resolves all that a user's pip resolves, and downloads nothing. `make release` downloads.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
VERSION = "7.8.9"
FOLDERS = ("compiler", "dialects", "runtime", "tools")
COMMANDS = {"compile", "lsp", "new", "opt", "run", "test", "view"}
PIP = ("-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", "--no-compile")
SHOWN = "import graphc as g, graphc_runtime as r; print(g.__version__, r.__version__, g.__file__, r.__file__)"
GIT = ("git", "-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false")
BUILD = "import sys; from setuptools import build_meta as b; getattr(b, sys.argv[1])(sys.argv[2])"


def run(*command: object, cwd: Path) -> str:
    """The output of a command that knows nothing of this repository."""
    environment = {**os.environ, "GRAPHC_CACHE_DIR": "", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    environment.pop("PYTHONPATH", None)
    done = subprocess.run(
        [str(each) for each in command], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    pytest.importorskip("setuptools_scm", reason="wheels need setuptools-scm, from the extra `test`")
    return tmp_path_factory.mktemp("installs")


@pytest.fixture(scope="module")
def clone(folder) -> Path:
    """A repository of what this one has, with a version."""
    target = folder / "clone"
    names = (
        *FOLDERS,
        "setup.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
        ".git_archival.txt",
        ".gitattributes",
    )
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist")
    for name in names:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, target / name)
    (target / ".gitignore").write_text("*.egg-info/\nbuild/\n")
    for command in (("init",), ("add", "."), ("commit", "-m", "all"), ("tag", f"v{VERSION}")):
        run(*GIT, *command, cwd=target)
    return target


@pytest.fixture(scope="module")
def python(folder):
    """Makes a new environment, with the packages of this one but for graphc; gives its interpreter."""
    packages = folder / "packages"
    packages.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if not re.match("graphc|__editable__|_virtualenv", entry.name):
            (packages / entry.name).symlink_to(entry)

    def make(name: str) -> Path:
        environment = folder / name
        run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=folder)
        site = next(environment.glob("lib/python*/site-packages"))
        (site / "dependencies.pth").write_text(str(packages))
        return environment / "bin" / "python"

    return make


@pytest.fixture(scope="module")
def built(clone, folder) -> dict[str, Path]:
    """What is built of the clone: a wheel and an archive of the sources of each distribution."""
    out = folder / "dist"
    for place in (clone, clone / "runtime"):
        for hook in ("build_sdist", "build_wheel"):
            run(sys.executable, "-c", BUILD, hook, out, cwd=place)
    return {path.name.partition(f"-{VERSION}")[0] + path.suffix: path for path in out.iterdir()}


def contents(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as opened:
        return {name for name in opened.namelist() if ".dist-info/" not in name}


def test_each_module_and_each_file_that_is_no_module_is_in_a_wheel(built):
    graphc, runtime = contents(built["graphc.whl"]), contents(built["graphc_runtime.whl"])
    tracked = ("*.py", "*.pyi", "*.h", "*.html", "*.css", "*.js", "*.txt", "py.typed")
    for place in FOLDERS:
        files = {path.relative_to(ROOT / place) for each in tracked for path in (ROOT / place).rglob(each)}
        files = {str(path) for path in files if len(path.parts) > 1 and ".egg-info" not in path.parts[0]}
        assert files and files - graphc == set()
        if place == "runtime":
            assert files == runtime


@pytest.mark.parametrize("how", ["archive", "archive of an archive without tags", "no git", "git archive"])
@pytest.mark.parametrize("name", ["graphc", "graphc_runtime"])
def test_sources_that_left_their_repository_build_the_same_wheel(how, name, built, clone, tmp_path):
    """Of the archive's version, though it is unpacked in another repository; 0.0 where nothing says one."""
    for command in (("init",), ("commit", "--allow-empty", "-m", "other"), ("tag", "v1.1")):
        run(*GIT, *command, cwd=tmp_path)
    place = tmp_path / "sources"
    if how == "no git":
        shutil.copytree(clone, place, ignore=shutil.ignore_patterns(".git", "*.egg-info", "build"))
    else:
        archive = built[f"{name}.gz"]
        if how == "git archive":
            archive = tmp_path / "archive.tar"
            run("git", "archive", "--prefix=sources/", "--output", archive, "HEAD", cwd=clone)
        with tarfile.open(archive) as opened:
            opened.extractall(tmp_path, filter="data")
        if how.startswith("archive"):
            (tmp_path / f"{name}-{VERSION}").rename(place)
        if how.endswith("without tags") and name == "graphc":
            text = "node: 0123abc\nnode-date: 2026-01-01T00:00:00+00:00\ndescribe-name: \n"
            (place / ".git_archival.txt").write_text(text)
    if not how.startswith("archive") and name == "graphc_runtime":
        place = place / "runtime"
    run(sys.executable, "-c", BUILD, "build_wheel", tmp_path / "out", cwd=place)
    (wheel,) = (tmp_path / "out").iterdir()
    assert wheel.name == f"{name}-{'0.0' if how == 'no git' else VERSION}-py3-none-any.whl"
    assert contents(wheel) == contents(built[f"{name}.whl"])


def test_a_build_has_nothing_of_an_older_one(clone, built, tmp_path):
    """Passes are found by their files: one that an update removed would be found again."""
    for place, name in ((clone, "graphc"), (clone / "runtime", "graphc_runtime")):
        stale = place / "build" / "lib" / name / "stale.py"
        stale.parent.mkdir(parents=True, exist_ok=True)
        stale.touch()
        run(sys.executable, "-c", BUILD, "build_wheel", tmp_path, cwd=place)
        (wheel,) = tmp_path.glob(f"{name}-*")
        assert contents(wheel) == contents(built[f"{name}.whl"])


EXAMPLE = re.search(
    r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
)[1]


@pytest.mark.parametrize("how", ["folder", "git", "archive", "editable"])
def test_plain_pip_installs_it_and_the_first_example_runs(how, clone, built, python, folder, tmp_path):
    interpreter = python(f"env-{how}")
    what = {
        "folder": [f"{clone}[demo]"],
        "git": [f"git+file://{clone}"],
        "archive": [built["graphc.gz"]],
        "editable": ["--editable", clone],
    }
    run(interpreter, *PIP, *what[how], cwd=tmp_path)
    run(interpreter, "-m", "pip", "check", cwd=tmp_path)
    graphc, runtime, *files = run(interpreter, "-c", SHOWN, cwd=tmp_path).split()
    assert graphc == runtime == VERSION
    assert all(file.startswith(str(clone if how == "editable" else interpreter.parents[1])) for file in files)
    commands = {path.name for path in interpreter.parent.glob("graphc-*")}
    assert commands == {f"graphc-{name}" for name in COMMANDS}
    if how != "editable":
        # File by file what the wheel has: what runs of one install runs of each.
        site = next(interpreter.parents[1].glob("lib/python*/site-packages"))
        with zipfile.ZipFile(built["graphc.whl"]) as wheel:
            for name in contents(built["graphc.whl"]):
                assert (site / name).read_bytes() == wheel.read(name), name
    if how in ("folder", "editable"):
        run(interpreter, "-c", EXAMPLE, cwd=tmp_path)
    if how == "folder":
        run(interpreter, ROOT / "tests" / "release" / "smoke.py", cwd=tmp_path)


def test_the_runtime_alone_and_beside_graphc(clone, built, python, tmp_path):
    interpreter = python("env-runtime")
    site = next(interpreter.parents[1].glob("lib/python*/site-packages"))
    run(interpreter, *PIP, clone / "runtime", cwd=tmp_path)
    shown = "import graphc_runtime as r; print(r.__version__, r.load)"
    assert run(interpreter, "-c", shown, cwd=tmp_path).startswith(VERSION)
    assert {path.name for path in interpreter.parent.glob("graphc-*")} == {"graphc-run"}
    # Beside graphc of the same version, either may come first.
    run(interpreter, *PIP, built["graphc.whl"], cwd=tmp_path)
    assert run(interpreter, "-c", SHOWN, cwd=tmp_path).split()[:2] == [VERSION, VERSION]
    run(interpreter, *PIP, "--force-reinstall", "--no-deps", built["graphc_runtime.whl"], cwd=tmp_path)
    run(interpreter, "-c", SHOWN, cwd=tmp_path)
    # Of another version, or removed, it is named, and the way out leads out.
    (site / "graphc_runtime" / "run.py").write_text("# another version")
    for _ in range(2):
        with pytest.raises(AssertionError, match=r"ImportError: .* is not what graphc was installed with"):
            run(interpreter, "-c", SHOWN, cwd=tmp_path)
        run(interpreter, "-m", "pip", "uninstall", "--quiet", "-y", "graphc-runtime", cwd=tmp_path)
        (site / "graphc_runtime").mkdir(exist_ok=True)
    run(interpreter, *PIP, "--force-reinstall", "--no-deps", built["graphc.whl"], cwd=tmp_path)
    assert run(interpreter, "-c", SHOWN, cwd=tmp_path).split()[:2] == [VERSION, VERSION]


def test_the_runtime_beside_a_repository_of_graphc(clone, built, python, tmp_path):
    interpreter = python("env-beside")
    run(interpreter, *PIP, "--editable", clone, cwd=tmp_path)
    run(interpreter, *PIP, built["graphc_runtime.whl"], cwd=tmp_path)
    with pytest.raises(
        AssertionError, match=r"graphc_runtime/__init__\.py is not what graphc was installed with"
    ):
        run(interpreter, "-c", SHOWN, cwd=tmp_path)
