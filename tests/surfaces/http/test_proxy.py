"""The council behind a real nginx, configured by the example in `deploy`."""

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
from processes import run_program
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


def _write_config(folder: Path, upstream: str, listen: str) -> Path:
    """The example with other addresses and certificates."""
    site = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    site = re.sub(r"^ *(listen|ssl_).*\n", "", site, flags=re.MULTILINE)
    site = site.replace("127.0.0.1:8717", upstream)
    site = site.replace("server_name", f"listen {listen};\n    server_name")
    user = "user root;" if hasattr(os, "geteuid") and os.geteuid() == 0 else ""
    file = folder / "nginx.conf"
    file.write_text(AROUND.format(folder=folder, user=user, site=site), encoding="utf-8")
    return file


def check_config(folder: Path) -> str:
    """Nginx's report on the example."""
    file = _write_config(folder, "127.0.0.1:8717", f"127.0.0.1:{free_port()}")
    assert NGINX is not None
    done = run_program(NGINX, "-t", "-c", file)
    return done.stderr


@contextmanager
def proxy(url: str, folder: Path) -> Iterator[str]:
    """Start nginx before the server at this address, on all of 127.0.0.0/8."""
    port = free_port()
    file = _write_config(folder, url.removeprefix("http://"), str(port))
    assert NGINX is not None
    process = subprocess.Popen([NGINX, "-c", file], stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        deadline = time.monotonic() + 60
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
        process.wait(60)


pytestmark = pytest.mark.skipif(NGINX is None, reason="there is no nginx")

TOKEN = "the-token-of-the-tests"  # noqa: S105 - of these tests alone

PUBLIC = {"Host": "council.example"}

QUESTION = {"question": "Is it so?"}


def serve_behind(tmp_path, trusted="127.0.0.1", **stages):
    """A server with a public URL that trusts these proxies."""
    environment = {
        "WITAN_TOKEN": TOKEN,
        "WITAN_SERVE_PUBLIC_URL": "https://council.example",
        "WITAN_SERVE_TRUSTED_PROXIES": trusted,
    }
    file = write_config(tmp_path, **stages)
    return serving_process("--config", file, "--no-history", cwd=tmp_path, environment=environment)


def client_of(url, address=None, **headers):
    """A client at an address of this machine, using the public host name."""
    transport = httpx2.HTTPTransport(local_address=address)
    headers = {**PUBLIC, "X-Api-Key": TOKEN, **headers}
    return httpx2.Client(base_url=url, headers=headers, transport=transport, timeout=60)


def guess_tokens(url, address, n=25, **headers):
    """Statuses of several wrong tokens sent from this address."""
    with client_of(url, address, **{"X-Api-Key": "wrong-but-long-enough", **headers}) as guessing:
        return [guessing.get("/api/profiles").status_code for _ in range(n)]


def test_nginx_accepts_the_example(tmp_path):
    """Every directive is known and in a valid place."""
    said = check_config(tmp_path)

    assert "test is successful" in said, said
    assert "warn" not in said


@pytest.mark.slow
def test_events_pass_without_buffering(tmp_path):
    """An event arrives at once, while the session continues."""
    slow = [{"prefers": ["Ada says"], "seconds": 4}]
    with (
        serve_behind(tmp_path, review=slow) as (url, _),
        proxy(url, tmp_path) as public,
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
def test_the_public_origin_is_accepted(tmp_path):
    """Over https; other origins and host names are refused."""
    asked = {}
    with serve_behind(tmp_path) as (url, _), proxy(url, tmp_path) as public:
        for origin in ("https://council.example", "https://elsewhere.example"):
            with client_of(public, Origin=origin) as client:
                asked[origin] = client.post("/api/plan", json=QUESTION).status_code
        with client_of(public, Host="elsewhere.example") as client:
            named = client.get("/api/profiles").status_code

    assert asked == {"https://council.example": 200, "https://elsewhere.example": 403}
    assert named == 403


@pytest.mark.slow
def test_a_long_body_is_refused_by_the_proxy(tmp_path):
    """Before it reaches the server."""
    with (
        serve_behind(tmp_path) as (url, _),
        proxy(url, tmp_path) as public,
        client_of(public) as client,
    ):
        response = client.post("/api/plan", json={"question": "x" * 5_000_000})

    assert response.status_code == 413


@pytest.mark.slow
class TestClientAddress:
    """Only a trusted proxy may state the client's address."""

    def test_a_trusted_proxy_is_believed(self, tmp_path):
        """Rate limits apply to the client that guesses and no other."""
        with serve_behind(tmp_path) as (url, _), proxy(url, tmp_path) as public:
            guesser = guess_tokens(public, "127.0.0.2")
            other = guess_tokens(public, "127.0.0.3", 1)

        assert guesser[-1] == 429
        assert other == [401]

    def test_a_forged_address_is_replaced(self, tmp_path):
        """The proxy overwrites what its client sent."""
        with serve_behind(tmp_path) as (url, _), proxy(url, tmp_path) as public:
            guess_tokens(public, "127.0.0.2")
            again = guess_tokens(public, "127.0.0.2", 1, **{"X-Forwarded-For": "127.0.0.9"})

        assert again == [429]

    def test_an_untrusted_proxy_is_not_believed(self, tmp_path):
        """Its clients share one address."""
        with serve_behind(tmp_path, "192.0.2.1") as (url, _), proxy(url, tmp_path) as public:
            guess_tokens(public, "127.0.0.2")
            other = guess_tokens(public, "127.0.0.3", 1)

        assert other == [429]

    def test_a_direct_client_is_not_believed(self, tmp_path):
        """Its address is that of the connection."""
        with serve_behind(tmp_path, "192.0.2.1") as (url, _):
            for number in range(25):
                forged = {"X-Forwarded-For": f"198.51.100.{number}"}
                last = guess_tokens(url, None, 1, **forged)

        assert last == [429]
