"""Documentation that is run: code blocks of every page, commands documented, links, the site."""

import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import nullcontext
from functools import reduce
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import sync_playwright
from typer.main import get_command

from countwise.cli import app, main
from doc_settings import SETTINGS
from needs import chromium

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),  # Ibis on DuckDB 2
    pytest.mark.timeout(600),
]
ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?<=\n\n)((?:(?: {4}.*)?\n)+)")


def blocks(page: Path) -> list[tuple[str, str]]:
    """The blocks of a page that are run, in their order: `sh` and `python`.

    Older pages write them indented. Other languages are shown only: `console` what installs,
    `text` what is printed.
    """
    text = page.read_text()
    found = [(m.start(), m[1], m[2]) for m in FENCED.finditer(text)]
    bare = FENCED.sub(lambda m: " " * len(m[0]), text)
    for match in INDENTED.finditer(bare):
        code = "\n".join(line[4:] for line in match[1].splitlines()).strip()
        if code.startswith(("countwise ", "import ")):
            language = "sh" if code.startswith("countwise ") else "python"
            found.append((match.start(), language, code + "\n"))
    return [(language, code) for _, language, code in sorted(found) if language in {"sh", "python"}]


RUNNABLE = [page for page in PAGES if blocks(page)]


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One command through the function behind `countwise`, in this process for speed."""
    monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code or 0
    assert code == (2 if "# refused" in line else 0), line


def run_shell(code: str, folder: Path) -> None:
    """A block of other commands, run by bash as a reader would."""
    python = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], cwd=folder, env=os.environ | python,
        capture_output=True, text=True, check=False, timeout=250,
    )  # fmt: skip
    assert done.returncode == 0, f"{code}\n{done.stderr}"


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_code_of_a_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    with SETTINGS.get(page.name, lambda _: nullcontext({}))(tmp_path) as filled:
        for language, printed in blocks(page):
            code = reduce(lambda text, each: text.replace(*each), filled.items(), printed)
            run_block(language, code, names, tmp_path, monkeypatch)


def run_block(
    language: str, code: str, names: dict[str, object], folder: Path, patch: pytest.MonkeyPatch
) -> None:
    """Python in one namespace; commands here, unless they call other programs or start Java."""
    assert "…" not in code, "a fragment: write it out, or show it as text"
    lines = [line for line in code.replace("\\\n", " ").splitlines() if line.strip()]
    if language == "python":
        exec(compile(code, "page", "exec"), names)
    elif all(line.startswith(("countwise ", "#")) and "spark" not in line for line in lines):
        for line in lines:
            if line.startswith("countwise ") and not line.startswith("countwise serve "):
                run_command(line, patch)  # servers were started by the setting
    else:
        run_shell(code, folder)


@pytest.mark.parametrize(("language", "read"), [("toml", tomllib.loads), ("yaml", yaml.safe_load)])
def test_settings_that_are_shown_can_be_read(language: str, read: Callable[[str], object]) -> None:
    shown = [m[2] for page in PAGES for m in FENCED.finditer(page.read_text()) if m[1] == language]
    assert shown
    assert all(read(text) for text in shown)


def test_every_command_is_documented() -> None:
    text = "\n".join(page.read_text() for page in PAGES)
    for name in get_command(app).commands:
        assert f"countwise {name}" in text, f"countwise {name} is in no page"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    made = runpy.run_path(str(DOCS / "site_hooks.py"))["PAGE"]
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        if not target.startswith("http") and not target.endswith(made):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_room_says_what_it_owns() -> None:
    for init in (ROOT / "src" / "countwise").glob("*/__init__.py"):
        assert init.read_text().startswith('"""'), init


def test_the_drawings_are_those_the_script_makes() -> None:
    for name, picture in runpy.run_path(str(DOCS / "pictures.py"))["PICTURES"].items():
        assert (DOCS / "pictures" / name).read_text() == picture(), name


def test_the_picture_of_the_readme_is_small_and_can_be_made() -> None:
    made = runpy.run_path(str(DOCS / "readme_picture.py"))
    assert made["page"]().count("<rect") > 10
    assert made["PICTURE"].stat().st_size < 200_000
    assert f"docs/pictures/{made['PICTURE'].name}" in (ROOT / "README.md").read_text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    run_shell(f"docs/build --site-dir {shlex.quote(str(folder))}", ROOT)
    return folder


def test_the_site_has_every_page_and_command(site: Path) -> None:
    listed = (ROOT / "mkdocs.yml").read_text()
    for page in PAGES[1:]:
        assert f": {page.relative_to(DOCS)}\n" in listed, f"{page} is not in the navigation"
        assert (site / page.relative_to(DOCS).with_suffix(".html")).is_file(), page
    commands = (site / "reference" / "commands.html").read_text()
    for name in get_command(app).commands:
        assert f"countwise {name}" in commands, name
    assert 'id="countwise.Plan"' in (site / "reference" / "python.html").read_text()


@pytest.mark.parametrize("width", [390, 1280])
def test_the_site_opens_without_a_network(site: Path, width: int) -> None:
    program = chromium()
    wrong: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800})
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("request", lambda sent: sent.url.startswith("file:") or wrong.append(sent.url))
        for name in ("index.html", "tutorials/steward.html", "explain/cut-and-coupled-sum.html"):
            page.goto((site / name).as_uri())
            page.wait_for_load_state("load")
            root = "document.documentElement"
            assert page.evaluate(f"{root}.scrollWidth <= {root}.clientWidth"), name
            broken = "[...document.images].filter(e => e.complete && !e.naturalWidth).length"
            assert page.evaluate(broken) == 0, name
        if width == 1280:
            page.fill("[data-md-component=search-query]", "certificate")
            page.wait_for_selector(".md-search-result__item a")
        browser.close()
    assert wrong == []
