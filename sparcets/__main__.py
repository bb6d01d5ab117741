"""The command ``sparcets``: a user error prints one line on stderr and exits with code 2."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from sparcets.errors import SparcetsError

INTERRUPTED = 130  # exit code after Ctrl-C
RESUMABLE = ("benchmark", "reproduce")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    import typer

    from sparcets.cli.main import app

    arguments = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in arguments  # accepted anywhere on the line
    arguments = [a for a in arguments if a != "--debug"]
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format="%(message)s", stream=sys.stderr)
    if not sys.stderr.isatty():  # no progress bar is drawn, so log messages show the progress of long runs
        logging.getLogger("sparcets.experiments.benchmark").setLevel(logging.INFO)
    usage_error: type[Exception] = typer.BadParameter.__bases__[
        0
    ]  # defined by typer itself, or by click in older versions
    try:
        code = app(args=arguments or ["--help"], prog_name="sparcets", standalone_mode=False)
        # Some versions of typer report Ctrl-C as an exit code, others raise.
        return _interrupted(arguments) if code == INTERRUPTED else code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except (typer.Abort, KeyboardInterrupt):
        return _interrupted(arguments)
    except usage_error as error:
        return _print_error(str(error.format_message()) if hasattr(error, "format_message") else str(error), 2)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe; redirect stdout so that closing it does not raise.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except SparcetsError as error:
        if debug:
            raise
        return _print_error(str(error), 2)


def _interrupted(arguments: Sequence[str]) -> int:
    command = next((a for a in arguments if not a.startswith("-")), "")
    kept = "; finished runs are kept, run the same command again to continue" if command in RESUMABLE else ""
    return _print_error(f"stopped{kept}", INTERRUPTED)


def _print_error(message: str, code: int) -> int:
    if message:  # empty if a command without subcommand has printed its help
        sys.stderr.write(f"sparcets: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
