"""The command ``fullpipe`` that the wheel brings along."""

import os
import sys
from pathlib import Path


def main() -> None:
    """Becomes the command."""
    program = Path(__file__).with_name("bin") / "fullpipe"
    if not program.exists():
        sys.exit(
            "error: this wheel was built without the command\n"
            "  hint: `make wheel` builds both, `cargo install --locked --path crates/cli` the "
            "command"
        )
    # What the command hands over to Python (`sweep`) is for this one, in PATH or not.
    os.environ.setdefault("FULLPIPE_PYTHON", sys.executable)
    os.execv(program, [str(program), *sys.argv[1:]])
