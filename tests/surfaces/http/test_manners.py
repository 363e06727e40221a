"""Errors for malformed requests name the problem in terms of the request."""

import json
from threading import Timer
from urllib.parse import quote, urlsplit

import httpx2
import pytest

from served import served
from services import councils, write_config
from witan.history import History
from witan.service.config.serve import ServeSettings, TokenSettings
from witan.surfaces.cli.app import main
from witan.surfaces.http.observers import Metrics

QUESTION = {"question": "Is it so?"}

STRANGE = ("q/1", "a b", "why?", "no#1", "100%", "größe", "名/前", "%2F", "a/events", "x/../y", "+")
"""Names of sessions imported as ballots."""

SEVERAL = "".join(
    json.dumps({"session": name, "reviewer": r, "ranking": ranking}) + "\n"
    for name in ("first", "second")
    for r, ranking in (("x", ["y", "z"]), ("y", ["z", "x"]))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the server's files."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def history(folder):
    """A history of sessions with unusual names, each with texts of its answers."""
    ballots, answers = folder / "ballots.jsonl", folder / "answers.jsonl"
    ballots.write_text(
        "".join(
            json.dumps({"session": name, "reviewer": r, "ranking": ranking}) + "\n"
            for name in STRANGE
            for r, ranking in (("x", ["y", "z"]), ("y", ["z", "x"]), ("z", ["x", "y"]))
        )
    )
    answers.write_text(
        "".join(
            json.dumps({"session": name, "candidate": c, "text": f"It is {c}."}) + "\n"
            for name in STRANGE
            for c in "xyz"
        )
    )
    place = str(folder / "history.sqlite")
    assert main(["import", str(ballots), "--answers", str(answers), "--history", place]) == 0
    with History.open(place) as opened:
        yield opened


@pytest.fixture(scope="module")
def client(folder, history):
    """A client of a server with that history and one scripted session."""
    with (
        served(councils(write_config(folder), history)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        opened.post("/api/sessions", params={"wait": 9}, json=QUESTION)
        yield opened


class TestSessionNames:
    """Sessions are addressed by their percent-encoded name."""

    @pytest.mark.parametrize("name", STRANGE)
    def test_every_operation_accepts_the_encoded_name(self, client, name):
        """What needs more than ballots says so for this session."""
        here = f"/api/sessions/{quote(name, safe='')}"
        counted = client.post(f"{here}/recount", json={"rule": "borda"})
        paper = client.get(f"{here}/paper", params={"as": "ines"})
        ranking = " > ".join(paper.json()["answers"])
        code = paper.json()["paper"]
        vote = {"as": "ines", "ranking": ranking, "paper": code}
        voted = client.post(f"{here}/votes", json=vote)

        assert counted.json()["sessions"][0]["session"] == name
        assert paper.json()["session"] == name
        assert voted.json()["session"] == name
        for method, path in (
            ("GET", ""), ("GET", "/events"), ("GET", "/export.html"),
            ("POST", "/cancel"), ("POST", "/resume"), ("POST", "/retry"), ("POST", "/rejudge"),
        ):  # fmt: skip
            told = client.request(method, here + path)
            assert told.status_code in {200, 409}, f"{path}: {told.text}"
            if told.status_code == 409:
                assert f"{name} was imported as ballots" in told.json()["detail"]

    def test_delete_removes_only_the_session_named(self, client, folder):
        (folder / "more.jsonl").write_text(SEVERAL.replace("first", "d/1").replace("second", "d"))
        place = str(folder / "history.sqlite")
        assert main(["import", str(folder / "more.jsonl"), "--history", place]) == 0

        assert client.delete("/api/sessions/d%2F1").json()["sessions"] == ["d/1"]
        left = [each["session"] for each in client.get("/api/sessions?limit=99").json()["sessions"]]
        assert "d/1" not in left
        assert "d" in left

    @pytest.mark.parametrize("name", STRANGE)
    def test_the_page_accepts_the_encoded_name(self, client, name):
        page = client.get(f"/sessions/{quote(name, safe='')}", headers={"Accept": "text/html"})

        assert page.status_code == 200


class TestParameters:
    """Query parameters are used or refused, never ignored."""

    @pytest.mark.parametrize(
        ("method", "path", "known"),
        [("GET", "/api/sessions?limt=3", "limit"), ("GET", "/api/leaderboard?rules=borda", "rule"),
         ("GET", "/api/audit?reviewers=x", "reviewer"), ("POST", "/api/tally?tie=x", "none"),
         ("POST", "/api/sessions?waits=3", "wait"), ("GET", "/api/sessions/last?x=1", "none"),
         ("GET", "/api/sessions/last/events?from=1", "after"), ("GET", "/api/rules?a=", "name"),
         ("POST", "/api/compare?rule=borda", "none"), ("POST", "/api/plan?wait=1", "none"),
         ("GET", "/api/sessions/last/paper?person=me", "as")],
    )  # fmt: skip
    def test_an_unknown_parameter_is_refused_with_the_known_ones(self, client, method, path, known):
        """A typing mistake never changes the result silently."""
        body = {"json": QUESTION} if method == "POST" else {}
        told = client.request(method, path, **body)
        [name] = urlsplit(path).query.partition("=")[:1]

        assert told.status_code == 422
        assert f"unknown parameter '{name}'" in told.json()["detail"]
        assert known in told.json()["detail"]

    def test_a_repeated_parameter_is_refused_unless_a_list(self, client):
        """Neither of two values is ignored silently."""
        told = client.get("/api/sessions?limit=1&limit=2")
        file = client.post("/api/tally?level=.9&level=.8", content=b"x")
        unknown = client.post("/api/tally?tie=x", content=b"x")
        many = client.post("/api/tally?sessions=a&sessions=b", content=b"x")

        assert (told.status_code, told.json()["detail"]) == (
            422, "limit is given 2 times; give it once",
        )  # fmt: skip
        assert "level is given 2 times" in file.json()["detail"]
        assert all(fact in unknown.json()["detail"] for fact in ("'tie'", "did you mean 'ties'?"))
        assert "times" not in many.json()["detail"]

    def test_the_document_lists_every_parameter(self, client):
        """The OpenAPI document and the server agree."""
        document = client.get("/openapi.json").json()
        for path, name in (("tally", "ties"), ("explain", "level"), ("tally", "columns")):
            parameters = document["paths"][f"/api/{path}"]["post"]["parameters"]
            assert name in [each["name"] for each in parameters]


class TestPaths:
    """Errors for unknown paths point to the documentation."""

    @pytest.mark.parametrize("path", ["/api/sesions", "/v1/completions", "/api/sessions/a/b/c"])
    def test_an_unknown_path_is_named(self, client, path):
        """With the document that lists all paths."""
        told = client.get(path)
        words = told.json()["error"]["message"] if path.startswith("/v1") else told.json()["detail"]

        assert told.status_code == 404
        assert path in words
        assert "/openapi.json" in words

    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b'{"question": "gr\xfcn"}', "the body is not UTF-8; send JSON as UTF-8"),
            (b"[" * 100_000, "the body is nested too deeply"),
        ],
        ids=["latin", "deep"],
    )
    @pytest.mark.parametrize("path", ["/api/sessions", "/v1/chat/completions"])
    def test_a_body_that_cannot_be_read_says_why(self, client, path, body, words):
        """In the shape of its interface."""
        told = client.post(path, content=body, headers={"Content-Type": "application/json"})
        problem = told.json()

        assert told.status_code == 400
        assert (problem.get("detail") or problem["error"]["message"]) == words

    def test_an_unknown_method_is_named(self, client):
        """With the methods of the path."""
        told = client.put("/api/sessions/last/recount", json={})

        assert told.status_code == 405
        assert all(fact in told.text for fact in ("PUT is not allowed", "it takes POST"))

    def test_allow_lists_the_methods_of_all_operations(self, client):
        """Though several operations share the path."""
        told = client.put("/api/sessions", json={})

        assert told.headers["Allow"] == "GET, HEAD, POST"
        assert "it takes GET, HEAD, POST; " in told.json()["detail"]

    @pytest.mark.parametrize(
        "path",
        ["/", "/healthz", "/metrics", "/api/sessions", "/api/sessions/none", "/v1/models"],
    )
    def test_head_works_wherever_get_does(self, client, path):
        """With the same headers and no body."""
        whole, head = client.get(path), client.head(path)

        assert head.status_code == whole.status_code
        assert head.headers["Content-Type"] == whole.headers["Content-Type"]
        assert head.content == b""

    def test_a_slash_in_a_name_must_be_encoded(self, client):
        """Unencoded it separates segments of the path."""
        told = client.get("/api/sessions/q/1")

        assert told.status_code == 404
        assert "%2F" in told.json()["detail"]


