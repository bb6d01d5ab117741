"""The command ``sparcets``: a user error prints one line on stderr and exits with code 2."""

from __future__ import annotations

import io
import os
import sys

from sparcets.interrupts import INTERRUPTED, Interruption

TYPE_CHECKING = False  # until Ctrl-C is handled, as little as possible is imported
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

RESUMABLE = ("benchmark", "reproduce")


def command() -> None:
    """Run the command line as a process: Ctrl-C ends it within seconds, with one line and exit code 130.

    What cannot be printed does not stop the work: stdout or stderr may be closed, full, or read by nobody.
    """
    stdout = _open_streams()
    interruption = Interruption(f"sparcets: {_stopped(sys.argv[1:])}")
    try:
        interruption.install()
        code = _run(sys.argv[1:])
        stdout.flush()
        if stdout.failure is not None and code == 0:
            # The reader (head, less) may close a pipe when it has seen enough; anything else is told.
            is_pipe = isinstance(stdout.failure, BrokenPipeError)
            code = 1 if is_pipe else _print_error(f"stdout cannot be written: {stdout.failure.strerror}.", 2)
        if interruption.requested:  # but somebody caught the exception
            interruption.end()
        interruption.close()
    except BaseException:
        if interruption.requested:
            interruption.end()
        raise
    sys.exit(code)


class _Output(io.TextIOWrapper):
    """Standard output or error that never raises: what it cannot write is dropped, and ``failure`` says why."""

    failure: OSError | None = None

    def write(self, text: str) -> int:
        """Write a text."""
        try:
            return super().write(text)
        except OSError as error:
            self._give_up(error)
            return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        try:
            super().flush()
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.failure = error
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self.fileno())  # also takes what is buffered still
        os.close(null)


def _open_streams() -> _Output:
    """Make stdout and stderr writable, whatever they are, and return stdout."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:  # closed: the next file that is opened would get its number, and what is printed
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
        if name == "stdin":
            continue
        encoding = "utf-8" if stream is None else stream.encoding
        # Bytes of file names that are no UTF-8 are printed as they are.
        errors = "backslashreplace" if name == "stderr" else "surrogateescape" if encoding == "utf-8" else "replace"
        binary: Any = open(number, "wb", closefd=False) if stream is None else stream.detach()  # noqa: SIM115
        lines, at_once = (False, False) if stream is None else (stream.line_buffering, stream.write_through)
        output = _Output(binary, encoding=encoding, errors=errors, line_buffering=lines, write_through=at_once)
        setattr(sys, name, output)
    return sys.stdout  # type: ignore[return-value]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return _print_error(_stopped(arguments), INTERRUPTED)


def _run(arguments: Sequence[str]) -> int:
    import logging
    import warnings

    import typer

    from sparcets.cli.main import app
    from sparcets.core.errors import ModelWarning, SparcetsError

    debug = "--debug" in arguments  # accepted anywhere on the line
    arguments = [a for a in arguments if a != "--debug"]
    logging.basicConfig(level=logging.INFO if debug else logging.WARNING, format="%(message)s", stream=sys.stderr)
    plain = warnings.showwarning

    def show(message: Any, category: type[Warning], *place: Any) -> None:
        if issubclass(category, ModelWarning):
            _print_error(str(message), 0)  # without a line of code: the user wrote none
        else:
            plain(message, category, *place)

    warnings.showwarning = show  # type: ignore[assignment]
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
    except SparcetsError as error:
        if debug:
            raise
        return _print_error(str(error), 2)
    finally:
        warnings.showwarning = plain


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
