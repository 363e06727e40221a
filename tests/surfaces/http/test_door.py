"""Checks on every request: host names, origins, lengths, tokens and rates."""

import hashlib
import http.client
import json
from dataclasses import replace
from types import MappingProxyType

import httpx2
import pytest

from served import served
from services import councils, write_config
from witan.errors import ConfigError
from witan.service.config.serve import ServeSettings, TokenSettings
from witan.surfaces.http.door import Clients
from witan.surfaces.http.server import bind_socket

ADA, BOB = "ada-has-a-long-token", "bob-has-a-long-token"

QUESTION = {"question": "Is it so?"}


def digest(token):
    return hashlib.sha256(token.encode()).hexdigest()


def settings(**more):
    """Two clients: ada may ask twice a minute, bob for a dollar a day."""
    tokens = {
        "ada": TokenSettings("ada", "the test", sha256=digest(ADA), per_minute=2),
        "bob": TokenSettings("bob", "the test", key="BOBS", daily_usd=1.0),
    }
    return replace(ServeSettings(), tokens=MappingProxyType(tokens), **more)


@pytest.fixture
def server(tmp_path):
    """A server of three scripted members, with tokens."""
    with served(councils(write_config(tmp_path)), settings(), {"BOBS": BOB}) as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """A server of three scripted members on loopback, without tokens."""
    file = write_config(tmp_path_factory.mktemp("scripts"))
    with served(councils(file), ServeSettings(body_bytes=2000)) as running:
        yield running


def client(server, token=None, **headers):
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return httpx2.Client(base_url=server.url, headers=headers, timeout=60)


class TestTokens:
    """A server with tokens refuses requests without one."""

    @pytest.mark.parametrize(
        "headers",
        [
            {},
            {"Authorization": "Bearer wrong-but-long-enough"},
            {"Authorization": f"Basic {ADA}"},
            {"Authorization": f"Bearer {ADA}x"},
            {"Authorization": "Bearer"},
            {"Authorization": "Bearer " + digest(ADA)},
            {"X-Api-Key": ADA[:-1]},
            {"Cookie": f"witan={ADA}"},
            {"Cookie": "witan="},
        ],
    )
    def test_a_missing_token_is_refused(self, server, headers):
        """The error says how to send a token, and nothing about valid ones."""
        with client(server, **headers) as asking:
            response = asking.get("/api/sessions")

        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert ADA not in response.text

    def test_every_surface_requires_a_token(self, server):
        """The API, the models, the metrics and the OpenAPI document."""
        with client(server) as asking:
            for path in ("/api/sessions", "/v1/models", "/metrics", "/openapi.json"):
                assert asking.get(path).status_code == 401, path

    @pytest.mark.parametrize(
        ("headers", "said"),
        [({}, "a token is needed"), ({"X-Api-Key": "wrong-but-long-enough"}, "is not one of")],
    )
    def test_wrong_and_missing_tokens_give_different_errors(self, server, headers, said):
        """A mistyped token is not reported as missing."""
        with client(server, **headers) as asking:
            assert said in asking.get("/api/sessions").json()["detail"]

    @pytest.mark.parametrize("header", ["Authorization", "X-Api-Key"])
    def test_a_valid_token_is_accepted(self, server, header):
        """In either header."""
        value = f"Bearer {BOB}" if header == "Authorization" else BOB
        with client(server, **{header: value}) as asking:
            response = asking.post("/api/sessions", params={"wait": 9}, json=QUESTION)

        assert response.json()["status"] == "complete"

    def test_health_check_works_without_a_token(self, server):
        """Load balancers have none."""
        with client(server) as asking:
            assert asking.get("/healthz").json()["status"] == "ok"

    def test_sessions_are_limited_per_client(self, server):
        """Ada waits after two questions but may read; Bob does not wait for Ada."""
        with client(server, ADA) as ada, client(server, BOB) as bob:
            asked = [ada.post("/api/sessions", json=QUESTION) for _ in range(3)]
            read = ada.get("/v1/models")
            other = bob.post("/api/sessions", json=QUESTION)

        assert [response.status_code for response in asked] == [202, 202, 429]
        assert all(fact in asked[-1].json()["detail"] for fact in ("ada", "2 sessions per minute"))
        assert 1 <= int(asked[-1].headers["retry-after"]) <= 60
        assert (read.status_code, other.status_code) == (200, 202)

    def test_requests_are_limited_per_client(self, server):
        """The limit is a hundred times that of sessions; Bob does not wait for Ada."""
        with client(server, ADA) as ada, client(server, BOB) as bob:
            codes = [ada.get("/v1/models").status_code for _ in range(200)]
            refused = ada.get("/v1/models")
            other = bob.get("/v1/models")

        assert set(codes) == {200}
        assert refused.status_code == 429
        assert all(fact in refused.text for fact in ("ada", "200 requests in a minute"))
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert other.status_code == 200

    def test_wrong_tokens_are_rate_limited(self, server):
        """After too many from one address, further tokens are not checked."""
        with client(server, "wrong-but-long-enough") as guessing:
            codes = [guessing.get("/v1/models").status_code for _ in range(25)]

        assert codes[0] == 401
        assert codes[-1] == 429

    def test_a_valid_token_is_accepted_from_a_rate_limited_address(self, server):
        """Wrong tokens of others lock nobody out."""
        with client(server, "wrong-but-long-enough") as guessing:
            for _ in range(25):
                guessing.get("/v1/models")
        with client(server, BOB) as bob:
            assert bob.get("/openapi.json").status_code == 200

    def test_a_cookie_is_valid_until_sign_out(self):
        """It carries the rights of its token."""
        clients = Clients(settings(), {"BOBS": BOB})
        cookie = clients.sign_in(clients.by_token(BOB))

        assert clients.by_cookie(cookie).name == "bob"
        clients.sign_out(cookie)
        assert clients.by_cookie(cookie) is None


