"""What the tests share: a scenario of a second, and a result of it."""

import copy
import os
from pathlib import Path

import pytest

import fullpipe as fp

SHORT = {
    "name": "short",
    "duration": "2s",
    "seeds": 2,
    "path": {"rate": "10Mbit/s", "rtt": "20ms", "buffer": "1BDP"},
    "flow": [{"name": "main", "stack": "reno"}],
    "matrix": {"path.rtt": ["10ms", "20ms"]},
    "measure": {"trace": "full"},
    "expect": [{"metric": "goodput_mbps", "at_least": 5, "source": "half of the rate"}],
}


@pytest.fixture
def short() -> dict:
    return copy.deepcopy(SHORT)


@pytest.fixture(scope="session")
def result() -> fp.Result:
    return fp.run(SHORT)


def command() -> Path | None:
    """The program, where cargo has built it."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[3] / "target"))
    built = (target / profile / "fullpipe" for profile in ("debug", "quick", "release"))
    return next((program for program in built if program.exists()), None)
