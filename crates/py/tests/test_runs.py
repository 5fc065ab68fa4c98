"""Scenarios, runs, errors."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

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


def test_ctrl_c_ends_a_run():
    # A shell starts what runs in the background with SIGINT ignored, tests too.
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import fullpipe as fp\n"
        "print('begun', flush=True)\n"
        "fp.run({'name': 'long', 'duration': '100000s', 'path': {'rate': '1Gbit/s',"
        " 'rtt': '20ms'}, 'flow': [{'stack': 'reno'}]}, ground='udp')\n"
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


def test_an_import_starts_no_thread_and_is_quick():
    code = "import threading, fullpipe; print(threading.active_count(), len(open('/proc/self/stat').read()))"
    code += "; import os; print(len(os.listdir('/proc/self/task')))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split()[0] == "1" and ended.stdout.split()[-1] == "1", ended.stdout