class TestBeyondThisMachine:
    """A server off loopback requires tokens."""

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
    def test_server_refuses_to_start_without_a_token(self, host):
        """The error names the variable to set."""
        with pytest.raises(ConfigError, match="WITAN_TOKEN"):
            bind_socket(ServeSettings(host=host, port=0))

    def test_server_starts_with_a_token(self):
        """It listens on the configured address."""
        with bind_socket(settings(host="0.0.0.0", port=0)) as listening:  # noqa: S104
            assert listening.getsockname()[0] == "0.0.0.0"  # noqa: S104

    def test_a_port_in_use_is_named_with_a_remedy(self):
        """The sentence has the address, the reason, and the options."""
        with bind_socket(ServeSettings(port=0)) as taken:
            port = taken.getsockname()[1]
            with pytest.raises(ConfigError) as refused:
                bind_socket(ServeSettings(port=port))

        assert str(refused.value) == (
            f"127.0.0.1:{port}: the server cannot listen here: Address already in use; "
            "choose another --host or --port"
        )


class TestHostsAndOrigins:
    """Pages of other sites can neither call the server nor read its replies."""

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:8717", "127.0.0.1.evil.example", "", "[::2]", "0"]
    )
    def test_foreign_host_name_is_refused(self, local, host):
        """It prevents DNS rebinding."""
        with client(local, Host=host) as asking:
            assert asking.get("/healthz").status_code == 403

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8717"])
    def test_loopback_names_are_accepted(self, local, host):
        """With any port, as a tunnel may change it."""
        with client(local, Host=host) as asking:
            assert asking.get("/healthz").status_code == 200

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", ""])
    def test_foreign_origin_is_refused(self, local, origin):
        """Another port of this machine is foreign, too."""
        with client(local, Origin=origin) as asking:
            response = asking.post("/api/sessions", json=QUESTION)

        assert response.status_code == 403
        assert local.service.registry.under_way == ()

    def test_own_origin_is_accepted(self, local):
        """Same host and port."""
        with client(local, Origin=local.url) as asking:
            assert asking.post("/api/plan", json=QUESTION).status_code == 200

    def test_cors_headers_are_never_sent(self, local):
        """Neither for a preflight request nor otherwise."""
        with client(local, Origin="https://evil.example") as asking:
            for response in (asking.get("/healthz"), asking.options("/api/sessions")):
                assert not [name for name in response.headers if name.startswith("access-control")]

    def test_every_reply_has_security_headers(self, local):
        """Including 404."""
        with client(local) as asking:
            for path in ("/healthz", "/nothing", "/api/sessions/nope"):
                headers = asking.get(path).headers
                assert "default-src 'self'" in headers["content-security-policy"]
                assert "unsafe" not in headers["content-security-policy"]
                assert headers["x-content-type-options"] == "nosniff"


