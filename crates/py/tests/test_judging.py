"""Expectations in wrong worlds, results side by side."""

import json
import subprocess

import pytest

import fullpipe as fp


def test_an_expectation_that_cannot_fail_is_found(short):
    short["expect"].append({"metric": "goodput_mbps", "at_least": 0, "source": "nothing"})
    found = fp.falsify(short)
    assert not found.passed and len(found.toothless) == 1 and len(found.expectations) == 2
    assert found.expectations["caught"][0] >= 1 and found.expectations["caught"][1] == 0
    assert set(found.worlds["effect"]) <= {"caught", "missed", "dead"}
    assert "can fail nowhere" in found._repr_html_()
    quick = fp.falsify(fp.Scenario(short), quick=True)
    assert "untried" in set(quick.worlds["effect"]) or len(quick.worlds) == len(found.worlds)
    # A world of the file in which nothing is another one cannot be noticed.
    del short["expect"][1]
    same = {"flow.main.stack": short["flow"][0]["stack"]}
    short["negative"] = [{"about": "the same", "set": same}]
    found = fp.falsify(short)
    assert not found.passed and found.unnoticed == ["the same"] and not found.toothless
    del short["negative"]
    assert fp.falsify(short).passed
    del short["expect"]
    with pytest.raises(fp.ScenarioError, match="expects nothing"):
        fp.falsify(short)


def test_results_are_compared_run_by_run(short, result, tmp_path):
    same = fp.compare(result, fp.run(short))
    assert same.agree and set(same.rows["verdict"]) == {"same"} and not same.missing
    assert "no number differs" in same._repr_html_()
    slower = fp.run(short, set={"path.buffer": "2 packets"}, out=tmp_path / "b")
    other = fp.compare(result, tmp_path / "b")
    assert not other.agree
    (row,) = [
        r for r in other.rows.rows()
        if r["metric"] == "goodput_mbps" and r["path.rtt"] == "20ms" and r["of"] == "main"
    ]  # fmt: skip
    a, b = (r.cases[1].flows[0]["goodput_mbps"] for r in (result, slower))
    assert (row["a"], row["b"]) == pytest.approx((a, b))
    assert row["relative"] == pytest.approx((b - a) / abs(a))
    assert fp.compare(result, slower, metrics=["goodput_mbps"], threshold=0.9).agree
    for more in ({"threshold": float("nan")}, {"thresholds": {"goodput_mbps": -1}}):
        with pytest.raises(fp.ScenarioError, match="a threshold is a part from 0 on"):
            fp.compare(result, slower, **more)
    with pytest.raises(fp.ScenarioError, match="no metric `godput`"):
        fp.compare(result, slower, metrics=["godput"])
