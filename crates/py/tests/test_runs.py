"""Scenarios, runs, errors."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

import fullpipe as fp


def test_a_result_has_the_numbers_of_its_json(result):
    runs = result.runs
    assert len(runs) == 4
    for row in runs.rows():
        case = result.cases[row["case"]]
        mean = case.flows[0]["goodput_mbps"]
        assert abs(row["goodput_mbps"] - mean) < 0.5
        assert case.params["path.rtt"] == row["path.rtt"]
    assert result.passed and len(result.expectations) == 2
    assert result.ground == "sim" and result.scenario == "short"


def test_a_result_names_the_other_host_of_its_path(short):
    result = fp.run(short)
    assert result.peer is None
    # Stands in the object of a run with `--peer`, which needs a server.
    result.json["peer"] = "dtn.example.org"
    assert result.peer == "dtn.example.org"


def test_an_expectation_that_fails_is_told(short):
    short["expect"] = [{"metric": "goodput_mbps", "at_least": 11, "source": "more than the rate"}]
    result = fp.run(short)
    assert not result.passed
    assert all(e.observed < 11 and e.bound == (11, None) for e in result.expectations)


def test_what_is_wrong_is_told_with_place_and_remedy(short):
    short["path"]["rte"] = "1Mbit/s"
    with pytest.raises(fp.ScenarioError, match=r"`path.rte`: unknown key\n  hint: did you mean"):
        fp.run(short)
    with pytest.raises(fp.ScenarioError, match="did you mean the built-in scenario `one-drop`"):
        fp.run("one-dro")
    with pytest.raises(fp.ScenarioError, match="no ground `moon`\n  hint: there are `sim`"):
        fp.run("one-drop", quick=True, ground="moon")
    with pytest.raises(fp.ScenarioError, match="path.rate = fast"):
        fp.run("one-drop", set={"path.rate": "fast"})


def test_keys_are_set_and_axes_replaced(short):
    base = fp.Scenario(short)
    assert base.set({"path.rtt": "40ms"}).cases == [{"path.rtt": "40ms"}]
    axes = base.matrix({"flow.main.stack": ["reno", "cubic"], "path.rate": ["1Mbit/s"]})
    assert [c["flow.main.stack"] for c in axes.cases] == ["reno", "cubic"]
    assert base.cases == [{"path.rtt": "10ms"}, {"path.rtt": "20ms"}], "unchanged"


def test_a_matrix_leaves_out_what_names_the_old_one(short):
    with pytest.warns(fp.ScenarioWarning, match="decrease_fraction where case = 60 s, HighSpeed"):
        one = fp.Scenario("one-drop").matrix({"flow.main.stack": ["reno", "cubic"]})
    assert len(one.cases) == 2
    short["expect"] += [
        {"metric": "goodput_mbps", "where": {"path.rtt": rtt}, "at_least": 5, "source": "half"}
        for rtt in ("10ms", "20ms")
    ]
    with pytest.warns(fp.ScenarioWarning, match="path.rtt = 10ms") as told:
        kept = fp.Scenario(short).matrix({"path.rtt": ["20ms", "40ms"], "path.mtu": [1500]})
    assert "20ms" not in str(told[0].message)
    assert [e.params.get("path.rtt") for e in fp.run(kept).expectations].count("20ms") == 2


@pytest.mark.parametrize("name", fp.scenarios())
def test_every_built_in_scenario_takes_another_matrix(name):
    try:
        scenario = fp.Scenario(name)
    except fp.ScenarioError as error:
        assert "this is a study" in str(error)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.ScenarioWarning)
        other = scenario.matrix({"duration": ["400s", "500s"]})
        assert len(other.cases) == len(other.as_quick().cases) == 2


def test_quick_and_numpy_s_numbers_are_taken_beside_a_scenario(short):
    short["quick"] = {"duration": "1s"}
    scenario = fp.Scenario(short)
    sent = [fp.run(scenario, quick=quick).runs["delivered_segments"].sum() for quick in (0, 1)]
    assert sent[1] < 0.7 * sent[0]
    given = {"path.mtu": np.int64(1400), "path.loss": np.float64(0.01), "path.rtt": "10ms"}
    plain = {"path.mtu": 1400, "path.loss": 0.01, "path.rtt": "10ms"}
    runs = [fp.run(scenario, set=keys).runs.to_dict() for keys in (given, plain)]
    assert repr(runs[0]) == repr(runs[1])
    axes = scenario.matrix({"path.mtu": np.array([1400, 1500])})
    assert [case["path.mtu"] for case in axes.cases] == ["1400", "1500"]


def test_results_and_tables_go_to_other_processes(short, tmp_path):
    for out in (None, tmp_path / "r"):
        result = fp.run(short, out=out)
        again = pickle.loads(pickle.dumps(result))
        assert repr(again.runs.to_dict()) == repr(result.runs.to_dict())
        assert again.trace().to_dict().keys() == result.trace().to_dict().keys()
        assert (again.path == result.path) == (out is not None)
    table = pickle.loads(pickle.dumps(result.runs))
    assert repr(table.to_dict()) == repr(result.runs.to_dict()) and table.columns == result.runs.columns


def test_one_run_that_is_stopped_stops_no_other(short):
    short["duration"] = "500s"
    other = {}
    thread = threading.Thread(target=lambda: other.update(runs=len(fp.run(short, jobs=1).runs)))

    def refuse(done, total):
        raise RuntimeError("enough")

    thread.start()
    while thread.is_alive():
        with pytest.raises(RuntimeError, match="enough"):
            fp.run(short, jobs=1, progress=refuse)
    thread.join()
    assert other == {"runs": 4}


def test_a_scenario_goes_to_other_processes(short):
    scenario = fp.Scenario(short).set({"duration": "1s"}).with_seeds(7, 3)
    again = pickle.loads(pickle.dumps(scenario))
    assert again.seeds == [7, 8, 9] and again.cases == scenario.cases


def test_the_same_seeds_give_the_same_numbers_however_many_threads(short):
    one, two = (fp.run(short, jobs=jobs).runs.to_dict() for jobs in (1, 2))
    assert repr(one) == repr(two)


def test_finished_runs_are_taken_over(short, tmp_path):
    seen = []
    fp.run(short, out=tmp_path / "r")
    fp.run(short, out=tmp_path / "r", resume=True, progress=lambda *now: seen.append(now))
    assert set(seen) == {(4, 4)}
    assert len(fp.open_result(tmp_path / "r").runs) == 4


def test_an_exception_of_the_progress_ends_the_run(short):
    short["duration"] = "500s"

    def refuse(done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        fp.run(short, progress=refuse)


def test_other_threads_go_on(short):
    short["duration"] = "500s"
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    begin = time.monotonic()
    fp.run(short)
    end = time.monotonic()
    done.set()
    thread.join()
    during = [t for t in ticks if begin < t < end]
    assert len(during) > 3, f"{len(during)} ticks in {end - begin:.3f} s"


@pytest.mark.parametrize("ground", ["sim", "udp"])
def test_ctrl_c_ends_a_run(ground):
    # A shell starts what runs in the background with SIGINT ignored, tests too.
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import fullpipe as fp\n"
        "print('begun', flush=True)\n"
        "fp.run({'name': 'long', 'duration': '100000s', 'path': {'rate': '1Gbit/s',"
        f" 'rtt': '20ms'}}, 'flow': [{{'stack': 'reno'}}]}}, ground={ground!r})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=-1)
    assert child.stdout.readline() == b"begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    try:
        _, errors = child.communicate(timeout=20)
    finally:
        child.kill()
    assert b"KeyboardInterrupt" in errors, errors
    assert child.returncode != 0


def test_a_fork_runs_scenarios_too(short, result):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if len(fp.run(short).runs) == 4 else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_fork_that_ends_takes_no_result_of_its_parent_along(short):
    result = fp.run(short)
    child = os.fork()
    if child == 0:
        try:
            del result
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert result.path.exists() and len(result.runs) == 4
    path = result.path
    del result
    assert not path.exists() and not path.parent.exists()


def test_an_import_starts_no_thread_and_is_quick():
    code = "import threading, fullpipe; print(threading.active_count(), len(open('/proc/self/stat').read()))"
    code += "; import os; print(len(os.listdir('/proc/self/task')))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split()[0] == "1" and ended.stdout.split()[-1] == "1", ended.stdout


def test_no_thread_is_started_without_a_run(short):
    threads = []
    fp.run(short, jobs=200, progress=lambda *_: threads.append(len(os.listdir("/proc/self/task"))))
    assert threads and max(threads) < 50


def test_numbers_that_count_are_whole_and_in_their_range(short):
    for more in ({"repeat": 0}, {"repeat": -1}, {"repeat": 1.5}, {"jobs": -1}, {"seed": -1}):
        for scenario in (short, fp.Scenario(short)):
            with pytest.raises(fp.ScenarioError, match=f"`{next(iter(more))}` = .*at least"):
                fp.run(scenario, **more)
    with pytest.raises(fp.ScenarioError, match="below 9000000000000000001"):
        fp.Scenario(short).with_seeds(2**64)
    assert fp.Scenario(short, seed=np.int64(3), repeat=np.uint8(2)).seeds == [3, 4]


def test_a_law_is_asked_for_windows_that_there_are():
    refused = [{"windows": [float("nan")]}, {"windows": [0]}, {"windows": 100}, {"windows": "100"}]
    refused += [{"windows": None}, {"mss": 0}, {"mss": 1.5}, {"mss": None}, {"hz": 0}, {"hz": 2**40}]
    for more in refused:
        with pytest.raises(fp.ScenarioError):
            fp.law("reno", **more)


def test_what_is_no_text_and_no_list_is_refused_by_name(short):
    scenario = fp.Scenario(short)
    lone = "\ud800"
    for wrong in (
        lambda: fp.Scenario(short | {"name": lone}),
        lambda: fp.Scenario(f"name = '{lone}'\n"),
        lambda: scenario.set({"path.rtt": lone}),
        lambda: scenario.set({lone: "20ms"}),
        lambda: scenario.set([("path.rtt", "20ms")]),
        lambda: scenario.matrix({"path.rtt": {"10ms", "20ms"}}),
        lambda: scenario.matrix({"path.rtt": "20ms"}),
        lambda: scenario.matrix({"path.rtt": 5}),
        lambda: scenario.matrix({5: ["20ms"]}),
        lambda: scenario.matrix(["path.rtt"]),
    ):
        with pytest.raises(fp.ScenarioError, match="UTF-8|dict|list|no key"):
            wrong()
    assert len(scenario.matrix({"path.rtt": (f"{ms}ms" for ms in (10, 20, 30))}).cases) == 3


def test_more_seeds_than_a_scenario_may_have_are_refused(short):
    # They would take all memory, and the process with it.
    with pytest.raises(fp.ScenarioError, match="1 to 1000000 seeds"):
        fp.run(short, repeat=2**32 - 1)
