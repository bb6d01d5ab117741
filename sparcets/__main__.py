"""The command ``sparcets``: a user error prints one line on stderr and exits with code 2."""

from __future__ import annotations

import sys

from sparcets.interrupts import INTERRUPTED, Interruption

TYPE_CHECKING = False  # until Ctrl-C is handled, as little as possible is imported
if TYPE_CHECKING:
    from collections.abc import Sequence

RESUMABLE = ("benchmark", "reproduce")


def command() -> None:
    """Run the command line as a process: Ctrl-C ends it within seconds, with one line and exit code 130."""
    interruption = Interruption(f"sparcets: {_stopped(sys.argv[1:])}")
    try:
        interruption.install()
        code = _run(sys.argv[1:])
        if interruption.requested:  # but somebody caught the exception
            interruption.end()
        interruption.close()
    except BaseException:
        if interruption.requested:
            interruption.end()
        raise
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _print_error(_stopped(arguments), INTERRUPTED)


def _run(arguments: Sequence[str]) -> int:
    import logging
    import os

    import typer

    from sparcets.cli.main import app
    from sparcets.errors import SparcetsError

    debug = "--debug" in arguments  # accepted anywhere on the line
    arguments = [a for a in arguments if a != "--debug"]
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format="%(message)s", stream=sys.stderr)
    if not sys.stderr.isatty():  # no progress bar is drawn, so log messages show the progress of long runs
        logging.getLogger("sparcets.experiments.benchmark").setLevel(logging.INFO)
    usage_error: type[Exception] = typer.BadParameter.__bases__[0]  # the base of all, which has no public name
    try:
        code = app(args=arguments or ["--help"], prog_name="sparcets", standalone_mode=False)
        sys.stdout.flush()
        if code == INTERRUPTED:  # some versions of typer report Ctrl-C as an exit code, others raise
            raise KeyboardInterrupt
        return code if isinstance(code, int) else 0
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort as abort:
        raise KeyboardInterrupt from abort
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


def _stopped(arguments: Sequence[str]) -> str:
    command = next((a for a in arguments if not a.startswith("-")), "")
    finished = "runs" if command in RESUMABLE else "shards" if command == "explain" and "--queries" in arguments else ""
    kept = f"; finished {finished} are kept, run the same command again to continue" if finished else ""
    return f"stopped{kept}"


def _print_error(message: str, code: int) -> int:
    if message:  # empty if a command without subcommand has printed its help
        sys.stderr.write(f"sparcets: {' '.join(message.split())}\n")
    return code


if __name__ == "__main__":
    command()
