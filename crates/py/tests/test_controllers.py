"""Controllers written in Python."""

import concurrent.futures
import functools
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import fullpipe as fp

HARD = {
    "name": "hard",
    "duration": "20s",
    "seeds": 3,
    "path": {"rate": "20Mbit/s", "rtt": "40ms", "buffer": "0.3BDP", "loss": 0.002, "jitter": "6ms"},
    "flow": [{"name": "main", "stack": "reno"}],
    "measure": {"trace": "full"},
}


class Halves(fp.Controller):
    """Reno by what its base does; every round trip is counted."""

    name = "halves"
    parameters = {"increase": (1.0, 0.1, 10.0)}
    variables = ("rounds", "share")

    def on_start(self, start):
        self.rounds = 0

    def on_round(self, round):
        self.rounds += 1
        assert round.acks >= 1 and round.delivered_now <= 2 * round.acks + round.lost + 4
        assert round.rtt is None or round.rtt_min - 1e-9 <= round.rtt <= round.rtt_max + 1e-9


def rows(result, case, seed):
    trace = result.trace(case, seed)
    return {c: trace[c].tolist() for c in trace.columns if not c.startswith("var.")}


def test_reno_in_python_is_reno_to_the_bit():
    scenario = fp.Scenario(HARD).matrix({"flow.main.stack": ["reno", "reno-py", "halves"]})
    result = fp.run(scenario)
    for seed in (1, 2, 3):
        built_in = rows(result, 0, seed)
        assert len(built_in["cwnd"]) > 5000 and max(built_in["retransmits"]) > 20
        for case in (1, 2):
            assert repr(rows(result, case, seed)) == repr(built_in), f"case {case}, seed {seed}"
    rounds = result.trace(2)["var.rounds"]
    assert rounds[-1] > 300 and np.isnan(result.trace(2)["var.share"]).all()


def test_reno_in_python_is_reno_after_timeouts_and_undos():
    outage = [{"at": "5s", "outage": "2s"}]
    hard = HARD | {"path": HARD["path"] | {"schedule": outage, "loss": 0.03, "jitter": "0s"}}
    scenario = fp.Scenario(hard).matrix({"flow.main.stack": ["reno", "reno-py", "halves"]})
    result = fp.run(scenario)
    assert result.runs["timeouts"].min() > 0
    for case in (1, 2):
        assert repr(rows(result, case, 1)) == repr(rows(result, 0, 1)), f"case {case}"


class Tuned(fp.Reno):
    name = "tuned-py"
    parameters = {"a": (1.0, 0.0, 100.0), "b": (0.5, 0.0, 1.0)}

    def grown(self, n):
        return self.a * n / self.window

    def reduced(self, base):
        return (1.0 - self.b) * base


def test_parameters_are_those_of_the_spelling():
    stacks = ["aimd(increase=4,decrease=0.125)", "tuned-py(a=4,b=0.125)", "tuned-py"]
    result = fp.run(fp.Scenario(HARD).matrix({"flow.main.stack": stacks}))
    assert repr(rows(result, 1, 1)) == repr(rows(result, 0, 1))
    assert rows(result, 2, 1) != rows(result, 0, 1)
    with pytest.raises(fp.ScenarioError, match="`tuned-py` has no parameter `c`\n  hint: known: a, b"):
        fp.run(HARD, set={"flow.main.stack": "tuned-py(c=1)"})
    with pytest.raises(fp.ScenarioError, match="outside 0 to 1"):
        fp.run(HARD, set={"flow.main.stack": "tuned-py(b=2)"})
    with pytest.raises(fp.ScenarioError, match="`cubic` is built in"):

        class Cubic(fp.Controller):
            name = "cubic"


def test_a_class_is_a_stack_among_others():
    listed = {stack.name: stack for stack in fp.stacks()}
    assert listed["halves"].about == "Reno by what its base does; every round trip is counted."
    law = fp.law("reno-py", [100.0])
    assert law["decrease"] == pytest.approx([0.5]) and law["increase_last"] == pytest.approx([1], rel=0.02)


