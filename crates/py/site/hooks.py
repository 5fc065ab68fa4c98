"""Pages of the site that are made from code and from notebooks."""

import base64
import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[3]
#: In the place of a script that the theme would fetch.
WORKER, FETCHED = "assets/offline-worker.js", "https://unpkg.com/iframe-worker/shim"

#: Pages that stand in the root of the sources.
FROM_ROOT = {"crates.md": "ARCHITECTURE.md", "security.md": "SECURITY.md"}
LINK = re.compile(r"\[([^\]\[]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files, config):
    """Adds the pages that no file of docs/ holds."""
    pages = {"stacks.md": stacks()}
    pages |= {page: (ROOT / source).read_text() for page, source in FROM_ROOT.items()}
    for notebook in sorted((ROOT / "docs").rglob("*.ipynb")):
        name = notebook.relative_to(ROOT / "docs")
        files.remove(files.get_file_from_path(str(name)))
        pages[str(name.with_suffix(".md"))] = executed(notebook)
    pages[WORKER] = (Path(__file__).parent / "offline-worker.js").read_text()
    for name, text in pages.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links are to pages of the site; what else of the sources they name is text."""
    name = page.file.src_uri
    where = ROOT if name in FROM_ROOT else (ROOT / "docs" / name).parent
    known = {ROOT / source: ROOT / "docs" / made for made, source in FROM_ROOT.items()}
    here = (ROOT / "docs" / name).parent

    def led(link):
        text, target, anchor = link[1], link[2], link[3] or ""
        to = Path(os.path.normpath(where / target))
        to = known.get(to, to)
        # A notebook is a page of its name.
        to = to.with_suffix(".md") if to.suffix == ".ipynb" else to
        if files.get_file_from_path(os.path.relpath(to, ROOT / "docs")):
            return f"[{text}]({os.path.relpath(to, here)}{anchor})"
        path = f"`{os.path.relpath(to, ROOT)}`"
        return text if path.strip("`") in text else f"{text} ({path} in the sources)"

    return LINK.sub(led, markdown)


def on_post_page(output, page, config):
    """Nothing is fetched from anywhere."""
    return output.replace(FETCHED, "../" * page.url.count("/") + WORKER)


def on_post_template(output_content, template_name, config):
    """Nor by the page for what a server has not."""
    return output_content.replace(FETCHED, f"/{WORKER}")


def stacks():
    """Every part of a stack, as the registry has it."""
    import fullpipe as fp

    intro = "A stack is a law, `+` a start-up, `+` a way to send its initial window."
    lines = ["# Stacks", "", intro, "`fullpipe list stacks NAME` has the parameters of each."]
    kind = None
    for stack in fp.stacks():
        if stack.kind != kind:
            kind = stack.kind
            lines += ["", f"## {kind[0].upper()}{kind[1:]}", "", "| name | |", "|---|---|"]
        lines.append(f"| `{stack.name}` | {stack.about.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def executed(path):
    """A notebook, run, as Markdown with what its cells give."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as where:
        resources = {"metadata": {"path": where}}
        NotebookClient(
            notebook, timeout=300, kernel_name="python3", resources=resources
        ).execute()
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        parts += [shown(output) for output in cell.outputs]
    return "\n\n".join(part for part in parts if part) + "\n"


def shown(output):
    """An output of a cell: a picture, HTML or text."""
    data = output.get("data", {})
    if "image/png" in data:
        image = base64.b64encode(base64.b64decode(data["image/png"])).decode()
        return f'<img alt="figure" src="data:image/png;base64,{image}">'
    if "text/html" in data:
        return f"<div>{data['text/html']}</div>"
    text = output.get("text") or data.get("text/plain")
    return f"```text\n{text.rstrip()}\n```" if text else ""
