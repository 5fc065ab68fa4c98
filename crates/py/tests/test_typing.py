"""How a program uses the package, as mypy sees it: crates/py/check.sh checks it strictly, and pytest
runs it."""

import ast
from pathlib import Path

import numpy as np
import pytest

import fullpipe as fp


class Careful(fp.Reno):
    """Reno that stops growing in a queue, with every type said."""

    name = "careful-typed"
    parameters = {"most_ms": (5.0, 0.0, 1000.0)}
    most_ms: float

    def on_start(self, start: fp.events.Start) -> None:
        super().on_start(start)
        self.queue = 0.0

    def on_ack(self, ack: fp.events.Ack) -> None:
        if ack.rtt is not None and ack.min_rtt is not None:
            self.queue = ack.rtt - ack.min_rtt
        if 1000 * self.queue <= self.most_ms:
            super().on_ack(ack)


def test_every_result_has_its_type(tmp_path: Path) -> None:
    scenario = fp.Scenario(
        {
            "name": "typed",
            "duration": "2s",
            "path": {"rate": "10Mbit/s", "rtt": "20ms", "buffer": "1BDP"},
            "flow": [{"name": "main", "stack": "careful-typed(most_ms=2)"}],
            "measure": {"trace": "full"},
        }
    )
    result = fp.run(scenario.matrix({"path.rtt": ["10ms", "20ms"]}), repeat=2, progress=False)
    goodput: np.ndarray = result.runs["goodput_mbps"]
    assert len(goodput) == len(result.cases) * 2 and result.passed
    window: float = float(result.trace(case=1)["cwnd"].max())
    decrease: list[float] = fp.law("reno", [100.0])["decrease"].tolist()
    assert window > 2 and decrease == [0.5]
    files: list[Path] = fp.sweep(scenario, {"path.loss": [0.0, 0.01]}, out=tmp_path, of="rtt_ms.mean")
    assert len(files) == 1 and fp.compare(result, result, metrics="goodput_mbps").agree
    pytest.importorskip("matplotlib")
    fp.plot.window(result).savefig(tmp_path / "window.pdf")
    with fp.plot.style():
        result.plot.matrix("goodput_mbps", x="path.rtt", y="stack")


def test_help_says_what_the_stubs_say() -> None:
    stub = ast.parse(Path(fp.__file__).with_name("_native.pyi").read_text())
    events = [c for c in stub.body if isinstance(c, ast.ClassDef) and hasattr(fp.events, c.name)]
    assert len(events) == 6
    for event in events:
        fields = [f for f in event.body if isinstance(f, ast.FunctionDef)]
        assert fields
        for field in fields:
            there = getattr(getattr(fp.events, event.name), field.name).__doc__
            assert " ".join((there or "").split()) == ast.get_docstring(field), (event.name, field.name)