class Broken(fp.Controller):
    name = "broken"

    def on_congestion(self, event):
        self.window = {}["no such key"]


def test_an_exception_is_that_of_the_run():
    with pytest.raises(KeyError, match="no such key") as raised:
        fp.run(HARD, set={"flow.main.stack": "broken"})
    frames = traceback.extract_tb(raised.value.__traceback__)
    assert any(f.name == "on_congestion" and f.filename == __file__ for f in frames)


def test_an_exception_is_that_of_a_law_and_of_a_sweep(tmp_path):
    with pytest.raises(KeyError):
        fp.law("broken", [100.0])
    hard = HARD | {"measure": {}}
    with pytest.raises(KeyError):
        fp.sweep(hard, {"flow.main.stack": ["broken"]}, out=tmp_path)


class Still(fp.Controller):
    name = "still"

    def on_ack(self, ack):
        pass


def test_a_window_that_does_not_grow_is_not_waited_for():
    said = r"still, window 20: the window does not grow \(\d+\.0 segments after \d+ round trips\)"
    with pytest.warns(fp.ScenarioWarning, match=said):
        law = fp.law("still", [20.0])
    assert np.isnan(law["decrease"]).all()


class Nonsense(fp.Controller):
    name = "nonsense"

    def on_round(self, round):
        self.window = float("nan")


def test_a_window_that_is_no_number_is_an_error():
    with pytest.raises(fp.FullpipeError, match="on_round left window = NaN") as caught:
        fp.run(HARD, set={"flow.main.stack": "nonsense"})
    assert re.search(r"`nonsense` of flow `main`, \d+(\.\d+)? s: on_round", str(caught.value))


def test_an_exception_has_a_note_of_its_place():
    class Raises(fp.Controller):
        name = "raises"

        def on_congestion(self, event):
            raise KeyError("what it looked for")

    with pytest.raises(KeyError, match="what it looked for") as caught:
        fp.run(HARD, set={"flow.main.stack": "raises"})
    [note] = caught.value.__notes__
    assert re.fullmatch(r"in `raises` of flow `main`, \d+(\.\d+)? s: on_congestion", note)


def test_an_attribute_that_nothing_reads_is_named():
    def hint(words):
        return pytest.raises(fp.ScenarioError, match=re.escape(words))

    with hint("`slip.cwdn`: nothing reads it\n  hint: did you mean `window`?"):

        class Window(fp.Controller):
            name = "slip"

            def on_start(self, start):
                self.cwdn = 4.0

    with hint("`slip.paramters`: nothing reads it\n  hint: did you mean `parameters`?"):

        class Table(fp.Controller):
            name = "slip"
            paramters: ClassVar = {"most": 5.0}

    with hint("`slip.increase`: it is of an object, not of the class"):

        class OfClass(fp.Controller):
            name = "slip"
            increase = 0.5

    # What the class reads itself, shows, or may give is its own.
    class Fine(fp.Controller):
        name = "fine"
        parameters: ClassVar = {"decreased": 0.5}
        variables = ("windows",)

        def on_start(self, start):
            self.windows, self.increases, self.decreased = 1.0, 0, 0.5
            self.window_s, self.windowed = 0.0, 0.0
            self._window = self.window

        def on_round(self, round):
            self.increases += 1
            by_name = getattr(self, "windowed")  # noqa: B009
            self.window += (lambda: self.window_s)() + by_name

    assert "fine" in fp.controllers.KNOWN


@pytest.mark.parametrize("rate", [float("nan"), 0.0, -1.0, float("inf")])
def test_a_rate_that_is_none_is_an_error(rate):
    class Stuck(fp.Controller):
        name = "stuck"

        def on_start(self, start):
            self.pacing_rate_mbps = rate

    with pytest.raises(fp.FullpipeError, match="on_start left pacing_rate_mbps = "):
        fp.run(HARD, set={"flow.main.stack": "stuck"})


