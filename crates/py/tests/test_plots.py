"""Figures."""

import pickle

import numpy as np
import pytest

import fullpipe as fp

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot  # noqa: E402

from fullpipe import plot  # noqa: E402


@pytest.fixture(autouse=True)
def closed():
    """Twenty open figures draw a warning."""
    yield
    pyplot.close("all")


def test_a_window_is_drawn_at_the_width_asked_for(result, tmp_path):
    fig = plot.window(result, width=84)
    assert fig.get_size_inches()[0] * 25.4 == pytest.approx(84)
    (line,) = fig.axes[0].lines
    assert line.get_ydata().tolist() == result.trace()["cwnd"].tolist()
    fig.savefig(tmp_path / "w.pdf")
    pdf = (tmp_path / "w.pdf").read_bytes()
    # TrueType: text that a reader can select and an editor change; Type 3 is not.
    assert pdf.startswith(b"%PDF") and b"/Type0" in pdf and b"/Type3" not in pdf
    fig.savefig(tmp_path / "w.svg")
    assert "window (segments)</text>" in (tmp_path / "w.svg").read_text()


def test_letters_have_the_size_asked_for_in_every_place(result):
    fig = plot.against(result, "goodput_mbps", "path.rtt", by="path.rtt")
    (axes,) = fig.axes
    texts = [axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_legend().texts]
    assert {t.get_fontsize() for t in texts} == {8.0}


@pytest.mark.filterwarnings("error")
def test_no_word_is_cut_and_no_line_behind_a_name(short):
    del short["expect"]
    stacks = ["reno", "cubic", "htcp", "scalable", "aimd(increase=2.5,decrease=0.25)"]
    axes = {"flow.main.stack": stacks, "path.rtt": ["10ms", "20ms"]}
    result = fp.run(fp.Scenario(short).matrix(axes))
    for figure in [
        lambda: result.plot.against("goodput_mbps", "path.rtt"),
        lambda: result.plot.distribution("goodput_mbps"),
        lambda: result.plot.matrix("aggregate_goodput_mbps", x="flow.main.stack", y="path.rtt"),
        lambda: result.plot.matrix("aggregate_goodput_mbps", x="path.rtt", y="flow.main.stack"),
        lambda: plot.response(stacks),
    ]:
        fig = figure()
        fig.draw_without_rendering()
        drawn = fig.get_tightbbox(fig.canvas.get_renderer())
        assert (drawn.min > -0.01).all() and (drawn.max < fig.get_size_inches() + 0.01).all()
        for axes in fig.axes:
            names = axes.get_legend()
            assert names is None or not names.get_window_extent().overlaps(axes.bbox)
            assert axes.bbox.height > 30


def test_throughput_is_that_of_the_samples(result):
    fig = result.plot.throughput(case=1)
    (line,) = fig.axes[0].lines
    samples = result.series("samples", 1)
    goodput = samples["goodput_mbps"].tolist()
    # Steps lead to their points: the first interval begins with the run.
    assert line.get_ydata().tolist() == [goodput[0], *goodput]
    assert line.get_xdata().tolist() == [0.0, *samples["time_s"].tolist()]


def test_a_matrix_has_a_mean_in_every_cell(result):
    fig = result.plot.matrix("goodput_mbps", x="path.rtt", y="stack")
    cells = fig.axes[0].images[0].get_array()
    means = [case.flows[0]["goodput_mbps"] for case in result.cases]
    assert cells.tolist() == [pytest.approx(means)]
    assert [t.get_text() for t in fig.axes[0].texts] == [f"{m:.4g}" for m in means]


def test_a_distribution_ends_at_one(result):
    fig = result.plot.distribution("goodput_mbps", by="path.rtt")
    for line in fig.axes[0].lines:
        assert line.get_ydata()[-1] == 1 and len(line.get_ydata()) == 3
    with pytest.raises(AttributeError, match="there are window, throughput"):
        _ = result.plot.windo


def test_means_stand_at_the_numbers_of_the_axis(result):
    fig = plot.against(result, "goodput_mbps", "path.rtt")
    x, y = fig.axes[0].lines[0].get_data()
    assert x.tolist() == [0.01, 0.02]
    means = [case.flows[0]["goodput_mbps"] for case in result.cases]
    assert y.tolist() == pytest.approx(means)
    with pytest.raises(fp.FullpipeError, match="`flow` has no numbers\n.*: path.rtt_s$"):
        plot.against(result, "goodput_mbps", "flow")
    with pytest.raises(KeyError, match="no column 'path.rt'; did you mean 'path.rtt'"):
        plot.against(result, "goodput_mbps", "path.rt", flow="main")


