"""What the README shows works as it stands."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_every_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    import matplotlib

    matplotlib.use("Agg")
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    assert len(blocks) == 5
    for i, block in enumerate(blocks):
        exec(compile(block, "README.md", "exec"), names)
        if i == 0:
            assert names["result"].expectations and names["result"].passed
    assert [p.suffix for p in (tmp_path / "sweep").iterdir() if p.name[0] != "_"] == [".parquet"]
    assert names["fig"].axes
