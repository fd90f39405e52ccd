# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Releases: the interpreters that `make release` tries or names, and the recipe for conda."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "release" / "environments.py"


@pytest.fixture
def release(tmp_path, monkeypatch):
    """What the script defines, where one of the interpreters can make no environments."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for name, answer in (("python3.12", "echo 3.12"), ("python3.13", "exit 1"), ("other", "echo 3.14")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{answer}\n")
        (tmp_path / name).chmod(0o755)
    return runpy.run_path(str(SCRIPT))


def test_interpreters_are_taken_by_the_version_that_they_have(release, tmp_path):
    found = release["interpreters"]([str(tmp_path / "other"), "/nowhere/python3.13"])
    assert found["3.12"] == "python3.12" and found["3.14"] == f"{tmp_path}/other"
    assert found.get("3.13") != "python3.13"


def test_versions_that_were_not_tried_are_named(release):
    assert list(release["summary"](["3.11", "3.12"]))[1].startswith("release: NOT TRIED on Python 3.13, 3.14")
    assert len(list(release["summary"](release["VERSIONS"]))) == 1


@pytest.mark.parametrize("tag", ["v0.2.0", "v1.2.3"])
def test_the_recipe_for_conda_says_what_the_packages_say(tag):
    """conda-build is on no index of Python's: the recipe is rendered and held against pyproject.toml."""
    jinja2 = pytest.importorskip("jinja2", reason="recipes are templates; it comes with the extra `docs`")
    yaml = pytest.importorskip("yaml", reason="recipes are YAML; it comes with the extra `docs`")
    root = SCRIPT.parents[2]
    template = jinja2.Template((root / "recipe" / "meta.yaml").read_text(encoding="utf-8"))
    recipe = yaml.safe_load(template.render(environ={"GIT_DESCRIBE_TAG": tag}, PYTHON="python"))
    version = tag.removeprefix("v")
    assert str(recipe["package"]["version"]) == version
    assert recipe["build"]["script_env"] == [f"SETUPTOOLS_SCM_PRETEND_VERSION={version}"]
    assert {output["name"] for output in recipe["outputs"]} == {"graphc", "graphc-runtime"}
    for output, folder in zip(recipe["outputs"], (root, root / "runtime"), strict=True):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        said, built = project["project"], output["requirements"]
        scripts = dict(entry.split(" = ") for entry in output["build"]["entry_points"])
        assert output["name"] == said["name"] and scripts == said["scripts"]
        wanted = {each.replace(" ", "") for each in built["run"]} - {"__linux"}
        # The bindings of MLIR are on no channel: the description says how to get them.
        bindings = {each for each in said["dependencies"] if each.startswith("torch-mlir")}
        assert wanted == {*said["dependencies"], f"python{said['requires-python']}"} - bindings
        assert all(each in output["about"]["description"] for each in bindings)
        host = {each.replace(" ", "") for each in built["host"]}
        assert host >= set(project["build-system"]["requires"])
        assert output["about"]["license"] == said["license"] and (root / "LICENSE").is_file()
        assert output["about"]["summary"] == said["description"]
        assert output["test"]["imports"] and output["test"]["commands"]