def test_a_method_that_nothing_calls_is_named():
    with pytest.raises(fp.ScenarioError, match="nothing calls it\n  hint: did you mean `on_lost`?"):

        class Slip(fp.Controller):
            name = "slip"

            def on_loss(self, segment):
                self.window /= 2


def test_a_window_below_zero_is_an_error():
    class Negative(fp.Controller):
        name = "negative"

        def on_start(self, start):
            self.window = -1.0

    with pytest.raises(fp.FullpipeError, match="the window is below 0"):
        fp.run(HARD, set={"flow.main.stack": "negative"})


@pytest.mark.parametrize("attribute", ["window", "increase"])
@pytest.mark.parametrize("value", [1e300, float("inf")])
def test_a_window_of_more_than_all_memory_is_an_error(attribute, value):
    class Huge(fp.Controller):
        name = "huge"

        def on_start(self, start):
            setattr(self, attribute, value)

    with pytest.raises(fp.FullpipeError, match="above 5e7 segments"):
        fp.run(HARD, set={"flow.main.stack": "huge"})


@pytest.mark.parametrize(
    "body, why",
    [
        ({"name": 5}, "a text is expected"),
        ({"name": "λ"}, "`λ` is no name"),
        ({"parameters": {"x": (1, 2)}}, "a number or"),
        ({"parameters": {"x": "fast"}}, "a number or"),
        ({"parameters": {"mss": 1.0}}, "every controller has `mss`"),
        ({"parameters": {"on_ack": 1.0}}, "every controller has `on_ack`"),
        ({"variables": ("a b",)}, "names of attributes"),
    ],
)
def test_a_class_that_cannot_be_a_stack_is_refused(body, why):
    with pytest.raises(fp.ScenarioError, match=why):
        type("Odd", (fp.Controller,), {"name": "odd"} | body)


def test_it_runs_in_the_simulator_only():
    with pytest.raises(fp.FullpipeError, match="written in Python") as refused:
        fp.run(HARD, set={"flow.main.stack": "halves"}, ground="udp")
    assert 'ground="sim"' in str(refused.value)


class Paced(fp.Controller):
    """Half of what the path carries, whatever happens."""

    name = "half"
    owns_window = True
    reads_rate = True
    variables = ("rate",)

    def on_start(self, start):
        self.rate = float("nan")
        self.window = 1000.0
        self.pacing_rate_mbps = 10.0

    def on_ack(self, ack):
        self.rate = ack.delivery_rate or self.rate

    def on_congestion(self, event):
        pass

    def on_lost(self, segment):
        assert segment.lost >= 1


def test_a_rate_is_kept():
    result = fp.run(HARD, set={"flow.main.stack": "half", "path.loss": 0}, repeat=1)
    # 10 Mbit/s of payload.
    assert result.runs["goodput_mbps"][0] == pytest.approx(10, rel=0.03)
    rate = result.trace()["var.rate"]
    assert np.nanmedian(rate) * 1448 * 8e-6 == pytest.approx(10, rel=0.05)


def test_stored_runs_of_other_code_are_not_taken_over(tmp_path):
    class First(fp.Controller):
        name = "mine"

        def on_start(self, start):
            self.increase = 1.0

    scenario = fp.Scenario(HARD, set={"flow.main.stack": "mine"})
    seen = []
    told = lambda done, total: seen.append(done)  # noqa: E731
    fp.run(scenario, out=tmp_path / "r")
    fp.run(scenario, out=tmp_path / "r", resume=True, progress=told)
    assert set(seen) == {3}

    class Second(fp.Controller):
        name = "mine"

        def on_start(self, start):
            self.increase = 4.0

    # Read anew: the name means another class now.
    scenario = fp.Scenario(HARD, set={"flow.main.stack": "mine"})
    with pytest.raises(fp.FullpipeError, match="other cases"):
        fp.run(scenario, out=tmp_path / "r", resume=True)


