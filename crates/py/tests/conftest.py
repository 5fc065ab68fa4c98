"""What the tests share: a scenario of a second, and a result of it."""

import copy

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
