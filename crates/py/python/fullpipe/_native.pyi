"""Types of the native module; see crates/py/src."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Literal, Self, final

__all__ = [
    "Ack",
    "Congestion",
    "Controller",
    "EnvironmentLacks",
    "FullpipeError",
    "Lost",
    "ResultDir",
    "Round",
    "Scenario",
    "ScenarioError",
    "Start",
    "Stop",
    "Table",
    "Timeout",
    "__version__",
    "built_in",
    "compared",
    "falsify",
    "fingerprint",
    "grounds",
    "hooks",
    "law",
    "quantity",
    "register",
    "run",
    "stacks",
    "swept",
    "text",
]
__version__: str

class FullpipeError(Exception): ...
class ScenarioError(FullpipeError): ...
class EnvironmentLacks(FullpipeError): ...

@final
class Table:
    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def raw(
        self, name: str
    ) -> tuple[Literal["f8", "i8"], bytes] | tuple[Literal["text"], list[str]]: ...
    def with_axes(self, names: Sequence[str]) -> Table: ...
    def with_numbers(self, name: str, values: Sequence[float | None]) -> Table: ...
    @staticmethod
    def of(
        columns: Sequence[tuple[str, Sequence[float | None] | Sequence[str]]],
    ) -> Table: ...
    def to_parquet(self) -> bytes: ...
    @staticmethod
    def from_parquet(bytes: bytes) -> Table: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Scenario:
    def __new__(
        cls,
        name: str,
        text: str | None = None,
        *,
        set: Sequence[tuple[str, str]] = ...,
        seed: int | None = None,
        repeat: int | None = None,
        quick: bool = False,
    ) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def seeds(self) -> list[int]: ...
    @property
    def warnings(self) -> list[str]: ...
    def cases(self) -> list[list[tuple[str, str]]]: ...

@final
class Stop:
    def __new__(cls) -> Self: ...
    def set(self) -> None: ...

class Controller:
    window: float
    ssthresh: float
    increase: float
    decrease: float
    pacing_rate_mbps: float | None
    @property
    def initial_window(self) -> float: ...
    @property
    def max_window(self) -> float: ...
    @property
    def mss(self) -> int: ...
    @property
    def slow_start_limit(self) -> float: ...
    @property
    def seed(self) -> int: ...

@final
class Start:
    """The connection is open."""

    @property
    def now(self) -> float:
        """Time of the run, seconds."""

    @property
    def srtt(self) -> float:
        """Smoothed RTT, seconds; zero before the first sample."""

@final
class Ack:
    """An ACK."""

    @property
    def now(self) -> float:
        """Time of the run, seconds."""

    @property
    def acked(self) -> int:
        """Segments newly acknowledged that had not been SACKed before."""

    @property
    def sacked(self) -> int:
        """Segments newly SACKed."""

    @property
    def delivered_now(self) -> int:
        """Both together: what this ACK says has arrived."""

    @property
    def lost(self) -> int:
        """Segments that it made the sender mark lost."""

    @property
    def acks(self) -> int:
        """ACK packets merged into it, at least 1."""

    @property
    def advanced(self) -> bool:
        """It moved the first unacknowledged segment."""

    @property
    def rtt(self) -> float | None:
        """RTT sample, seconds, if the ACK gives one."""

    @property
    def srtt(self) -> float:
        """Smoothed RTT, seconds; zero before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """Smallest RTT seen, seconds; none before the first sample."""

    @property
    def prior_flight(self) -> int:
        """Segments in the network before it."""

    @property
    def flight(self) -> int:
        """Segments in the network after it."""

    @property
    def delivered(self) -> int:
        """Segments delivered since the start, with those of this ACK."""

    @property
    def delivery_rate(self) -> float | None:
        """Segments per second, of a class with `reads_rate`, if there is a sample."""

    @property
    def cwnd_limited(self) -> bool:
        """The window was what held the sender back."""

    @property
    def app_limited(self) -> bool:
        """The application had nothing to send when the sample was taken."""

    @property
    def may_grow(self) -> bool:
        """A window may grow: the ACK advances, the window is the limit, no reduction is on."""

    @property
    def ece(self) -> bool:
        """The ACK echoes a mark (RFC 3168)."""

    @property
    def round(self) -> int:
        """Round trips since the start."""

    @property
    def round_start(self) -> bool:
        """It is the first of a new round trip."""

    @property
    def phase(self) -> str:
        """`open`, `disorder`, `cwr`, `recovery` or `loss`: the state of the sender."""

    @property
    def snd_una(self) -> int:
        """First unacknowledged segment, after it."""

    @property
    def snd_nxt(self) -> int:
        """Next new segment."""

