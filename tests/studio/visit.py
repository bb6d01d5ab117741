"""The page as the tests of the browser visit it."""

import contextlib
import json
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tests.http_api import started

from .conftest import API

WAIT = 120_000  # milliseconds; training takes a while on a busy machine
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}


class Studio(NamedTuple):
    """A studio that runs: its address, the address for one login that it printed, its token and its process."""

    address: str
    printed: str
    token: str
    process: Any


@contextlib.contextmanager
def running(workspace, *options):
    """Start the studio with its command."""
    with started("studio", "--port", "0", "--workspace", str(workspace), *options) as (process, said):
        printed, token = said["studio"], (workspace / "token").read_text().strip()
        yield Studio(printed.partition("/login#")[0], printed, token, process)


class Visit:
    """A page that is logged in, and records console errors and the hosts of its requests."""

    def __init__(self, browser, studio, size="desktop", **options):
        width, height = SIZES[size]
        touch = size == "phone"
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, has_touch=touch, is_mobile=touch, **options
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(WAIT)
        self.errors = []
        self.hosts = set()
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        self.address = studio.address
        self._headers = {"Authorization": f"Bearer {studio.token}"}
        self.page.goto(f"{self.address}/login")
        self.page.get_by_label("Token").fill(studio.token)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector("body[data-ready]")

    def get(self, path):
        """Return what the API says, whatever the page knows."""
        return self.page.request.get(f"{self.address}{API}{path}", headers=self._headers).json()

    def post(self, path, data):
        """Return what the API answers to a request."""
        return self.page.request.post(f"{self.address}{API}{path}", data=data, headers=self._headers).json()

    def open(self, **state):
        """Load the page with a state."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/#{json.dumps(state)}" if state else self.address)
        self.page.wait_for_selector("body[data-ready]")
        return self.page

    def count(self, what="drawn"):
        """Return how often the figure, the curve or a group was drawn."""
        return int(self.page.locator("body").get_attribute(f"data-{what}") or 0)

    def after(self, action, what="drawn"):
        """Perform an action and wait until the figure, the curve or a group is drawn again."""
        before = self.count(what)
        action()
        for _ in range(WAIT // 20):
            if self.count(what) > before:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"the {what} was not drawn again")

    def state(self):
        """Return the state in the URL."""
        return json.loads(unquote(urlsplit(self.page.url).fragment) or "{}")

    def answer(self):
        """Return the API's first answer for the state of the page."""
        return self.respond()["answers"][0]

    def respond(self):
        """Return the API's response for the state of the page."""
        state = self.state()
        rules = {k: state[k] for k in ("immutable", "frozen", "ranges", "direction") if k in state}
        if "frozenFeatures" in state:
            rules["frozen_features"] = state["frozenFeatures"]
        request = {
            "explainer": state["explainer"],
            "rows": [state["row"]],
            "target": state.get("target"),
            "sparsity": state.get("sparsity"),
            "constraints": rules,
            "strokes": state.get("strokes", []),
            "find_rest": state.get("findRest", False),
        }
        return self.post("/explanations", request)
