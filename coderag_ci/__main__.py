"""The start of the command, also as ``python -m coderag_ci``: nothing is imported yet."""

from __future__ import annotations

import os
import signal

_SAID = {signal.SIGINT: b"coderag-ci: interrupted\n", signal.SIGTERM: b"coderag-ci: terminated\n"}


def main() -> None:
    """Load the command line and run it; a signal until then ends the process with one line."""
    before = {number: signal.getsignal(number) for number in _SAID}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:  # as under nohup
            signal.signal(number, _leave)
    from coderag_ci import cli

    for number, handler in before.items():
        signal.signal(number, handler)
    cli.main()


def _leave(number: int, _: object) -> None:
    os.write(2, _SAID[signal.Signals(number)])
    os._exit(128 + number)


if __name__ == "__main__":
    main()
