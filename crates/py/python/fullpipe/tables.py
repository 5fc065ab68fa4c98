"""Tables: columns as NumPy arrays, and the whole for whoever reads Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from . import _native

if TYPE_CHECKING:
    import numpy as np

#: Rows that a notebook shows.
SHOWN = 20


class Table:
    """Named columns of one length.

    Anything that takes the Arrow PyCapsule protocol takes a table as it is:
    ``pandas.DataFrame.from_arrow(table)`` (pandas 3) or ``pyarrow.table(table).to_pandas()``,
    ``polars.DataFrame(table)``, ``duckdb.sql("... from table")`` on ``pyarrow.table(table)``.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """Names, in order."""
        return self._native.columns

    def __len__(self) -> int:
        return len(self._native)

    def keys(self) -> list[str]:
        """Names, in order, as those of a mapping: ``dict(table)`` has the columns."""
        return self.columns

    def __iter__(self) -> NoReturn:
        # Names alone would make a frame of names in pandas, which lists what it is given.
        raise TypeError(
            "a table has `columns` (names) and `rows()` (dicts) to iterate over; "
            "dict(table) has its columns, pandas.DataFrame.from_arrow(table) is a frame"
        )

    def __contains__(self, name: object) -> bool:
        return name in self.columns

    def __getitem__(self, name: str) -> np.ndarray[Any, Any]:
        """A column: float64 with NaN for what is undefined, int64, or text."""
        import numpy as np

        try:
            kind, values = self._native.raw(name)
        except KeyError:
            raise unknown_column(name, self.columns) from None
        if isinstance(values, bytes):
            # Of a copy, which may be written to.
            return np.frombuffer(bytearray(values), dtype=f"<{kind}")
        return np.array(values, dtype=object)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as lists; NaN stays NaN."""
        return {name: self[name].tolist() for name in self.columns}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Row by row, each as a dict."""
        columns = self.to_dict()
        for values in zip(*columns.values(), strict=True):
            yield dict(zip(columns, values, strict=True))

    def with_numbers(self, name: str, values: Sequence[float | None]) -> Table:
        """This table with a column of numbers more."""
        return Table(self._native.with_numbers(name, values))

    def __reduce__(self) -> tuple[Any, ...]:
        """Other processes get it as Parquet."""
        return _unpacked, (self._native.to_parquet(),)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<fullpipe.Table: {len(self)} rows, {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        filled = [c for c in self.columns if _has_values(self[c])]
        head = "".join(f"<th>{escape(c)}</th>" for c in filled)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(_shown(row[c]))}</td>" for c in filled) + "</tr>"
            for row in islice(self.rows(), SHOWN)
        )
        more = f"<p>{len(self)} rows, {SHOWN} of them shown</p>" if len(self) > SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def unknown_column(name: str, columns: Sequence[str]) -> KeyError:
    """What is raised where a table has no such column."""
    near = get_close_matches(name, columns, 3, 0.6)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    return KeyError(f"no column {name!r}; {hint}there are {', '.join(columns)}")


def _unpacked(parquet: bytes) -> Table:
    return Table(_native.Table.from_parquet(parquet))


def _has_values(values: np.ndarray[Any, Any]) -> bool:
    return values.dtype.kind != "f" or bool((values == values).any())


def _shown(value: object) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.6g}"
    return str(value)
