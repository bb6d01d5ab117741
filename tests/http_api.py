"""What the tests of studio and server share: their start, the shape of errors, requests made from a description."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress

from hypothesis import HealthCheck, Phase, assume, given, settings, strategies
from hypothesis.errors import Unsatisfiable

EXAMPLES = int(os.environ.get("SPARCETS_EXAMPLES", "12"))  # valid requests per operation, and half as many invalid ones


@contextmanager
def started(*arguments, **how):
    """Run a command that serves until it is interrupted; yield its process, and what it says at its start, by name."""
    command = [sys.executable, "-m", "sparcets", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **how)
    said = {}
    for line in process.stderr:
        name, _, value = line.strip().partition(": ")
        said[name] = value
        if "Ctrl-C" in line:
            break
    try:
        yield process, said
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(120)
        finally:
            process.kill()
            process.stderr.close()


def error(response, status):
    """Check status and shape of an error response, and return its content."""
    assert response.status_code == status, response.text
    body = response.json()
    assert set(body) == {"error"} and set(body["error"]) == {"code", "message", "details"}
    assert body["error"]["message"].strip() and "Traceback" not in response.text
    return body["error"]


def call(operation, mode, checks, headers, use):
    """Call one operation with generated requests, check every response, and return the status codes.

    Parameters
    ----------
    operation, mode, checks
        Those of schemathesis.
    headers
        Sent with every request.
    use
        Changes a request to name things that exist; called for most of the valid ones.
    """
    from schemathesis import GenerationMode

    seen = set()

    @settings(
        max_examples=EXAMPLES if mode == GenerationMode.POSITIVE else EXAMPLES // 2,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode), existing=strategies.sampled_from([True] * 3 + [False]))
    def check(case, existing):
        if existing and mode == GenerationMode.POSITIVE:
            use(case)
        # Parameters that the description does not contain are ignored, as is usual: such a request is not invalid.
        assume(set(case.query or {}) <= {parameter.name for parameter in operation.query})
        response = case.call(headers=headers)
        seen.add(response.status_code)
        case.validate_response(response, checks=checks)

    with suppress(Unsatisfiable):  # an operation without parameters has no invalid requests
        check()
    return seen


# A description does not contain which rows, classes and features exist: valid requests may get a 422 response.
SKIPPED_CHECKS = {"positive_data_acceptance"}


def statuses_of(app, address, valid, headers, use):
    """Call every operation that an application describes at an address; return the status codes by operation."""
    import schemathesis
    from schemathesis.checks import CHECKS

    mode = schemathesis.GenerationMode.POSITIVE if valid else schemathesis.GenerationMode.NEGATIVE
    checks = [check for check in CHECKS.get_all() if check.__name__ not in SKIPPED_CHECKS]
    statuses = {}
    for result in schemathesis.openapi.from_asgi(address, app, headers=headers).get_all_operations():
        operation = result.ok()
        statuses[operation.label] = call(operation, mode, checks, headers, use)
    every = set().union(*statuses.values())
    assert max(every) < 500 and (valid or 422 in every)
    return statuses
