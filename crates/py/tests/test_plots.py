"""Figures."""

import numpy as np
import pytest

import fullpipe as fp

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from fullpipe import plot  # noqa: E402


def test_a_window_is_drawn_at_the_width_asked_for(result, tmp_path):
    fig = plot.window(result, width=84)
    assert fig.get_size_inches()[0] * 25.4 == pytest.approx(84)
    (line,) = fig.axes[0].lines
    assert line.get_ydata().tolist() == result.trace()["cwnd"].tolist()
    fig.savefig(tmp_path / "w.pdf")
    assert (tmp_path / "w.pdf").read_bytes().startswith(b"%PDF")


def test_means_stand_at_the_numbers_of_the_axis(result):
    fig = plot.against(result, "goodput_mbps", "path.rtt")
    x, y = fig.axes[0].lines[0].get_data()
    assert x.tolist() == [0.01, 0.02]
    means = [case.flows[0]["goodput_mbps"] for case in result.cases]
    assert y.tolist() == pytest.approx(means)
    with pytest.raises(fp.FullpipeError, match="`flow` has no numbers"):
        plot.against(result, "goodput_mbps", "flow")


def test_an_interval_is_student_s():
    scipy_says = 12.706204736 * np.std([1, 3], ddof=1) / np.sqrt(2)
    assert plot._half_width(np.array([1.0, 3.0])) == pytest.approx(scipy_says, rel=1e-4)
    assert plot._half_width(np.array([1.0])) == 0


def test_reno_s_response_is_the_inverse_square_root():
    fig = plot.response(["reno"], points=4)
    p, w = (np.array(a) for a in fig.axes[0].lines[0].get_data())
    # Mathis et al. 1997: w = sqrt(3/2) / sqrt(p).
    assert w[1:] * np.sqrt(p[1:]) == pytest.approx(np.sqrt(1.5), rel=0.05)