class TestBodies:
    """Empty bodies may be omitted."""

    @pytest.mark.parametrize("operation", ["retry", "recount", "rejudge", "resume"])
    @pytest.mark.parametrize("content", [b"", b"{}"])
    def test_an_empty_body_is_accepted(self, client, operation, content):
        kind = {"Content-Type": "application/json"} if content else {}
        told = client.post(f"/api/sessions/last/{operation}", content=content, headers=kind)

        assert told.status_code in (200, 202, 409), told.text


class TestWording:
    """Errors name fields of the request, not options of the command line."""

    @pytest.mark.parametrize(
        ("path", "content", "said"),
        [("explain", SEVERAL, "session is missing; expected one of 2 sessions"),
         ("explain?session=third", SEVERAL, "unknown session of the ballots 'third'; known: first"),
         ("tally?sessions=third", SEVERAL, "unknown session of the ballots 'third'; known: first"),
         ("tally?sessions=q1", '{"reviewer": 1}\n', "no ballot could be read: the text:1: "),
         ("tally", '{"x": 1}\n', "its columns are x, none of which Witan knows; "),
         ("tally", "a,b,c\n1,2,3\n", "columns reviewer=HEADER, outcome=HEADER, session="),
         ("tally?columns=ranks", SEVERAL, "columns cannot be 'ranks'; expected the form FIELD"),
         ("tally?columns=mood=x", "a,b,c\n1,2,3\n", "mood"),
         ("tally", "", "no ballot was sent"),
         ("tally?level=often", SEVERAL, "level cannot be 'often'"),
         ("tally?rule=bordas", SEVERAL, "unknown rule 'bordas'; did you mean 'borda'?")],
    )  # fmt: skip
    def test_errors_about_posted_ballots_name_query_parameters(self, client, path, content, said):
        told = client.post(f"/api/{path}", content=content)

        assert told.status_code in (409, 422)
        assert said in told.json()["detail"]
        assert "--" not in told.json()["detail"]

    def test_columns_are_mapped_as_on_the_command_line(self, client):
        """Ballots with other names of columns are counted."""
        table = "q,judge,answer,rank\nq1,ada,b,1\nq1,ada,c,2\nq1,bob,b,1\nq1,bob,c,2\n"
        asked = {"columns": ["session=q", "reviewer=judge", "candidate=answer"]}
        told = client.post("/api/tally", params=asked, content=table).json()

        assert told["sessions"][0]["leaders"] == ["b"]

    @pytest.mark.parametrize(
        ("body", "said"),
        [({"as": "bo", "ranking": ""}, "the ballot of bo ranks nothing"),
         ({"as": "bo", "ranking": "  "}, "ranks nothing; the labels are A, B, C"),
         ({"as": "bo", "ranking": "A > A > B"}, "the ballot of bo ranks A more than once"),
         ({"as": " ", "ranking": "A"}, "as is missing"),
         ({"ranking": "A > B > C"}, "as is missing")],
    )  # fmt: skip
    def test_errors_about_a_vote_name_its_fields(self, client, body, said):
        client.post("/api/sessions", params={"wait": 9}, json=QUESTION)
        told = client.post("/api/sessions/last/votes", json=body)

        assert told.status_code == 422
        assert said in told.json()["detail"]

    def test_a_vote_without_answers_is_refused(self, tmp_path):
        """The error does not call a council's session an import."""
        file = write_config(tmp_path, answer=[{"error": "out of order", "status": 400}])
        with (
            History.open(tmp_path / "history.sqlite") as history,
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as asking,
        ):
            asking.post("/api/sessions", params={"wait": 9}, json=QUESTION)
            told = asking.get("/api/sessions/last/paper", params={"as": "ines"})

        assert told.status_code == 409
        assert "no answer texts" in told.json()["detail"]
        assert "import" not in told.json()["detail"]

    def test_errors_about_a_retry_name_the_seats(self, tmp_path):
        """They name the failed seats; for a removed seat, they say why it cannot be called."""
        amiss = [{"error": "out of order", "status": 400}]
        with History.open(tmp_path / "history.sqlite") as history:
            with (
                served(councils(write_config(tmp_path, synthesis=amiss), history)) as server,
                httpx2.Client(base_url=server.url, timeout=60) as asking,
            ):
                asking.post("/api/sessions", params={"wait": 9}, json=QUESTION)
                zoe, bob = (
                    asking.post("/api/sessions/last/retry", json={"seats": [seat]}).json()["detail"]
                    for seat in ("zoe", "bob")
                )
            (tmp_path / "ada.toml").unlink()
            broken, fewer = tmp_path / "council.toml", tmp_path / "fewer.toml"
            left = [f"script:{tmp_path}/{name}.toml" for name in ("bob", "cyd")]
            fewer.write_text(f"members = {json.dumps(left)}\n")
            gone = []
            for file in (broken, fewer):
                with (
                    served(councils(file, history)) as server,
                    httpx2.Client(base_url=server.url, timeout=60) as asking,
                ):
                    gone.append(asking.post("/api/sessions/last/retry").json()["detail"])

        assert all(fact in zoe for fact in ("'zoe'", "failed here: ada"))
        assert bob.endswith("ada, and bob did not")
        assert "cannot be used" in gone[0]
        assert "ada (script:ada)" in gone[1]

    def test_a_blank_question_is_refused_by_its_field(self, client):
        told = client.post("/api/sessions", json={"question": " \n"})

        assert told.status_code == 422
        assert told.json()["faults"][0]["where"] == "question"


