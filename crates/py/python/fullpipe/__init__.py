"""Congestion control for fast, long paths: simulated, over UDP sockets, in real Linux.

    import fullpipe as fp

    result = fp.run("first-run", set={"path.rtt": "80ms"})
    result.runs["goodput_mbps"]          # a NumPy array
    polars.DataFrame(result.runs)        # or pandas, duckdb, pyarrow: the Arrow stream
    result.passed, result.report()

Grounds, scenarios, stacks and metrics are those of the command ``fullpipe``.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from . import events
from ._native import EnvironmentLacks, FullpipeError, ScenarioError, __version__
from .controllers import Controller, Reno
from .designs import grid, latin_hypercube
from .judging import Comparison, Falsification, compare, falsify
from .laws import Stack, law, stacks
from .results import Case, Expectation, Result, open_result
from .running import grounds, run
from .scenarios import Scenario, ScenarioWarning, scenarios
from .sweeping import sweep
from .tables import Table

__all__ = [
    "Case",
    "Comparison",
    "Controller",
    "EnvironmentLacks",
    "Expectation",
    "Falsification",
    "FullpipeError",
    "Reno",
    "Result",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "Stack",
    "Table",
    "__version__",
    "compare",
    "events",
    "falsify",
    "grid",
    "grounds",
    "latin_hypercube",
    "law",
    "open_result",
    "run",
    "scenarios",
    "stacks",
    "sweep",
]

if TYPE_CHECKING:
    from . import plot as plot
else:

    def __getattr__(name):
        """`fullpipe.plot` is imported when it is used: it needs NumPy at once, and matplotlib."""
        if name == "plot":
            return import_module(".plot", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