def test_a_mean_is_of_one_flow_and_one_case(short):
    del short["expect"]
    short = {**short, "flow": [*short["flow"], {"name": "other", "stack": "cubic"}]}
    two = fp.run(short)
    with pytest.raises(fp.FullpipeError, match="several of flow.*\n.*`flow='main'` chooses"):
        plot.against(two, "goodput_mbps", "path.rtt", by="path.rtt")
    fig = plot.against(two, "goodput_mbps", "path.rtt", flow="other")
    means = [case.flows[1]["goodput_mbps"] for case in two.cases]
    assert fig.axes[0].lines[0].get_data()[1].tolist() == pytest.approx(means)
    with pytest.raises(fp.FullpipeError, match="there are"):
        plot.matrix(two, "goodput_mbps", x="path.rtt", y="stack", flow="nobody")
    # Another axis is no chance either.
    both = fp.run(
        fp.Scenario(short).matrix({"path.rtt": ["10ms", "20ms"], "path.buffer": ["1BDP", "2BDP"]})
    )
    with pytest.raises(fp.FullpipeError, match="hint: draw it over `path.buffer`"):
        plot.against(both, "goodput_mbps", "path.rtt", flow="other")
    plot.against(both, "goodput_mbps", "path.rtt", by="path.buffer", flow="other")


def test_an_interval_is_student_s():
    scipy_says = 12.706204736 * np.std([1, 3], ddof=1) / np.sqrt(2)
    mean, half = plot.mean_and_half_width([1.0, float("nan"), 3.0])
    assert (mean, half) == (2, pytest.approx(scipy_says, rel=1e-4))
    assert plot.mean_and_half_width([1.0]) == (1, 0)


def test_a_seed_without_a_value_is_not_left_out(short):
    """Where five of six runs do not come back within two seconds the sixth is no mean."""
    del short["expect"]
    short = {
        **short,
        "traffic": [{"name": "p", "kind": "ping"}],
        "path": {**short["path"], "loss": 0.001},
        "matrix": {"path.rtt": ["10ms", "200ms"]},
    }
    result = fp.run(short, repeat=6)
    runs = result.runs
    own, known = runs["flow"] == "main", ~np.isnan(runs["recovery_time_s"])
    means = [case.flows[0]["recovery_time_s"] for case in result.cases]
    assert means[0] is not None and means[1] is None, means
    _, y = plot.against(result, "recovery_time_s", "path.rtt").axes[0].lines[0].get_data()
    assert y.tolist() == pytest.approx(means[:1])
    cells = result.plot.matrix("recovery_time_s", x="path.rtt", y="stack").axes[0].images[0]
    assert np.ma.filled(cells.get_array(), np.nan)[0].tolist() == pytest.approx(
        [means[0], np.nan], nan_ok=True
    )
    (line,) = result.plot.distribution("recovery_time_s").axes[0].lines
    lines = result.plot.distribution("rtt_ms.mean").axes[0].lines
    assert [line.get_label() for line in lines] == ["reno", "p"]
    part = (own & known).sum() / own.sum()
    assert part < 1 and line.get_ydata()[-1] == pytest.approx(part)


def test_reno_s_response_is_the_inverse_square_root():
    fig = plot.response(["reno"], points=4)
    p, w = (np.array(a) for a in fig.axes[0].lines[0].get_data())
    # Mathis et al. 1997: w = sqrt(3/2) / sqrt(p).
    assert w[1:] * np.sqrt(p[1:]) == pytest.approx(np.sqrt(1.5), rel=0.05)


def test_a_figure_goes_to_other_processes_and_keeps_its_style(result, tmp_path):
    again = pickle.loads(pickle.dumps(plot.window(result)))
    again.savefig(tmp_path / "w.svg")
    assert "window (segments)</text>" in (tmp_path / "w.svg").read_text()


@pytest.mark.filterwarnings("error")
def test_nothing_known_is_an_empty_figure(result):
    fig = plot.matrix(result, "completion_time_s", x="path.rtt", y="stack")
    assert {text.get_text() for text in fig.axes[0].texts} == {""}
    assert plot.distribution(result, "completion_time_s").axes[0].lines[:] == []
    assert len(plot.response("reno", points=2).axes[0].lines) == 1
