"""The command ``sparcets``: a user's mistake is one line on stderr and exit code 2."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from sparcets.errors import SparcetsError

STOPPED = 130  # exit code after Ctrl-C
RESUMABLE = ("benchmark", "reproduce")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    import typer

    from sparcets.cli.main import app

    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments  # accepted anywhere on the line
    arguments = [a for a in arguments if a != "--debug"]
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format="%(message)s", stream=sys.stderr)
    if not sys.stderr.isatty():  # no bar is drawn there, so words tell that long work is going on
        logging.getLogger("sparcets.benchmark").setLevel(logging.INFO)
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]  # typer's own, or click's in older versions
    try:
        code = app(args=arguments or ["--help"], prog_name="sparcets", standalone_mode=False)
        # Ctrl-C is told as an exit code by some versions of typer, and raised by others.
        return _stopped(arguments) if code == STOPPED else code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _stopped(arguments)
    except usage_error as error:
        return _complain(str(error.format_message()) if hasattr(error, "format_message") else str(error), 2)
    except BrokenPipeError:
        # The reader (head, less) has gone; point stdout elsewhere so that closing it raises nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SparcetsError as error:
        if debug:
            raise
        return _complain(str(error), 2)


def _stopped(arguments: Sequence[str]) -> int:
    command = next((a for a in arguments if not a.startswith("-")), "")
    kept = "; finished runs are kept, run the same command again to go on" if command in RESUMABLE else ""
    return _complain(f"stopped{kept}", STOPPED)


def _complain(message: str, code: int) -> int:
    if message:  # empty where a command without its subcommand has printed its help
        sys.stderr.write(f"sparcets: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
