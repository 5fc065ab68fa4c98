"""Tables, as everybody else reads them."""

import numpy as np
import pytest

import fullpipe as fp


def test_quantities_are_numbers_too(result):
    assert result.runs["path.rtt"].tolist() == ["10ms", "10ms", "20ms", "20ms"]
    assert result.runs["path.rtt_s"].tolist() == [0.01, 0.01, 0.02, 0.02]


def test_what_is_undefined_is_nan(result):
    completion = result.runs["completion_time_s"]
    assert completion.dtype == np.float64 and np.isnan(completion).all()


def test_a_column_that_is_not_there_is_told(result):
    near = "no column 'godput_mbps'; did you mean 'goodput_mbps'.*there are case, path.rtt"
    with pytest.raises(KeyError, match=near):
        result.runs["godput_mbps"]


def test_arrow_readers_take_a_table_as_it_is(result):
    pa = pytest.importorskip("pyarrow")
    table = pa.table(result.runs)
    assert table.num_rows == 4
    assert table["goodput_mbps"].to_pylist() == result.runs["goodput_mbps"].tolist()
    assert table["completion_time_s"].null_count == 4, "null, not NaN"
    # The stream may be asked for again.
    assert pa.table(result.runs) == table


def test_polars_and_duckdb_and_pandas_agree(result):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    duckdb, pandas = pytest.importorskip("duckdb"), pytest.importorskip("pandas")
    mean = result.runs["goodput_mbps"].mean()
    assert pl.DataFrame(result.runs)["goodput_mbps"].mean() == pytest.approx(mean)
    table = pa.table(result.runs)
    assert duckdb.sql('select avg(goodput_mbps) from "table"').fetchall()[0][0] == pytest.approx(mean)
    assert isinstance(table.to_pandas(), pandas.DataFrame)
    assert table.to_pandas()["goodput_mbps"].mean() == pytest.approx(mean)


def test_a_column_may_be_written_to(result):
    time = result.trace()["time_s"]
    time -= time[0]
    assert time[0] == 0 and result.runs["seed"].flags.writeable


def test_a_trace_is_over_time(result):
    trace = result.trace(case=1)
    time = trace["time_s"]
    assert (np.diff(time) > 0).all() and time[-1] <= 2.0
    assert set(trace["flow"]) == {"main"} and (trace["cwnd"] > 0).all()
    with pytest.raises(IndexError, match="cases 0 to 1"):
        result.trace(case=2)
    for seed in (-1, 99):
        with pytest.raises(IndexError, match=r"case 0 has the seeds \[1, 2\]"):
            result.trace(seed=seed)


def test_no_trace_says_how_to_get_one(short):
    del short["measure"]
    short["duration"] = "1s"
    result = fp.run({**short, "measure": {"trace": "off"}})
    with pytest.raises(fp.FullpipeError, match='set={"measure.trace"'):
        result.trace()


def test_a_notebook_escapes(result):
    html = result._repr_html_()
    assert html.startswith("<b>short</b>") and "<td>10ms</td>" in html
    table = fp.Table(result._native.runs())
    assert "<script" not in table._repr_html_()


def test_the_law_of_reno_is_one_segment_and_a_half():
    law = fp.law("reno", [100.0, 1000.0])
    assert law["increase_last"] == pytest.approx([1, 1], rel=0.02)
    assert law["decrease"] == pytest.approx([0.5, 0.5])
    assert len(fp.law("reno", (w for w in (100.0, 1000.0)))) == 2
    with pytest.raises(fp.ScenarioError, match="did you mean `cubic`"):
        fp.law("cubik")


def test_a_law_without_a_cycle_says_why():
    with pytest.warns(fp.ScenarioWarning, match="westwood, window 100: a loss takes nothing off"):
        law = fp.law("westwood", [100.0])
    assert np.isnan(law["decrease"]).all()


def test_a_table_is_a_mapping_of_columns_and_no_sequence(result):
    assert list(dict(result.runs)) == list(result.runs.keys()) == result.runs.columns
    with pytest.raises(TypeError, match=r"has `columns` .* and `rows\(\)`"):
        list(result.runs)
