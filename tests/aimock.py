"""A server that no one here wrote: ``@copilotkit/aimock``, which speaks the providers' protocols.

It is installed from npm once, into the user's cache, and runs in a process of its own on loopback.
Where there is no Node or the package cannot be had, what needs it is skipped and says why.

Name this module in ``pytest_plugins`` to have its fixtures.
"""

import json
import os
import re
import shutil
import subprocess
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import ProxyHandler, Request, build_opener

import pytest

VERSION = "1.43.0"
INTEGRITY = (
    "sha512-V8D8cjSMtAR4rHaD2ulp3DR/ZguXQjDNOqwKDNvjb/"
    "OJL/KR1I0SDf5xpRCd+TYKjhmf9fM8Xpg3QBKPmV9Kmw=="
)
"""Of the package that was looked at; another under the same version is not run."""

_LISTENING = re.compile(r"http://127\.0\.0\.1:(\d+)")
_OPEN = build_opener(ProxyHandler({})).open

Fixture = Mapping[str, Any]


class Unavailable(Exception):
    """The server cannot be started on this machine."""


class AIMock:
    """The running server: fixtures in, requests out."""

    def __init__(self, origin: str) -> None:
        self.origin = origin

    @property
    def url(self) -> str:
        """The base URL for clients of OpenAI's protocol."""
        return f"{self.origin}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL for clients of Anthropic's protocol."""
        return self.origin

    @property
    def google_url(self) -> str:
        """The base URL for clients of Gemini's protocol."""
        return self.origin

    def load(self, *fixtures: Fixture) -> None:
        """Add fixtures, each a ``match`` and a ``response``; the first that matches is served.

        ``match`` may hold ``model``, ``systemMessage``, ``userMessage`` (parts of the text),
        ``responseFormat`` (``json_schema``), ``toolName`` and ``sequenceIndex``; ``response``
        holds ``content``, or ``error`` and ``status``.
        """
        self._control("POST", "fixtures", {"fixtures": list(fixtures)})

    def say(self, content: str, **match: Any) -> None:
        """Reply this to every request that matches."""
        self.load({"match": match, "response": {"content": content}})

    def chaos(self, **rates: float) -> None:
        """Fail this share of requests: ``rateLimitRate``, ``malformedRate``, ``disconnectRate``."""
        self._control("POST", "chaos", rates)

    def requests(self) -> list[Mapping[str, Any]]:
        """Every request since the last reset, as the journal has it, the oldest first."""
        entries: list[Mapping[str, Any]] = self._control("GET", "journal")
        return entries

    def reset(self) -> None:
        """Forget fixtures, failures and requests."""
        self._control("POST", "reset", {})
        self._control("DELETE", "chaos")

    def _control(self, method: str, what: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        address = f"{self.origin}/__aimock/{what}"
        request = Request(address, data, headers, method=method)  # noqa: S310 - loopback
        with _OPEN(request, timeout=10) as response:
            text = response.read()
        return json.loads(text) if text else None


@contextmanager
def running() -> Iterator[AIMock]:
    """Run the server; its process ends with the block.

    Raises
    ------
    Unavailable
        With the reason.
    """
    script = _installed()
    process = subprocess.Popen(  # noqa: S603 - what was just installed
        [_tool("node"), script, "--port", "0", "--fixtures", _no_fixtures(script)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield AIMock(_origin(process))
        finally:
            process.kill()


def _origin(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if found := _LISTENING.search(line):
            Thread(target=deque, args=(process.stdout, 0), daemon=True).start()  # reads it dry
            return f"http://127.0.0.1:{found[1]}"
    raise Unavailable(f"aimock ended before it listened: {''.join(said)[-500:]}")


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise Unavailable(f"{name} is not installed; aimock needs Node 20 or later")
    return path


def _installed() -> Path:
    """Install the server unless it is there; whole or not at all, whoever else does the same."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "witan-tests" / f"aimock-{VERSION}"
    script = home / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if script.exists():
        return script
    part = home.with_name(f"{home.name}.{os.getpid()}.part")
    part.mkdir(parents=True, exist_ok=True)
    try:
        _install(part)
        with suppress(OSError):  # another run was faster
            part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return script


def _install(place: Path) -> None:
    """Have npm fetch the package, whose own scripts are not run."""
    fetch = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--fetch-retries=1"]
    package = f"@copilotkit/aimock@{VERSION}"
    try:
        subprocess.run(  # noqa: S603 - a package and a version that stand above
            [_tool("npm"), "install", "--prefix", str(place), *fetch, package],
            check=True,
            capture_output=True,
            text=True,
            timeout=120,
        )
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"npm cannot install aimock: {error.stderr[-500:]}") from error
    except subprocess.TimeoutExpired as error:
        raise Unavailable("npm did not install aimock within two minutes") from error
    lock = json.loads((place / "node_modules" / ".package-lock.json").read_text(encoding="utf-8"))
    if lock["packages"]["node_modules/@copilotkit/aimock"]["integrity"] != INTEGRITY:
        raise Unavailable(f"npm brought another aimock {VERSION} than the one that is known")


def _no_fixtures(script: Path) -> Path:
    """The file of fixtures that the server wants to be named, with none in it."""
    path = script.parents[4] / "none.json"
    path.write_text('{"fixtures": []}', encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def aimock_process() -> Iterator[AIMock]:
    """One server for the whole run."""
    try:
        with running() as server:
            yield server
    except Unavailable as reason:
        pytest.skip(str(reason))


@pytest.fixture
def aimock(aimock_process: AIMock) -> Iterator[AIMock]:
    """The server, without fixtures or failures."""
    aimock_process.reset()
    yield aimock_process
    aimock_process.reset()
