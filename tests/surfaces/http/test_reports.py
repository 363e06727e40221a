"""The native API over real HTTP: stored sessions, recounts, reports and posted ballots."""

import gzip
import json

import httpx2
import pytest
import zstandard

from served import served
from services import councils, write_config
from witan.history import History
from witan.surfaces.cli.app import main

QUESTION = {"question": "Is it so?", "category": "coding"}

BALLOTS = "\n".join(
    json.dumps({"session": f"q{n}", "reviewer": r, "ranking": ranking})
    for n in range(12)
    for r, ranking in (("x", ["y", "z"]), ("y", ["x", "z"]), ("z", ["x", "y"]))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder of the server's files."""
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
def client(folder):
    """A client of a server with two scripted and twelve imported sessions."""
    path = folder / "ballots.jsonl"
    path.write_text(BALLOTS)
    assert main(["import", str(path), "--history", str(folder / "history.sqlite")]) == 0
    with (
        History.open(folder / "history.sqlite") as history,
        served(councils(write_config(folder), history)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        for _ in range(2):
            opened.post("/api/sessions", params={"wait": 9}, json=QUESTION)
        yield opened


class TestSessions:
    """Stored sessions are listed and searched."""

    def test_the_latest_comes_first(self, client):
        """With every field of the command's list."""
        listed = client.get("/api/sessions", params={"simulated": True}).json()["sessions"]

        assert len(listed) == 2
        assert listed[0]["at"] >= listed[1]["at"]

    @pytest.mark.parametrize(
        ("chosen", "count"),
        [({"text": "so"}, 2), ({"text": "nothing"}, 0), ({"category": "coding"}, 2),
         ({"limit": 3}, 3), ({"since": "1h", "simulated": True}, 2), ({"until": "2020-01-01"}, 0)],
    )  # fmt: skip
    def test_they_can_be_searched(self, client, chosen, count):
        """By words, category, time and count."""
        assert len(client.get("/api/sessions", params=chosen).json()["sessions"]) == count

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [({"since": "soon"}, "since"), ({"limit": 0}, "limit"), ({"status": "well"}, "status")],
    )
    def test_a_refused_parameter_is_named(self, client, wrong, said):
        response = client.get("/api/sessions", params=wrong)

        assert response.status_code == 422
        assert said in response.json()["detail"]


class TestImports:
    """An imported session has a record with what is known of it."""

    @pytest.fixture
    def record(self, client):
        """The record of one."""
        return client.get("/api/sessions/q3").json()

    def test_the_record_has_ballots_and_their_outcome(self, client, record):
        """In the shape of a record, marked as an import."""
        recounted = client.post("/api/sessions/q3/recount").json()["sessions"][0]

        assert record["witan_imported"] == 1
        assert "events" not in record
        assert (record["source"], record["text"], record["votes"]) == ("ballots.jsonl", None, [])
        assert [b["reviewer"] for b in record["ballots"]] == ["x", "y", "z"]
        assert record["outcome"]["p_beats"] == recounted["p_beats"]
        assert record["trust"].startswith("3 of 3 reviewers · ")

    def test_the_record_matches_the_command_line(self, record, folder, capsys):
        """Except for the file's folder."""
        assert main(["show", "q3", "--json", "--history", str(folder / "history.sqlite")]) == 0
        shown = json.loads(capsys.readouterr().out)

        assert shown.pop("source") == str(folder / "ballots.jsonl")
        assert shown == {n: v for n, v in record.items() if n != "source"}

    def test_the_record_can_be_imported_again(self, client, tmp_path):
        """Fields unknown to an import are ignored."""
        (tmp_path / "one.jsonl").write_text(client.get("/api/sessions/q3").text + "\n")
        place = str(tmp_path / "other.sqlite")

        assert main(["import", str(tmp_path / "one.jsonl"), "--history", place]) == 0
        with History.open(place) as history:
            assert len(history.ballots("q3")) == 3

    def test_it_is_exported_as_one_file(self, client):
        """With standings and ballots, without links to the server."""
        page = client.get("/api/sessions/q3/export.html")

        assert page.status_code == 200
        assert "imported from ballots.jsonl" in page.text
        assert "y &gt; z" in page.text
        for tag in ("<script", "<form", "<link", 'href="/'):
            assert tag not in page.text

    def test_it_cannot_be_cancelled(self, client):
        """Like any finished session: the reply is its record."""
        assert client.post("/api/sessions/q3/cancel").json()["session"] == "q3"

    def test_a_session_that_cannot_be_counted_is_shown(self, client, folder):
        """With the reason in place of an outcome."""
        line = {"witan_imported": 1, "session": "e1", "answers": {"y": "It is y."}, "ballots": []}
        (folder / "none.jsonl").write_text(json.dumps(line))
        place = str(folder / "history.sqlite")
        assert main(["import", str(folder / "none.jsonl"), "--history", place]) == 0
        record = client.get("/api/sessions/e1").json()
        client.delete("/api/sessions/e1")

        assert record["outcome"] is None
        assert "ranks or grades anything" in record["not_counted"]
        assert record["answers"] == {"y": "It is y."}


class TestRecounting:
    """A stored session is recounted without a call."""

    def test_under_another_rule(self, client):
        """The ballots are the same."""
        [last, _] = client.get("/api/sessions", params={"simulated": True}).json()["sessions"]
        told = client.post(
            f"/api/sessions/{last['session']}/recount", json={"rule": "schulze"}
        ).json()

        assert told["sessions"][0]["rule"] == "schulze"
        assert told["sessions"][0]["n_ballots"] == 3

    def test_without_a_reviewer(self, client):
        """Its ballot is left out; its answer stays."""
        told = client.post("/api/sessions/last/recount", json={"without": ["ada"]}).json()

        assert told["sessions"][0]["n_ballots"] == 2
        assert len(told["sessions"][0]["standings"]) == 3

    def test_an_imported_session(self, client):
        """It has no events and counts all the same."""
        told = client.post("/api/sessions/q3/recount", json={"rule": "borda"}).json()

        assert told["sessions"][0]["leaders"] == ["x"]

    @pytest.mark.parametrize(
        ("body", "said"),
        [({"rule": "bordas"}, "borda"), ({"without": ["eve"]}, "eve"),
         ({"level": 2}, "level"), ({"levle": 0.9}, "levle")],
    )  # fmt: skip
    def test_a_refused_parameter_is_named(self, client, body, said):
        """With the nearest name, where there is one."""
        response = client.post("/api/sessions/last/recount", json=body)

        assert response.status_code == 422
        assert said in response.json()["detail"]


class TestVoting:
    """People vote blind, then see the names."""

    def test_authors_are_hidden_until_the_vote(self, client):
        """Then every label has a name."""
        paper = client.get("/api/sessions/last/paper", params={"as": "ines"})
        assert not {"ada", "bob", "cyd"} & {*json.dumps(paper.json()["answers"]).lower().split()}
        ranking = " > ".join(paper.json()["answers"])
        vote = {"as": "ines", "ranking": ranking, "paper": paper.json()["paper"]}
        revealed = client.post("/api/sessions/last/votes", json=vote)

        assert {"ada", "bob", "cyd"} <= {*revealed.text.replace('"', " ").split()}
        again = client.post("/api/sessions/last/votes", json=vote)
        assert again.status_code == 409
        assert "replace" in again.json()["detail"]
        assert (
            client.post("/api/sessions/last/votes", json={**vote, "replace": True}).status_code
            == 200
        )

    @pytest.mark.parametrize(
        ("paper", "said"),
        [
            ({}, "paper is missing; expected the code"),
            (
                {"paper": "aaaaaa"},
                "paper cannot be 'aaaaaa'; expected the code of the paper of kim",
            ),
        ],
    )
    def test_labels_need_their_paper(self, client, paper, said):
        """Labels differ between voters; a missing or wrong paper is refused."""
        vote = {"as": "kim", "ranking": "A > B > C", **paper}
        response = client.post("/api/sessions/last/votes", json=vote)

        assert response.status_code == 422
        assert said in response.json()["detail"]
        assert "labels differ between voters" in response.json()["detail"]

    def test_names_work_without_a_paper(self, client):
        vote = {"as": "lea", "ranking": "cyd > ada = bob"}
        told = client.post("/api/sessions/last/votes", json=vote).json()

        assert {line["candidate"]: line["rank"] for line in told["answers"]} == {
            "cyd": 1, "ada": 2, "bob": 2,
        }  # fmt: skip

    def test_an_invalid_ranking_is_refused(self, client):
        """The error names the missing or unknown label."""
        response = client.post("/api/sessions/last/votes", json={"as": "bo", "ranking": "Q > R"})

        assert response.status_code == 422
        assert "Q" in response.json()["detail"]


class TestReports:
    """Leaderboard and audit are those of the command line."""

    def test_the_leaderboard_orders_models(self, client):
        """Simulated sessions are excluded."""
        board = client.get("/api/leaderboard", params={"min_sessions": 5}).json()

        assert board["lines"][0]["model"] == "x"
        assert {line["sessions"] for line in board["lines"]} == {12}

    def test_the_audit_covers_every_reviewer(self, client):
        """Or one on request."""
        whole = client.get("/api/audit").json()
        one = client.get("/api/audit", params={"reviewer": "y"}).json()

        assert {line["reviewer"] for line in whole["reviewers"]} == {"x", "y", "z"}
        assert [line["reviewer"] for line in one["reviewers"]] == ["y"]

    def test_a_report_without_sessions_is_an_error(self, client):
        """Not an empty table."""
        response = client.get("/api/leaderboard", params={"category": "nothing"})

        assert response.status_code == 409
        assert "session" in response.json()["detail"]


class TestPosted:
    """Posted ballots are counted and not stored."""

    def test_the_count_matches_the_command_line(self, client):
        """Under the requested rule."""
        told = client.post("/api/tally", params={"rule": "borda"}, content=BALLOTS).json()

        assert len(told["sessions"]) == 12
        assert told["sessions"][0]["leaders"] == ["x"]

    @pytest.mark.parametrize("scale", [None, "0-1"])
    def test_the_scale_of_grades_is_reported(self, client, scale):
        """Recognised or set by parameter; every grade counts."""
        graded = [{"reviewer": f"r{k}", "grades": {"x": 0.9, "y": 0, "z": k / 10}} for k in (3, 4)]
        asked = {"rule": "range"} | ({} if scale is None else {"scale": scale})
        lines = "\n".join(map(json.dumps, graded))
        [told] = client.post("/api/tally", params=asked, content=lines).json()["sessions"]

        assert [line["candidate"] for line in told["standings"]] == ["x", "z", "y"]
        assert [line["votes"] for line in told["standings"]] == [2, 2, 2]
        assert told["scales"] == [{"scale": "0-1", "recognised": scale is None, "instead": []}]

    def test_ballots_and_settings_are_accepted_as_json(self, client):
        """Ballots as objects or as a file's text; every setting by name."""
        ballots = [
            {"session": "q", "reviewer": "ada", "ranking": ["x", ["y", "z"]]},
            {"session": "q", "reviewer": "bob", "ranking": ["y", "x", "z"]},
        ]
        body = {
            "ballots": ballots,
            "rule": "borda",
            "parameters": {"variant": "roster"},
            "weights": {"bob": 5},
            "rho": "none",
            "level": 0.9,
            "flips": False,
            "answers": {"q": {"z": "ok"}},
        }
        [found] = client.post("/api/tally", json=body).json()["sessions"]
        text = "\n".join(map(json.dumps, ballots))
        again = client.post("/api/tally", json=body | {"ballots": text}).json()["sessions"]

        assert (found["leaders"], found["level"], found["rho"]) == (["y"], 0.9, None)
        assert (found["parameters"]["variant"], found["ballots_to_flip"]) == ("roster", None)
        assert again == [found]

    def test_unknown_json_fields_are_refused(self, client):
        """In the body and in a ballot; JSON excludes query parameters."""
        for body, params in (
            ({"ballots": "", "weight": {}}, {}),
            ({"ballots": [{"reviewer": "ada", "rank": []}]}, {}),
            ({"ballots": BALLOTS}, {"rule": "borda"}),
        ):
            assert client.post("/api/tally", json=body, params=params).status_code == 422

    def test_an_ambiguous_scale_is_refused(self, client):
        """With both readings, as parameters."""
        line = {"reviewer": "r", "grades": {"x": 7, "y": 85, "z": 9}}
        response = client.post("/api/tally", content=json.dumps(line))

        assert response.status_code == 422
        assert all(
            fact in response.json()["detail"] for fact in ("scale=1-10 clamps 1", "scale=0-100")
        )

    def test_valid_lines_count_beside_invalid_ones(self, client):
        """The invalid ones are named."""
        told = client.post("/api/tally", content=BALLOTS + "\nnot a ballot\n").json()

        assert len(told["sessions"]) == 12
        assert told["not_read"][0]["line"] == 37

    def test_an_unknown_session_is_refused(self, client):
        """A misspelt name is an error that lists the known ones."""
        response = client.post("/api/tally", params={"sessions": ["q1", "zz"]}, content=BALLOTS)

        assert response.status_code == 422
        assert "'zz'" in response.json()["detail"]
        assert "q1" in response.json()["detail"]

    @pytest.mark.parametrize(
        ("line", "times", "said"),
        [
            (b"\n", 1_000_001, "1,000,001 lines of ballots exceed the limit of 1,000,000"),
            (b"\0", 90_000_000, "4,194,305 bytes of one line exceed the limit of 4,194,304"),
            (
                b" " * 99_999 + b"\n",
                700,
                "67,108,865 bytes of unpacked ballots exceed the limit of",
            ),
            (
                b'{"reviewer"\n',
                10_001,
                "10,001 lines that cannot be read exceed the limit of 10,000",
            ),
            pytest.param(
                b"2\n1,a\n2,b\n9,9,1\n999999,1,2\n",
                1,
                "100,001 posted ballots exceed the limit of",
                marks=pytest.mark.slow,
            ),
        ],
    )
    def test_a_compressed_body_has_a_size_limit(self, client, line, times, said):
        """It is refused as soon as the unpacked size exceeds the limit."""
        pack = zstandard.compress if times == 1_000_001 else gzip.compress
        response = client.post("/api/tally", content=pack(line * times))

        assert response.status_code == 413
        assert said in response.json()["detail"]

    @pytest.mark.parametrize("path", ["tally", "compare", "explain"])
    @pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"{", b"a,b\n1,2\n", b"[]"])
    def test_a_file_without_ballots_is_refused(self, client, path, content):
        """With the expected format."""
        response = client.post(f"/api/{path}", content=content)

        assert 400 <= response.status_code < 500
        assert response.json()["detail"]

    def test_rules_are_compared(self, client):
        """Side by side."""
        told = client.post("/api/compare", params={"rules": "borda,schulze"}, content=BALLOTS)

        assert told.json()["rules"] == ["borda", "schulze"]

    def test_rules_are_compared_on_selected_sessions(self, client):
        """The summary covers only these; a misspelt one is refused."""
        asked = {"rules": "borda,schulze", "sessions": "q1"}
        told = client.post("/api/compare", params=asked, content=BALLOTS).json()
        refused = client.post("/api/compare", params={"sessions": "zz"}, content=BALLOTS)

        assert told["n_sessions"] == 1
        assert [each["session"] for each in told["sessions"]] == ["q1"]
        assert refused.status_code == 422
        assert "'zz'" in refused.json()["detail"]

    def test_a_count_is_explained(self, client):
        """Step by step, for one session."""
        told = client.post("/api/explain", params={"session": "q1"}, content=BALLOTS).json()

        assert len(told["steps"]) > 2


class TestCatalogues:
    """Lists of what can be chosen."""

    def test_rules_rubrics_and_profiles_are_listed(self, client):
        """With their purpose."""
        rules = client.get("/api/rules").json()["rules"]
        rubrics = client.get("/api/rubrics").json()["rubrics"]
        profiles = client.get("/api/profiles").json()["profiles"]

        assert "schulze" in {rule["name"] for rule in rules}
        assert "general" in {rubric["name"] for rubric in rubrics}
        assert [p["name"] for p in profiles] == ["", "demo"]