def test_workers_get_the_class_with_the_points(tmp_path):
    hard = HARD | {"measure": {}, "duration": "5s"}
    axes = {"flow.main.stack": ["reno", "tuned-py(a=2)"]}
    threads = fp.sweep(hard, axes, out=tmp_path / "a", batch=1)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        others = fp.sweep(hard, axes, out=tmp_path / "b", batch=1, executor=pool)
    assert {f.name: f.read_bytes() for f in threads} == {f.name: f.read_bytes() for f in others}


def test_ctrl_c_ends_a_run_in_python():
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import fullpipe as fp\n"
        "print('begun', flush=True)\n"
        "fp.run({'name': 'long', 'duration': '100000s', 'path': {'rate': '1Gbit/s',"
        " 'rtt': '20ms'}, 'flow': [{'stack': 'reno-py'}]})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=-1)
    assert child.stdout.readline() == b"begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    try:
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert b"KeyboardInterrupt" in errors, errors


FACTOR = 0.5


def halved(x):
    return FACTOR * x


def by(factor):
    class Local(fp.Controller):
        limits = (1.0, np.array([2.0, None]))

        def on_round(self, round):
            self.increase = factor if round.acks in {"a", "b", "c", 1, 2} else halved(self.window)

        @property
        def share(self):
            return self.window / factor

    return Local


def test_a_class_is_known_by_all_that_decides_what_it_does(monkeypatch):
    from fullpipe.controllers import fingerprint

    one = fingerprint(by(0.25))
    assert one == fingerprint(by(0.25)) != fingerprint(by(0.125)), "the variables around it"
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 0.75)
    assert fingerprint(by(0.25)) != one, "what its module's functions read"
    monkeypatch.undo()
    assert fingerprint(by(0.25)) == one


LIMITS = np.array([1.0, 2.0], dtype=object)
float64 = np.float64


@functools.lru_cache
def remembered(x):
    return x + 1


def test_a_class_is_known_by_arrays_and_by_what_a_cache_wraps(monkeypatch):
    from fullpipe.controllers import fingerprint

    class Local(fp.Controller):
        def on_round(self, round):
            self.increase = float64(remembered(LIMITS[0]))

    one = fingerprint(Local)
    monkeypatch.setattr(sys.modules[__name__], "LIMITS", np.array([1.0, 3.0], dtype=object))
    assert fingerprint(Local) != one
    monkeypatch.undo()
    assert fingerprint(Local) == one
    monkeypatch.setattr(remembered, "__wrapped__", lambda x: x + 2)
    assert fingerprint(Local) != one


