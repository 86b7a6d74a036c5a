"""The packages: what is in them, and that they work where nothing else is installed."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command: object, folder: Path) -> str:
    """What a command prints, run as where this checkout is not on Python's path."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    outside["NUMBA_OPT"] = "0"  # what is compiled here runs once
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder, env=outside, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, folder=ROOT)
    return folder


def distribution(requirement: str) -> str:
    """The name of a requirement, written as the index writes it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_the_wheel_works_with_only_the_core_dependencies(packages: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "clean", folder=tmp_path)
    python = tmp_path / "clean" / "bin" / "python"
    wheel = next(packages.glob("*.whl"))
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", wheel, folder=tmp_path)
    listed = run(python, "-m", "pip", "list", "--format", "freeze", folder=tmp_path)
    installed = {distribution(line) for line in listed.splitlines()}
    core = {distribution(each) for each in PROJECT["dependencies"]}
    extras = {
        distribution(each)
        for some in PROJECT["optional-dependencies"].values()
        for each in some
        if not each.startswith("countwise")
    }
    assert core <= installed
    # pandas comes with Ibis; whatever else an extra brings is not here, so nothing can import it
    assert not (extras - core - {"pandas"}) & installed
    run(tmp_path / "clean" / "bin" / "countwise", "demo", "--out", "demo", folder=tmp_path)
    made = {path.name for path in (tmp_path / "demo").iterdir()}
    assert {"counts.csv", "release.json", "certificate.html", "posterior.html"} <= made


def test_the_source_package_builds_the_same_wheel(packages: Path, tmp_path: Path) -> None:
    source = next(packages.glob("*.tar.gz"))
    run(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "-w", tmp_path, source, folder=tmp_path,
    )  # fmt: skip
    names = [
        sorted(zipfile.ZipFile(wheel).namelist())
        for folder in (packages, tmp_path)
        for wheel in folder.glob("*.whl")
    ]
    assert names[0] == names[1]
    with tarfile.open(source) as opened:
        inside = {name.split("/", 1)[1] for name in opened.getnames()}
    assert {"LICENSE", "CITATION.cff", "CHANGELOG.md", "mkdocs.yml", "check"} <= inside


def test_the_wheel_holds_types_licence_templates_and_examples(packages: Path) -> None:
    inside = zipfile.ZipFile(next(packages.glob("*.whl"))).namelist()
    for ending in (
        "countwise/py.typed", "licenses/LICENSE", "pages/templates/base.html", "clinics.csv",
    ):  # fmt: skip
        assert any(name.endswith(ending) for name in inside), ending
    assert not [name for name in inside if name.startswith(("tests", "benchmarks"))]


def test_one_version_everywhere() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest is not None
    assert {PROJECT["version"], citation["version"], newest[1]} == {version("countwise")}


def test_the_citation_names_the_papers() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    names = {" ".join(a["family-names"] for a in each["authors"]) for each in cited}
    assert names == {"Wang Reiter", "Wang", "Balmat Barrientos Reiter", "Kerrigan", "Coleman"}
    assert all(each["title"] and each["year"] for each in cited)
