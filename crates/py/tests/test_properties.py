"""What holds for any input."""

import math
import tomllib

from hypothesis import given
from hypothesis import strategies as st

import fullpipe as fp
from fullpipe.__main__ import _values
from fullpipe.scenarios import as_set, plain
from fullpipe.sweeping import Points

texts = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), max_size=8)
scalars = st.one_of(
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), inner, max_size=3),
    ),
    max_leaves=6,
)


@given(values)
def test_a_value_is_set_as_toml_that_reads_the_same(value):
    text = as_set(value)
    if isinstance(value, str):
        assert text == value
    else:
        assert tomllib.loads(f"x = {text}")["x"] == plain(value)


keys = st.one_of(
    st.sampled_from(["path.loss", "path.rtt", "duration", "flow.main.stack", "seeds", "path"]),
    texts,
    st.integers(),
    st.none(),
)
foreign = st.one_of(
    values,
    st.floats(),
    st.none(),
    st.binary(max_size=3),
    st.complex_numbers(),
    st.fractions(),
    st.timedeltas(),
    st.sets(st.integers(), max_size=2),
    st.just(object()),
    st.text(max_size=3),
)
PLAIN = {
    "name": "plain",
    "duration": "10ms",
    "path": {"rate": "1Mbit/s", "rtt": "5ms", "buffer": "1BDP"},
    "flow": [{"name": "main", "stack": "reno"}],
}


@given(keys, foreign)
def test_whatever_is_set_is_taken_or_refused(key, value):
    for scenario in (lambda: fp.Scenario(PLAIN, set={key: value}), lambda: fp.Scenario(PLAIN | {key: value})):
        try:
            assert scenario().cases
        except fp.FullpipeError:
            pass


@given(st.one_of(foreign, st.dictionaries(keys, foreign, max_size=2)), st.booleans())
def test_whatever_the_axes_are_they_are_taken_or_refused(matrix, partitioned):
    try:
        points = Points.of(matrix, ["path.rtt"] if partitioned else [])
        assert len(list(points)) >= 1
    except fp.FullpipeError:
        pass


axes = st.dictionaries(
    st.sampled_from(["a", "b", "c"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True),
    min_size=1,
)


@given(axes, st.integers(1, 7), st.data())
def test_tasks_hold_every_point_once_and_cross_no_partition(axes, batch, data):
    partition = data.draw(st.lists(st.sampled_from(sorted(axes)), unique=True))
    for matrix in (axes, fp.grid(axes)):
        points = Points.of(matrix, partition)
        parts = list(points.parts(batch))
        assert len(parts) == points.tasks(batch)
        rows = [dict(zip(points.keys, row)) for _, some in parts for row in some]
        key = lambda point: sorted(point.items())  # noqa: E731
        expected = [{k: str(v) for k, v in point.items()} for point in fp.grid(axes)]
        assert sorted(rows, key=key) == sorted(expected, key=key)
        assert [first for first, _ in parts] == [
            sum(len(some) for _, some in parts[:i]) for i in range(len(parts))
        ]
        for _, some in parts:
            assert len(some) <= batch
            assert all(len({row[points.keys.index(k)] for row in some}) == 1 for k in partition)


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e6), st.integers(1, 40), st.integers(0, 5), st.booleans())
def test_a_hypercube_fills_every_slice(low, ratio, n, seed, log):
    high = low * ratio
    given = (low, high, "log") if log else (low, high)
    points = [p["x"] for p in fp.latin_hypercube({"x": given}, n, seed=seed)]
    part = (lambda x: math.log(x / low) / math.log(ratio)) if log else (
        lambda x: (x - low) / (high - low)
    )
    # Values are written with nine digits: one at the edge of a slice may be across it.
    slices = sorted(part(x) * n for x in points)
    assert all(i - 1e-3 <= at <= i + 1 + 1e-3 for i, at in enumerate(slices))


items = st.from_regex(r"[a-z]{1,4}(\([a-z]=[0-9](,[a-z]=[0-9])?\))?", fullmatch=True)


@given(st.lists(items, min_size=1, max_size=5))
def test_values_are_split_at_the_commas_between_them(given):
    assert _values(", ".join(given)) == given
