"""What the methods of a :class:`Controller` are told; their types, for annotations:

    def on_round(self, round: fp.events.Round) -> None: ...
"""

from ._native import Ack, Congestion, Lost, Round, Start, Timeout

__all__ = ["Ack", "Congestion", "Lost", "Round", "Start", "Timeout"]