def test_dask_s_workers_get_what_a_notebook_defines(tmp_path):
    distributed = pytest.importorskip("distributed")
    # A class of no module that a worker could import.
    names = {"fp": fp, "__name__": "__main__"}
    exec(
        "class Noted(fp.Controller):\n"
        "    name = 'noted'\n"
        "    def on_round(self, round):\n"
        "        self.increase = STEP\n"
        "STEP = 2.0\n",
        names,
    )
    hard = HARD | {"measure": {}, "duration": "5s"}
    axes = {"flow.main.stack": ["noted", "aimd(increase=2)"]}
    here = fp.sweep(hard, axes, out=tmp_path / "a", batch=1)
    with (
        distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        there = fp.sweep(hard, axes, out=tmp_path / "b", batch=1, executor=client)
        scenario = fp.Scenario(hard, set={"flow.main.stack": "noted"})
        assert client.submit(lambda s: s.seeds, scenario).result() == scenario.seeds
    assert {f.name: f.read_bytes() for f in here} == {f.name: f.read_bytes() for f in there}


def test_a_class_is_the_same_in_every_process():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_controllers import by, fp\n"
        "print(fp.controllers.fingerprint(by(0.25)))\n"
    )
    folder = str(Path(__file__).parent)
    # Sets of texts are in another order with each of these.
    seen = {
        subprocess.run(
            [sys.executable, "-c", code, folder], env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for seed in "12345"
    }  # fmt: skip
    assert len(seen) == 1


#: A path with a few losses, and one flow.
ALONE = {
    "name": "alone",
    "duration": "10s",
    "path": {"rate": "20Mbit/s", "rtt": "40ms", "buffer": "0.3BDP", "loss": 5e-4},
    "flow": [{"name": "main", "stack": "reno"}],
}


def test_what_changes_a_class_changes_its_stack(tmp_path):
    class Later(fp.Controller):
        name = "later"
        step = 1.0

        def on_start(self, start):
            self.increase = self.step

    def goodput(**kept):
        run = fp.run(ALONE, set={"flow.main.stack": "later"}, **kept)
        return run.cases[0].flows[0]["goodput_mbps"]

    kept = {"out": tmp_path, "resume": True}
    first = goodput(**kept)
    assert goodput(**kept) == first
    Later.step = 9.0
    with pytest.raises(fp.ScenarioError, match="holds another result"):
        goodput(**kept)
    changed = goodput()
    assert changed != first
    Later.on_round = lambda self, round: setattr(self, "increase", 0.1)
    assert goodput() not in {first, changed}


def test_a_class_that_defines_nothing_is_reno_with_every_preset():
    class Plain(fp.Controller):
        name = "plain"

    # Reno sets no rate of its own, which Linux's send buffer goes by: seen where it fills.
    full = {
        "path.rate": "20Mbit/s",
        "path.rtt": "80ms",
        "path.buffer": "0.3BDP",
        "path.reorder": {"probability": 0.02, "extra": "40ms"},
        "flow.main.window": "300 segments",
        "flow.main.delayed_ack": False,
    }
    for preset, more in (("2003", {}), ("linux", {}), ("2026", {}), ("linux", full)):
        both = [
            fp.run(ALONE, set={"flow.main.stack": stack, "flow.main.preset": preset} | more)
            for stack in ("plain", "reno")
        ]
        goodput, other = (run.cases[0].flows[0]["goodput_mbps"] for run in both)
        assert goodput == other, (preset, more)


def test_what_a_flow_has_when_it_opens_is_set_in_on_start():
    with pytest.raises(fp.ScenarioError, match="a flow has its window when it opens"):

        class Named(fp.Controller):
            name = "named"
            parameters = {"window": 20.0}

    class Early(fp.Controller):
        name = "early"

        def __init__(self):
            self.window = 20.0

    with pytest.raises(fp.FullpipeError, match="set them in `on_start`"):
        fp.run(ALONE, set={"flow.main.stack": "early"})


def test_a_round_begins_when_the_connection_opens():
    seen = []

    class Rounds(fp.Controller):
        name = "rounds"

        def on_round(self, round):
            seen.append(round.duration)

    fp.run(ALONE, set={"flow.main.stack": "rounds", "flow.main.start": "1s"}, jobs=1)
    assert seen and seen[0] < 0.9


def test_the_largest_window_is_the_cap_in_force():
    caps = set()

    class Capped(fp.Controller):
        name = "capped"

        def on_round(self, round):
            caps.add(self.max_window)

    change = [{"at": "2s", "window": "20 segments"}]
    flow = {"name": "main", "stack": "capped", "window": "40 segments", "change": change}
    fp.run(ALONE | {"flow": [flow]}, jobs=1)
    assert caps == {40.0, 20.0}


def test_buffers_in_bdp_are_ranges_too():
    points = fp.latin_hypercube({"path.buffer": ("1BDP", "2BDP")}, 2)
    assert all(1 <= float(p["path.buffer"].removesuffix("BDP")) <= 2 for p in points)
