"""What every request passes: names, origins, lengths, tokens, rates."""

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
    """Two who may ask: ada twice in a minute, bob for a dollar a day."""
    tokens = {
        "ada": TokenSettings("ada", "the test", sha256=digest(ADA), per_minute=2),
        "bob": TokenSettings("bob", "the test", key="BOBS", daily_usd=1.0),
    }
    return replace(ServeSettings(), tokens=MappingProxyType(tokens), **more)


@pytest.fixture
def server(tmp_path):
    """A server of three scripts, with tokens."""
    with served(councils(write_config(tmp_path)), settings(), {"BOBS": BOB}) as running:
        yield running


@pytest.fixture(scope="module")
def local(tmp_path_factory):
    """One server of three scripts, for this machine alone."""
    file = write_config(tmp_path_factory.mktemp("scripts"))
    with served(councils(file), ServeSettings(body_bytes=2000)) as running:
        yield running


def client(server, token=None, **headers):
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    return httpx2.Client(base_url=server.url, headers=headers, timeout=20)


class TestTokens:
    """Where there are tokens, nobody asks without one."""

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
    def test_whoever_has_none_is_refused(self, server, headers):
        """The refusal says how to give a token, and never what a right one is like."""
        with client(server, **headers) as asking:
            response = asking.get("/api/sessions")

        assert response.status_code == 401
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert ADA not in response.text

    def test_every_surface_wants_one(self, server):
        """The API, the models, the counters and the description are refused alike."""
        with client(server) as asking:
            for path in ("/api/sessions", "/v1/models", "/metrics", "/openapi.json"):
                assert asking.get(path).status_code == 401, path

    @pytest.mark.parametrize(
        ("headers", "said"),
        [({}, "a token is needed"), ({"X-Api-Key": "wrong-but-long-enough"}, "is not one of")],
    )
    def test_a_wrong_one_is_told_apart_from_none(self, server, headers, said):
        """Or whoever mistyped it would look for why it was not sent."""
        with client(server, **headers) as asking:
            assert said in asking.get("/api/sessions").json()["detail"]

    @pytest.mark.parametrize("header", ["Authorization", "X-Api-Key"])
    def test_whoever_has_one_is_let_in(self, server, header):
        """By either header."""
        value = f"Bearer {BOB}" if header == "Authorization" else BOB
        with client(server, **{header: value}) as asking:
            response = asking.post("/api/sessions", params={"wait": 9}, json=QUESTION)

        assert response.json()["status"] == "complete"

    def test_whether_the_server_is_well_anybody_may_know(self, server):
        """A load balancer has no token."""
        with client(server) as asking:
            assert asking.get("/healthz").json()["status"] == "ok"

    def test_each_may_begin_so_many_sessions(self, server):
        """Ada waits after two questions, may go on reading, and Bob does not wait for Ada."""
        with client(server, ADA) as ada, client(server, BOB) as bob:
            asked = [ada.post("/api/sessions", json=QUESTION) for _ in range(3)]
            read = ada.get("/v1/models")
            other = bob.post("/api/sessions", json=QUESTION)

        assert [response.status_code for response in asked] == [202, 202, 429]
        assert all(fact in asked[-1].json()["detail"] for fact in ("ada", "2 sessions in a minute"))
        assert 1 <= int(asked[-1].headers["retry-after"]) <= 60
        assert (read.status_code, other.status_code) == (200, 202)

    def test_each_may_make_so_many_requests(self, server):
        """A hundred times as many; Bob does not wait for Ada."""
        with client(server, ADA) as ada, client(server, BOB) as bob:
            codes = [ada.get("/v1/models").status_code for _ in range(200)]
            refused = ada.get("/v1/models")
            other = bob.get("/v1/models")

        assert set(codes) == {200}
        assert refused.status_code == 429
        assert all(fact in refused.text for fact in ("ada", "200 requests in a minute"))
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        assert other.status_code == 200

    def test_guessing_is_slowed_down(self, server):
        """After so many wrong tokens from one address, the next is not even looked at."""
        with client(server, "wrong-but-long-enough") as guessing:
            codes = [guessing.get("/v1/models").status_code for _ in range(25)]

        assert codes[0] == 401
        assert codes[-1] == 429

    def test_a_right_token_is_let_in_beside_a_guesser(self, server):
        """Who guesses keeps nobody else out."""
        with client(server, "wrong-but-long-enough") as guessing:
            for _ in range(25):
                guessing.get("/v1/models")
        with client(server, BOB) as bob:
            assert bob.get("/openapi.json").status_code == 200

    def test_a_cookie_is_worth_what_it_was_drawn_for(self):
        """Until it is given back."""
        clients = Clients(settings(), {"BOBS": BOB})
        cookie = clients.sign_in(clients.by_token(BOB))

        assert clients.by_cookie(cookie).name == "bob"
        clients.sign_out(cookie)
        assert clients.by_cookie(cookie) is None