@final
class Round:
    """What the ACKs of a round trip said, together."""

    @property
    def now(self) -> float:
        """Time of the run at its end, seconds."""

    @property
    def duration(self) -> float:
        """Length of the round, seconds."""

    @property
    def acks(self) -> int:
        """ACK packets."""

    @property
    def delivered_now(self) -> int:
        """Segments newly acknowledged or SACKed."""

    @property
    def lost(self) -> int:
        """Segments that its ACKs marked lost, not those that timers did."""

    @property
    def ece(self) -> int:
        """ACKs that echo a mark (RFC 3168)."""

    @property
    def rtt_min(self) -> float | None:
        """Smallest RTT sample, seconds; none without a sample."""

    @property
    def rtt(self) -> float | None:
        """Mean of the RTT samples, seconds."""

    @property
    def rtt_max(self) -> float | None:
        """Largest RTT sample, seconds."""

    @property
    def srtt(self) -> float:
        """Smoothed RTT, seconds; zero before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """Smallest RTT ever, seconds."""

    @property
    def flight(self) -> int:
        """Segments in the network at its end."""

    @property
    def cwnd_limited(self) -> bool:
        """The window was the limit at some ACK."""

    @property
    def app_limited(self) -> bool:
        """The application was the limit at some ACK."""

    @property
    def phase(self) -> str:
        """`open`, `disorder`, `cwr`, `recovery` or `loss`: the state of the sender."""

@final
class Congestion:
    """A sign of congestion."""

    @property
    def now(self) -> float:
        """Time of the run, seconds."""

    @property
    def kind(self) -> str:
        """`loss`, `ecn` (a mark) or `local-drop` (the own interface had no room)."""

    @property
    def first_in_window(self) -> bool:
        """False for a lost retransmission in a recovery that has reduced already."""

    @property
    def lost(self) -> int:
        """Segments marked lost so far."""

    @property
    def flight(self) -> int:
        """Segments outstanding before they were marked lost (RFC 5681 equation 4)."""

    @property
    def srtt(self) -> float:
        """Smoothed RTT, seconds; zero before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """Smallest RTT seen, seconds; none before the first sample."""

@final
class Lost:
    """A segment that was marked lost."""

    @property
    def now(self) -> float:
        """Time of the run, seconds."""

    @property
    def seq(self) -> int:
        """Number of the segment, from 0 on."""

    @property
    def tx_in_flight(self) -> int:
        """Segments in the network right after it was sent."""

    @property
    def lost(self) -> int:
        """Segments marked lost since then, this one with them."""

    @property
    def delivered(self) -> int:
        """Segments delivered since the start."""

@final
class Timeout:
    """The retransmission timer went off."""

    @property
    def now(self) -> float:
        """Time of the run, seconds."""

    @property
    def first(self) -> bool:
        """First time for this segment: only then the threshold changes."""

    @property
    def nested(self) -> bool:
        """In a recovery that may yet turn out to be for nothing."""

    @property
    def flight(self) -> int:
        """Segments outstanding."""

    @property
    def pipe(self) -> int:
        """Segments still taken to be in the network."""

    @property
    def srtt(self) -> float:
        """Smoothed RTT, seconds; zero before the first sample."""

    @property
    def min_rtt(self) -> float | None:
        """Smallest RTT seen, seconds; none before the first sample."""

@final
class ResultDir:
    def __new__(cls, path: str | PathLike[str]) -> Self: ...
    @property
    def path(self) -> Path: ...
    def json(self) -> str: ...
    def runs(self) -> Table: ...
    def links(self) -> Table: ...
    def series(self, case: int, seed: int, kind: str) -> Table | None: ...
    def trace(self, case: int, seed: int) -> Table | None: ...
    def report(self) -> Path: ...

def run(
    scenario: Scenario,
    out: str | PathLike[str],
    *,
    ground: str = "sim",
    jobs: int = 0,
    resume: bool = False,
    kernel: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> ResultDir: ...
def stacks() -> list[tuple[str, str, str]]: ...
def law(
    stack: str,
    windows: Sequence[float],
    *,
    rtt: str = "100ms",
    mss: int = 1448,
    hz: int = 250,
) -> tuple[Table, list[tuple[float, str]]]: ...
def text(name: str) -> str: ...
def hooks() -> list[str]: ...
def register(
    cls: type,
    name: str,
    about: str,
    fingerprint: str,
    params: Sequence[tuple[str, float, float, float]],
    defined: Sequence[str],
    variables: Sequence[str],
    owns_window: bool,
    reads_rate: bool,
    sets_rate: bool,
) -> None: ...
def falsify(
    scenario: Scenario,
    *,
    jobs: int = 0,
    first_failure: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> str: ...
def compared(
    a: ResultDir,
    b: ResultDir,
    threshold: float,
    thresholds: Mapping[str, float],
    names: Sequence[str],
    agreement_and_flagged: tuple[bool | None, bool],
) -> str: ...
def fingerprint(ground: str, kernel: str | None = None) -> str: ...
def grounds() -> list[tuple[str, str]]: ...
def quantity(text: str) -> tuple[float, str] | None: ...
def swept(
    base: Scenario,
    keys: Sequence[str],
    points: Sequence[Sequence[str]],
    *,
    first: int = 0,
    apart: Sequence[str] = ...,
    ground: str = "sim",
    kernel: str | None = None,
    stop: Stop | None = None,
) -> bytes: ...
def built_in() -> list[str]: ...
