"""The council behind a real nginx, configured as our example says."""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from pages import ROOT
from served import free_port, serving_process
from services import write_config

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
"""Where it is; None: nowhere."""

AROUND = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {site}
}}
"""


def _written(folder: Path, upstream: str, listen: str) -> Path:
    """Our example, but for addresses and certificates."""
    site = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    site = re.sub(r"^ *(listen|ssl_).*\n", "", site, flags=re.MULTILINE)
    site = site.replace("127.0.0.1:8717", upstream)
    site = site.replace("server_name", f"listen {listen};\n    server_name")
    user = "user root;" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(AROUND.format(folder=folder, user=user, site=site), encoding="utf-8")
    return file


def checked(folder: Path) -> str:
    """What nginx says of our example."""
    file = _written(folder, "127.0.0.1:8717", f"127.0.0.1:{free_port()}")
    assert NGINX is not None
    done = subprocess.run(  # noqa: S603 - nginx, and our own file
        [NGINX, "-t", "-c", file], capture_output=True, text=True, timeout=30, check=False
    )
    return done.stderr


@contextmanager
def proxied(url: str, folder: Path) -> Iterator[str]:
    """Put nginx before the server at this address; give where it listens, on all of 127.0.0.0/8."""
    port = free_port()
    file = _written(folder, url.removeprefix("http://"), str(port))
    assert NGINX is not None
    process = subprocess.Popen([NGINX, "-c", file], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        deadline = time.monotonic() + 20
        while True:
            with socket.socket() as asking:
                if asking.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, (folder / "error.log").read_text()
            assert time.monotonic() < deadline, "nginx did not start"
            time.sleep(0.02)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx")

TOKEN = "the-token-of-the-tests"  # noqa: S105 - of these tests alone

PUBLIC = {"Host": "council.example"}

QUESTION = {"question": "Is it so?"}


def behind(tmp_path, trusted="127.0.0.1", **stages):
    """A server that has a public URL, and believes these proxies."""
    environment = {
        "WITAN_TOKEN": TOKEN,
        "WITAN_SERVE_PUBLIC_URL": "https://council.example",
        "WITAN_SERVE_TRUSTED_PROXIES": trusted,
    }
    file = write_config(tmp_path, **stages)
    return serving_process("--config", file, "--no-history", cwd=tmp_path, environment=environment)


def client_of(url, address=None, **headers):
    """A client at an address of this machine, which calls the server by its public name."""
    transport = httpx2.HTTPTransport(local_address=address)
    headers = {**PUBLIC, "X-Api-Key": TOKEN, **headers}
    return httpx2.Client(base_url=url, headers=headers, transport=transport, timeout=30)


def guesses(url, address, n=25, **headers):
    """The statuses of so many guesses at a token, made from this address."""
    with client_of(url, address, **{"X-Api-Key": "wrong-but-long-enough", **headers}) as guessing:
        return [guessing.get("/api/profiles").status_code for _ in range(n)]


def test_nginx_takes_the_example(tmp_path):
    """Every directive is known, and where it may stand."""
    said = checked(tmp_path)

    assert "test is successful" in said, said
    assert "warn" not in said


@pytest.mark.slow
def test_what_happens_is_seen_when_it_happens(tmp_path):
    """An event passes within a moment, and the answer to it comes while the session goes on."""
    slow = [{"prefers": ["Ada says"], "seconds": 4}]
    with (
        behind(tmp_path, review=slow) as (url, _),
        proxied(url, tmp_path) as public,
        client_of(public) as client,
    ):
        session = client.post("/api/sessions", json=QUESTION).json()["session"]
        path, came = f"/api/sessions/{session}/events", {}
        with client.stream("GET", path) as response:
            for line in response.iter_lines():
                came.setdefault(line, time.monotonic())
                if line == "event: review_started":
                    under_way = client.get(f"/api/sessions/{session}").json()["under_way"]
        ended = came["event: end"]

    assert under_way
    assert ended - came["event: session_opened"] > 3
    assert ended - came["event: review_started"] > 3


@pytest.mark.slow
def test_a_page_of_its_public_name_may_ask(tmp_path):
    """By https, as the browser sees it; no other page may, and by no other name."""
    asked = {}
    with behind(tmp_path) as (url, _), proxied(url, tmp_path) as public:
        for origin in ("https://council.example", "https://elsewhere.example"):
            with client_of(public, Origin=origin) as client:
                asked[origin] = client.post("/api/plan", json=QUESTION).status_code
        with client_of(public, Host="elsewhere.example") as client:
            named = client.get("/api/profiles").status_code

    assert asked == {"https://council.example": 200, "https://elsewhere.example": 403}
    assert named == 403


@pytest.mark.slow
def test_what_is_too_long_is_refused_by_the_proxy(tmp_path):
    """Before it is passed on."""
    with (
        behind(tmp_path) as (url, _),
        proxied(url, tmp_path) as public,
        client_of(public) as client,
    ):
        response = client.post("/api/plan", json={"question": "x" * 5_000_000})

    assert response.status_code == 413


@pytest.mark.slow
class TestWhoAsks:
    """The address of whoever asks is what a trusted proxy says, and nobody else."""

    def test_a_trusted_proxy_is_believed(self, tmp_path):
        """One who guesses is slowed down, and nobody beside it."""
        with behind(tmp_path) as (url, _), proxied(url, tmp_path) as public:
            guesser = guesses(public, "127.0.0.2")
            other = guesses(public, "127.0.0.3", 1)

        assert guesser[-1] == 429
        assert other == [401]

    def test_who_says_to_be_somebody_else_stays_who_it_is(self, tmp_path):
        """The proxy says so in place of what its client says."""
        with behind(tmp_path) as (url, _), proxied(url, tmp_path) as public:
            guesses(public, "127.0.0.2")
            again = guesses(public, "127.0.0.2", 1, **{"X-Forwarded-For": "127.0.0.9"})

        assert again == [429]

    def test_a_proxy_that_is_not_trusted_is_not_believed(self, tmp_path):
        """All who come through it are one."""
        with behind(tmp_path, "192.0.2.1") as (url, _), proxied(url, tmp_path) as public:
            guesses(public, "127.0.0.2")
            other = guesses(public, "127.0.0.3", 1)

        assert other == [429]

    def test_a_client_without_a_proxy_is_not_believed(self, tmp_path):
        """It is what the connection says."""
        with behind(tmp_path, "192.0.2.1") as (url, _):
            for number in range(25):
                forged = {"X-Forwarded-For": f"198.51.100.{number}"}
                last = guesses(url, None, 1, **forged)

        assert last == [429]