class TestBeyondThisMachine:
    """Off loopback there is no server without a token."""

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104
    def test_it_does_not_start(self, host):
        """It says which variable to set."""
        with pytest.raises(ConfigError, match="WITAN_TOKEN"):
            bind_socket(ServeSettings(host=host, port=0))

    def test_with_one_it_starts(self):
        """And would listen wherever it is told to."""
        with bind_socket(settings(host="0.0.0.0", port=0)) as listening:  # noqa: S104
            assert listening.getsockname()[0] == "0.0.0.0"  # noqa: S104


class TestNamesAndOrigins:
    """A stranger's page can make a browser ask; it gets nothing by it."""

    @pytest.mark.parametrize(
        "host", ["evil.example", "evil.example:8717", "127.0.0.1.evil.example", "", "[::2]", "0"]
    )
    def test_a_name_that_is_not_its_own_is_refused(self, local, host):
        """Whoever points a name of theirs at this machine."""
        with client(local, Host=host) as asking:
            assert asking.get("/healthz").status_code == 403

    @pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "[::1]:8717"])
    def test_the_names_of_this_machine_are_taken(self, local, host):
        """With whatever port a tunnel has."""
        with client(local, Host=host) as asking:
            assert asking.get("/healthz").status_code == 200

    @pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", ""])
    def test_a_page_of_elsewhere_may_not_ask(self, local, origin):
        """Not even of another port of this machine."""
        with client(local, Origin=origin) as asking:
            response = asking.post("/api/sessions", json=QUESTION)

        assert response.status_code == 403
        assert local.service.under_way == ()

    def test_a_page_of_its_own_may(self, local):
        """The same name and port."""
        with client(local, Origin=local.url) as asking:
            assert asking.post("/api/plan", json=QUESTION).status_code == 200

    def test_nothing_is_said_to_be_shared_with_other_pages(self, local):
        """Neither to a preflight request nor otherwise."""
        with client(local, Origin="https://evil.example") as asking:
            for response in (asking.get("/healthz"), asking.options("/api/sessions")):
                assert not [name for name in response.headers if name.startswith("access-control")]

    def test_every_answer_tells_browsers_to_be_careful(self, local):
        """Also what is not found."""
        with client(local) as asking:
            for path in ("/healthz", "/nothing", "/api/sessions/nope"):
                headers = asking.get(path).headers
                assert "default-src 'self'" in headers["content-security-policy"]
                assert "unsafe" not in headers["content-security-policy"]
                assert headers["x-content-type-options"] == "nosniff"


class TestLengths:
    """No request is longer than what was configured."""

    def test_one_that_says_so_is_refused_unread(self, local):
        """It says the limit, and which setting it is."""
        with client(local) as asking:
            response = asking.post("/api/plan", json={"question": "x" * 3000})

        assert response.status_code == 413
        assert "serve.body_bytes" in response.json()["detail"]

    def test_one_that_does_not_say_so_is_cut_off(self, local):
        """A body in chunks is counted as it comes."""

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
    def test_a_strange_path_gets_no_more_than_an_error(self, local, request_line):
        """It is the request's fault, not the server's, and no file is read."""
        host, port = local.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=10)
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

    def test_a_question_that_has_been_here_is_refused(self, local):
        """It shows the circle."""
        name = local.service.name
        with client(local, **{"Witan-Via": f"one, {name}, two"}) as asking:
            response = asking.post("/api/sessions", json=QUESTION)

        assert response.status_code == 508
        assert f"one → {name} → two → {name}" in response.json()["detail"]

    def test_a_question_that_came_through_others_is_taken(self, local):
        """As long as this one is not among them."""
        with client(local, **{"Witan-Via": "one, two"}) as asking:
            assert asking.post("/api/sessions", json=QUESTION).status_code == 202

    def test_a_question_that_came_through_too_many_is_refused(self, local):
        """Whatever they are called."""
        via = ", ".join(map(str, range(40)))
        with client(local, **{"Witan-Via": via}) as asking:
            assert asking.post("/api/sessions", json=QUESTION).status_code == 508


class TestCounting:
    """The server counts what it does, for Prometheus."""

    def test_sessions_and_requests_are_counted(self, tmp_path):
        """By what came of them."""
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

    def test_methods_that_are_never_asked_by_have_one_counter(self, local):
        """Else whoever reaches the server could fill its memory with them."""
        with client(local) as asking:
            for method in ("PROPFIND", "COPY"):
                asking.request(method, "/")
            text = asking.get("/metrics").text

        assert 'method="other"' in text
        assert "PROPFIND" not in text

    def test_nothing_that_was_asked_is_in_the_log(self, local, caplog):
        """Nor who asked by which token."""
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