class TestLengths:
    """The configured limit on the length of a request."""

    def test_a_declared_length_over_the_limit_is_refused_unread(self, local):
        """The error names the limit and its setting."""
        with client(local) as asking:
            response = asking.post("/api/plan", json={"question": "x" * 3000})

        assert response.status_code == 413
        assert "serve.body_bytes" in response.json()["detail"]

    def test_a_chunked_body_over_the_limit_is_refused(self, local):
        """Chunks are counted as they arrive."""

        def chunks():
            yield b'{"question": "'
            for _ in range(100):
                yield b"x" * 100
            yield b'"}'

        with client(local) as asking:
            response = asking.post(
                "/api/plan", content=chunks(), headers={"Content-Type": "application/json"}
            )

        assert response.status_code == 413

    @pytest.mark.parametrize(
        "request_line",
        [
            "GET /api/sessions/../../etc/passwd HTTP/1.1",
            "GET /api/sessions/%2e%2e%2f%2e%2e%2fetc%2fpasswd HTTP/1.1",
            "GET /assets/../../../../etc/passwd HTTP/1.1",
            "GET /assets/%2e%2e/%2e%2e/pyproject.toml HTTP/1.1",
            "GET /api/sessions/%00 HTTP/1.1",
            "GET /api/sessions/%ff%fe HTTP/1.1",
            "GET //evil.example/ HTTP/1.1",
            "BREW /api/sessions HTTP/1.1",
            "GET /api/sessions?limit=-1 HTTP/1.1",
            f"GET /{'a' * 60_000} HTTP/1.1",
        ],
    )
    def test_a_malformed_path_is_a_client_error(self, local, request_line):
        """It is not a server error, and no file is read."""
        host, port = local.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        connection.connect()
        connection.sock.sendall(
            f"{request_line}\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("latin-1")
        )
        answer = connection.sock.makefile("rb").read()
        connection.close()

        assert answer.split(b" ")[1].startswith(b"4")
        assert b"root:" not in answer


class TestCircles:
    """A council that is a member of itself is refused."""

    def test_a_question_that_already_passed_this_server_is_refused(self, local):
        """The error shows the circle."""
        name = local.service.name
        with client(local, **{"Witan-Via": f"one, {name}, two"}) as asking:
            response = asking.post("/api/sessions", json=QUESTION)

        assert response.status_code == 508
        assert f"one → {name} → two → {name}" in response.json()["detail"]

    def test_a_question_forwarded_by_other_servers_is_accepted(self, local):
        """As long as this server is not among them."""
        with client(local, **{"Witan-Via": "one, two"}) as asking:
            assert asking.post("/api/sessions", json=QUESTION).status_code == 202

    def test_a_question_forwarded_too_often_is_refused(self, local):
        """Whatever the servers are called."""
        via = ", ".join(map(str, range(40)))
        with client(local, **{"Witan-Via": via}) as asking:
            assert asking.post("/api/sessions", json=QUESTION).status_code == 508


class TestMetrics:
    """The Prometheus counters."""

    def test_sessions_and_requests_are_counted(self, tmp_path):
        """By their outcome."""
        from witan.surfaces.http.observers import Metrics

        metrics = Metrics()
        file = write_config(tmp_path)
        with (
            served(councils(file), metrics=metrics, observers=[metrics]) as running,
            client(running) as asking,
        ):
            asking.post("/api/sessions", params={"wait": 9}, json=QUESTION)
            text = asking.get("/metrics").text

        assert 'witan_sessions_total{simulated="true",status="complete"} 1.0' in text
        assert 'witan_ballots_total{came="cast"} 3.0' in text
        assert 'route="/api/sessions",status="200"' in text

    def test_unknown_methods_share_one_counter(self, local):
        """Clients cannot fill the memory with counters."""
        with client(local) as asking:
            for method in ("PROPFIND", "COPY"):
                asking.request(method, "/")
            text = asking.get("/metrics").text

        assert 'method="other"' in text
        assert "PROPFIND" not in text

    def test_metrics_and_log_exclude_questions_and_tokens(self, local, caplog):
        """Neither the text of a question nor a token is logged."""
        import logging

        logging.getLogger("witan").propagate = True
        with caplog.at_level(logging.INFO, "witan"), client(local) as asking:
            asking.post(
                "/api/sessions?wait=9",
                json={"question": "my-secret-question"},
                headers={"Authorization": "Bearer my-secret-token"},
            )
            asking.get("/api/sessions/nothing")  # by now the first has been written down

        said = json.dumps([[r.getMessage(), getattr(r, "fields", {})] for r in caplog.records])
        assert "/api/sessions" in said
        assert "my-secret" not in said
