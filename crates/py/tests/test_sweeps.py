"""Sweeps."""

import concurrent.futures
import multiprocessing
from pathlib import Path

import pytest

import fullpipe as fp

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


def test_the_command_sweeps(plain, tmp_path, capsys):
    import tomli_w

    from fullpipe.__main__ import main

    file = tmp_path / "plain.toml"
    file.write_text(tomli_w.dumps(plain))
    args = [str(file), "--axis", "flow.main.stack=reno,aimd(increase=2, decrease=0.3)", "--batch", "1"]
    assert main([*args, "--out", str(tmp_path / "s")]) == 0
    assert "2 files in" in capsys.readouterr().err
    assert len(list((tmp_path / "s").glob("*.parquet"))) == 2
    assert main(["one-drop", "--axis", "path.rtt", "--out", str(tmp_path / "t")]) == 2
    assert "KEY=VALUE is expected" in capsys.readouterr().err
    assert main(["one-dro", "--out", str(tmp_path / "u")]) == 2
    assert "did you mean" in capsys.readouterr().err


def test_nothing_to_sweep_is_refused(plain, tmp_path):
    for axes, more in [({"path.rtt": []}, {}), ({"path.rtt": "20ms"}, {}), (AXES, {"batch": 0})]:
        with pytest.raises(fp.ScenarioError, match="expected|at least 1"):
            fp.sweep(plain, axes, out=tmp_path, **more)


def test_a_scenario_is_its_file_as_it_was(plain, tmp_path, monkeypatch):
    import tomli_w

    file = tmp_path / "plain.toml"
    file.write_text(tomli_w.dumps(plain))
    monkeypatch.chdir(tmp_path)
    scenario = fp.Scenario("plain.toml")
    file.write_text("name = 5")
    monkeypatch.chdir("/")
    assert scenario.set({"path.rtt": "30ms"}).name == "short"
