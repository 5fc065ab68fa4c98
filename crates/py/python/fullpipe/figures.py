"""The class of all figures; imported with the first of them, since it needs matplotlib."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from .plot import style


class Styled(Figure):
    """A figure that is saved as it was drawn: how text is written is decided then."""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """As matplotlib's, with :data:`fullpipe.plot.STYLE`."""
        with style():
            super().savefig(*args, **kwargs)
