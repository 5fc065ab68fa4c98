"""The site's pages do what they say: their Python blocks run in order, their shell blocks where the
command is built, notebooks in a kernel while the site is built. Blocks marked `py` need what a test has not."""

import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import command

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("tutorials/*.md"), *DOCS.glob("how-to/*.md")])
BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```", re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_a_page_is_followed_to_the_letter(page, tmp_path):
    if page.stem == "cluster-sweep":
        pytest.importorskip("distributed")
    if page.stem == "search":
        pytest.importorskip("optuna")
    blocks = BLOCK.findall(page.read_text())
    code = []
    program = command()
    for language, title, text in blocks:
        if title:
            (tmp_path / title).write_text(text)
        elif language == "python":
            code.append(text)
        elif language == "sh" and program:
            env = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
            for line in text.splitlines():
                ran = subprocess.run(line, shell=True, cwd=tmp_path, env=env, capture_output=True)
                assert ran.returncode == 0, (line, ran.stderr.decode())
    assert code
    # A process of its own: Dask's workers import what a page defines.
    body = "\n".join(code)
    guarded = "import matplotlib\nmatplotlib.use('Agg')\nif __name__ == '__main__':\n"
    body = guarded + "".join(f"    {line}\n" if line else "\n" for line in body.split("\n"))
    script = tmp_path / "page.py"
    script.write_text(body)
    ran = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_is_kept_without_what_it_gives(path):
    cells = json.loads(path.read_text())["cells"]
    assert not any(cell.get("outputs") for cell in cells)


def dead_links(site):
    """Links to files and places that are not there, but for the page of servers."""
    pages = {page: page.read_text() for page in site.rglob("*.html") if page.name != "404.html"}
    places = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    dead = []
    for page, text in pages.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            url = urlsplit(html.unescape(link))
            if url.scheme:
                continue
            to = (page.parent / unquote(url.path)).resolve() if url.path else page
            to = to / "index.html" if to.is_dir() else to
            if not to.exists() or to in places and url.fragment and (
                unquote(url.fragment) not in places[to]
            ):
                dead.append((page.name, link))
    return dead


def test_the_site_is_built_and_can_be_searched_offline(tmp_path):
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    pytest.importorskip("mkdocstrings")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    config = ROOT / "crates/py/site/mkdocs.yml"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "-f", config, "-d", tmp_path],
        capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    nav = re.findall(r"- ([\w/.-]+)\.md$", config.read_text(), re.M)
    assert len(nav) > 30
    for page in [*nav, "404"]:
        text = (tmp_path / f"{page}.html").read_text()
        assert not re.search(r'(?:src|<link[^>]*href)="https?://', text), page
    assert not dead_links(tmp_path)
    index = (tmp_path / "search/search_index.js").read_text()
    assert "on_round" in index and "recovery_time_s" in index and "highspeed" in index
    figure = (tmp_path / "tutorials/paper-figure.html").read_text()
    assert figure.count("data:image/png;base64,") >= 3 and "<td>cubic</td>" in figure
    if chromium := shutil.which("chromium"):
        page = f"file://{tmp_path}/index.html?q=on_round"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=60000"]
        shown = subprocess.run(
            [chromium, *flags, "--dump-dom", page], capture_output=True, text=True, timeout=120
        ).stdout
        assert "python.html?h=on_round#fullpipe.Controller.on_round" in shown