class TestUnavailable:
    """Server-side failures are 5xx, not 409."""

    def test_an_unreadable_history_is_a_503(self, tmp_path):
        """The log gives the reason; a conflicting state remains a 409."""
        place = tmp_path / "gone" / "history.sqlite"
        place.parent.mkdir()
        file = write_config(tmp_path)
        with (
            History.open(place) as history,
            served(councils(file, history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            client.post("/api/sessions", params={"wait": 9}, json=QUESTION)
            history.close()
            for path in ("/api/sessions", "/api/leaderboard", "/api/sessions/nope"):
                told = client.get(path)
                assert told.status_code == 503, f"{path}: {told.text}"
                assert told.json()["detail"].startswith("the history ")
                assert "gone" not in told.text
            voted = client.post("/api/sessions/last/votes", json={"as": "x", "ranking": "A"})
            assert voted.status_code == 503

    @pytest.mark.slow
    def test_waiting_for_a_locked_history_is_logged(self, tmp_path, caplog):
        """Once, with its location, which clients do not see."""
        place = tmp_path / "history.sqlite"
        with (
            History.open(place) as history,
            served(councils(write_config(tmp_path), history)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
            History.open(place) as busy,
        ):
            busy.database.execute("BEGIN IMMEDIATE")
            release = Timer(3, busy.database.execute, ("ROLLBACK",))
            release.start()
            told = client.post("/api/sessions", params={"wait": 15}, json=QUESTION)
            release.join()

        said = [each.getMessage() for each in caplog.records if each.name == "witan.history"]
        assert told.json()["status"] == "complete"
        assert len(said) == 1
        assert said[0].startswith("another process has locked")

    def test_a_server_without_history_says_so(self, tmp_path):
        """On every surface alike."""
        with (
            served(councils(write_config(tmp_path))) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            client.post("/api/sessions", params={"wait": 9}, json=QUESTION)
            for path in ("sessions", "leaderboard", "audit", "sessions/last/paper?as=ines"):
                told = client.get(f"/api/{path}")
                assert told.status_code == 409
                assert told.json()["detail"].startswith("this server keeps no history; ")

    def test_a_council_that_cannot_be_seated_is_a_server_error(self, tmp_path):
        """On every surface; retrying does not help."""
        file = tmp_path / "council.toml"
        file.write_text('members = ["script:no.toml", "script:no.toml"]\n', encoding="utf-8")
        chat = {"model": "witan", "messages": [{"role": "user", "content": "Is it so?"}]}
        with (
            served(councils(file)) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            native = client.post("/api/sessions", json=QUESTION)
            planned = client.post("/api/plan", json=QUESTION)
            chatted = client.post("/v1/chat/completions", json=chat)

        assert [each.status_code for each in (native, planned, chatted)] == [503, 503, 503]
        assert native.json()["detail"] == planned.json()["detail"]
        assert chatted.json()["error"]["message"] == native.json()["detail"]
        assert chatted.headers["X-Should-Retry"] == "false"


@pytest.fixture(scope="module")
def server(folder, history):
    """A server with the tokens of a team and of Ada."""
    names = ("team", "ada")
    tokens = {name: TokenSettings(name, "the settings", f"{name.upper()}_KEY") for name in names}
    keys = {f"{name.upper()}_KEY": f"the-token-of-{name}-4711-0815" for name in names}
    settings = ServeSettings(tokens=tokens)
    with served(councils(write_config(folder), history), settings, keys) as server:
        yield server


class _BrokenCounters(Metrics):
    """Counters with a programming error."""

    def text(self, under_way: int, streams: int) -> bytes:
        raise ZeroDivisionError(f"{under_way} / {streams} in /srv/witan")


class TestInternalErrors:
    """Internal errors are reported as such and logged."""

    def test_an_internal_error_hides_its_cause(self, folder, caplog):
        """The connection stays open, and the log has the traceback under the request id."""
        with (
            served(councils(write_config(folder)), metrics=_BrokenCounters()) as server,
            httpx2.Client(base_url=server.url, timeout=60) as client,
        ):
            told = client.get("/metrics")
            after = client.get("/healthz")

        assert told.status_code == 500
        assert "internal error" in told.json()["detail"]
        assert told.headers["X-Content-Type-Options"] == "nosniff"
        assert after.status_code == 200
        [logged] = [each for each in caplog.records if each.exc_info is not None]
        assert logged.fields["request"] == told.headers["Witan-Request"]


class TestVoters:
    """With tokens, each client votes as itself."""

    def _ask(self, server, token, session, **vote):
        headers = {"X-Api-Key": f"the-token-of-{token}-4711-0815"}
        with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client:
            here = f"/api/sessions/{quote(session, safe='')}"
            person = {"as": vote["as"]} if "as" in vote else {}
            paper = client.get(f"{here}/paper", params=person).json()
            ranking = " > ".join(paper["answers"])
            body = {"ranking": ranking, "paper": paper["paper"], **vote}
            return paper, client.post(f"{here}/votes", json=body)

    @pytest.mark.parametrize(
        ("token", "vote", "voter"),
        [("ada", {}, "ada"), ("team", {"as": "ines"}, "team/ines"),
         ("team", {"as": "team/bo"}, "team/bo"), ("team", {"as": "ada"}, "team/ada"),
         ("team", {"as": "team"}, "team")],
    )  # fmt: skip
    def test_a_vote_belongs_to_the_token_or_a_name_under_it(self, server, token, vote, voter):
        """The reply says for whom it was counted."""
        paper, told = self._ask(server, token, "a b", **vote)

        assert paper["reviewer"] == voter
        assert told.json()["reviewer"] == voter

    @pytest.mark.parametrize(("name", "voter"), [("", "team"), ("ada", "team/ada")])
    def test_a_client_sees_the_record_of_its_own_votes_alone(self, server, name, voter):
        """Under whatever name it asks, as a program and on the page."""
        self._ask(server, "ada", "a b", replace=True)
        self._ask(server, "team", "a b", replace=True, **({"as": name} if name else {}))
        headers = {"X-Api-Key": "the-token-of-team-4711-0815"}
        with httpx2.Client(base_url=server.url, headers=headers, timeout=60) as client:
            query = {"as": name} if name else {}
            record = client.get("/api/votes", params=query).json()
            page = client.get("/votes", params={**query, "show": "whole"})

        assert record["reviewer"] == voter
        assert voter in page.text

    def test_a_client_cannot_withdraw_the_vote_of_another(self, server, history):
        """Under any spelling of the name."""
        self._ask(server, "ada", "why?")
        _, told = self._ask(server, "team", "why?", **{"as": "ada", "replace": True})

        assert told.json()["replaced"] is False
        voters = {b.reviewer for b in history.ballots("why?") if b.kind == "human"}
        assert {"ada", "team/ada"} <= voters
