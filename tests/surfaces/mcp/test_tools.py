"""Tools and resources, called by the protocol's own client."""

import json
from dataclasses import dataclass, field
from threading import Event
from typing import Annotated

import anyio
import pytest
from jsonschema import Draft202012Validator

from lessons import lessons
from mcp_clients import over_http, text_of
from served import served
from services import councils, write_config
from witan.history import History
from witan.service.parameters import Constraint, Doc, Parameters
from witan.service.worker_pool import AT_ONCE, run_counting
from witan.surfaces.mcp.tools import ArgumentSchemas, arguments_of

pytestmark = pytest.mark.anyio

QUESTION = {"question": "Is it so?"}

BALLOTS = "\n".join(
    json.dumps({"session": "q1", "reviewer": name, "ranking": ranking})
    for name, ranking in {
        "ada": ["x", "y", "z"],
        "bob": ["x", "y", "z"],
        "cyd": ["x", "z", "y"],
        "dee": ["y", "x", "z"],
    }.items()
)

CHANGING = {"ask", "judge", "cancel", "resume", "retry", "rejudge", "vote", "forget"}
"""The tools that do more than read."""

LISTED_BYTES = 16_960
"""Of the list of tools as JSON: 4,000 tokens of o200k, of which one is 4.24 bytes here."""


@dataclass(frozen=True)
class TrialSettings(Parameters):
    """Settings of a trial."""

    as_: Annotated[str | None, Doc("By this name.")] = None
    level: Annotated[float, Doc("Confidence level.")] = 0.95


@dataclass(frozen=True)
class Trial(Parameters):
    """Parameters of a trial."""

    most: Annotated[int, Doc("How many; by default ten.")] = 10
    mark: Annotated[int, Constraint(ge=1), Doc("What passes.", brief="From 1 up")] = 1
    seed: Annotated[int | None, Doc("Seed of the draws.", brief="")] = None
    options: Annotated[TrialSettings, Doc("Settings.")] = field(default_factory=TrialSettings)


def compact_json(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of three scripted members whose history has sixty sessions."""
    folder = tmp_path_factory.mktemp("council")
    with History.open(folder / "history.sqlite") as history:
        history.add(lessons(60, people=30), "lessons", "lessons")
        with served(councils(write_config(folder), history)) as running:
            yield running


@pytest.fixture(scope="module")
async def latest(server):
    """A closed session."""
    async with over_http(server.url) as connected:
        return (await connected.call_tool("ask", QUESTION)).structured_content["session"]


@pytest.fixture
async def client(server):
    """A client of it."""
    async with over_http(server.url) as connected:
        yield connected


@pytest.fixture
async def session(client):
    """The name of a closed session."""
    return (await client.call_tool("ask", QUESTION)).structured_content["session"]


class TestListing:
    """The list of tools that a client reads first."""

    async def test_every_tool_describes_its_arguments_and_effect(self, client):
        """Schemas are valid; tools that only read, or delete, are marked."""
        tools = (await client.list_tools()).tools

        for tool in tools:
            assert tool.description
            assert tool.output_schema["properties"]
            assert all("type" in each for each in tool.output_schema["properties"].values())
            assert tool.input_schema["type"] == "object"
            for schema in (tool.input_schema, tool.output_schema):
                Draft202012Validator.check_schema(schema)
        changing = [t for t in tools if not t.annotations.read_only_hint]
        assert {t.name for t in changing} == CHANGING
        assert {t.name for t in changing if t.annotations.destructive_hint is not False} == {
            "forget", "vote",
        }  # fmt: skip

    async def test_the_list_is_short(self, client):
        """An agent pays for every word of it in each conversation."""
        listed = [
            each.model_dump(mode="json", by_alias=True, exclude_none=True)
            for each in (await client.list_tools()).tools
        ]
        sizes = {each["name"]: len(compact_json(each)) for each in listed}
        largest = ", ".join(f"{name} {sizes[name]}" for name in sorted(sizes, key=sizes.get)[::-1])

        assert len(compact_json(listed)) <= LISTED_BYTES, f"bytes by tool: {largest}"

    def test_arguments_are_described_briefly_and_once(self):
        """By their text for agents, or the first clause; nothing is repeated."""
        schemas = ArgumentSchemas()
        first, second = (
            schemas.write(tool, arguments_of(Trial))["properties"] for tool in ("one", "two")
        )

        assert [each.get("description") for each in first.values()] == [
            "How many", "From 1 up", None, "Settings: as, level",
        ]  # fmt: skip
        assert [each.get("description") for each in second.values()] == [
            None, None, None, "as of `one`",
        ]  # fmt: skip

    async def test_the_server_states_its_purpose(self, client):
        """Models read there when to use it."""
        assert "council of models" in client.instructions
        assert client.server_info.name == "witan"


class TestVerdicts:
    """A text comes with the warnings that it needs."""

    async def test_the_trust_line_follows_the_text(self, client):
        """A simulation warning; the text, its authors, its trust line and the session's name."""
        result = await client.call_tool("ask", QUESTION)
        parts = text_of(result).split("\n\n")

        assert parts[0] == "simulated"
        assert "as [A] has it" in parts[1]
        assert parts[2].startswith("[A] ")
        assert "3 of 3 reviewers" in parts[3]
        assert result.structured_content["session"] in parts[4]

    async def test_a_degraded_session_begins_with_a_warning(self, tmp_path):
        """It says what is missing."""
        file = write_config(tmp_path, synthesis=[{"error": "out of order", "status": 400}])
        with served(councils(file)) as server:
            async with over_http(server.url) as client:
                result = await client.call_tool("ask", QUESTION)

        assert text_of(result).startswith("simulated · degraded: ")
        assert result.structured_content["status"] == "degraded"

    async def test_a_session_without_a_text_is_an_error(self, tmp_path):
        """The error names each silent member with its reason."""
        file = write_config(tmp_path, answer=[{"error": "out of order", "status": 400}])
        with served(councils(file)) as server:
            async with over_http(server.url) as client:
                result = await client.call_tool("ask", QUESTION)
                session = result.structured_content["session"]
                again = await client.call_tool("cancel", {"session": session})

        assert text_of(again).endswith("It has no final answer; `result` explains why.")
        assert result.is_error
        assert "There is no final answer." in text_of(result)
        assert "out of order" in text_of(result)
        assert result.structured_content["status"] == "failed"

    async def test_the_whole_session_is_available_on_request(self, client, session):
        """With its answers and ballots."""
        result = await client.call_tool("result", {"session": session, "full": True})

        assert "Bob says so." in text_of(result)
        assert "### Ballots" in text_of(result)


class TestScales:
    """Ballots are counted on the scale of their grades."""

    @pytest.mark.parametrize("scale", [None, "0-1"])
    async def test_the_scale_is_stated(self, client, scale):
        """In the text."""
        lines = [{"reviewer": f"r{k}", "grades": {"x": 0.9, "y": k / 10}} for k in (3, 4)]
        body = {"ballots": "\n".join(map(json.dumps, lines))}
        result = await client.call_tool(
            "tally", body if scale is None else body | {"options": {"scale": scale}}
        )

        assert "grades are read as 0-1" in text_of(result)
        assert result.structured_content["sessions"][0]["leaders"] == ["x"]


class TestErrors:
    """Errors are sentences in the result of the call."""

    @pytest.mark.parametrize(
        ("tool", "arguments", "said"),
        [
            ("ask", {}, "question: it is needed"),
            ("ask", {**QUESTION, "foo": 1}, "foo: there is no such argument"),
            ("vote", {"foo": 1}, "only session, as, ranking"),
            ("profiles", {"foo": 1}, "foo: it takes none"),
            ("ask", {**QUESTION, "profile": "fats"}, "unknown profile 'fats'"),
            ("ask", {**QUESTION, "members": ["cmd:sh", "ada"]}, "unknown seat 'cmd:sh'"),
            ("ask", {**QUESTION, "options": {"rule": "bordas"}}, "did you mean 'borda'"),
            (
                "ask",
                {**QUESTION, "options": {"history": "x"}},
                "options.history: there is no such argument, only rule, rubric",
            ),
            ("cancel", {"session": "nothing"}, "unknown session 'nothing'"),
            ("result", {"session": "last", "wait": 10_000}, "wait: "),
            ("resume", {"session": "last"}, "nothing to resume"),
            ("tally", {"ballots": ""}, "no ballot"),
            ("tally", {"ballots": BALLOTS, "rule": "bordas"}, "did you mean 'borda'"),
            ("recount", {"session": "last", "without": ["zoe"]}, "zoe"),
            ("sessions", {"since": "soon"}, "since"),
            ("tally", {"ballots": "a,b,c\n1,2,3\n"}, "columns reviewer=HEADER, outcome=HEADER"),
            ("tally", {"ballots": BALLOTS, "options": {"columns": ["x"]}}, "options.columns: "),
            ("tally", {"ballots": BALLOTS, "options": {"level": 2}}, "options.level: "),
            ("paper", {"session": "last"}, "as is missing"),
            ("audit", {"reviewer": "zoe"}, "zoe"),
            ("audit", {"criterion": "zest"}, "zest"),
            ("vote", {"session": "last", "as": "ines", "ranking": "A"}, "ines"),
        ],
    )
    async def test_errors_name_the_problem(self, client, latest, tool, arguments, said):
        """Without a traceback or an internal name."""
        result = await client.call_tool(tool, arguments)

        assert latest
        assert result.is_error
        assert said in text_of(result)
        assert "Traceback" not in text_of(result)
        assert "pydantic" not in text_of(result)

    async def test_lists_and_objects_are_accepted_as_text(self, client):
        """Some clients send them so."""
        arguments = {**QUESTION, "options": '{"rule": "schulze"}', "members": '["ada", "bob"]'}
        result = await client.call_tool("ask", arguments)

        again = {"session": result.structured_content["session"]}
        counted = (await client.call_tool("recount", again)).structured_content
        assert counted["rule"] == "schulze"
        assert len(counted["standings"]) == 2


class TestCounting:
    """Ballots are counted as on the command line."""

    async def test_ballots_are_tallied(self, client):
        """In any format of ballot files."""
        result = await client.call_tool("tally", {"ballots": BALLOTS, "rule": "borda"})
        csv = "session,reviewer,candidate,rank\nq1,ada,x,1\nq1,ada,y,2\nq1,bob,x,1\nq1,bob,y,2\n"
        other = await client.call_tool("tally", {"ballots": csv, "options": {"level": 0.9}})

        [told] = result.structured_content["sessions"]
        assert told["leaders"] == ["x"]
        assert "**Outcome · q1**" in text_of(result)
        assert "90% interval" in text_of(other)

    @pytest.mark.parametrize("write", [dict, json.dumps], ids=["an object", "a text"])
    async def test_columns_are_named_within_the_options(self, client, write):
        """The options have a table for them, and may be an object or text."""
        csv = "q,critic,reply,rank\n1,ada,x,1\n1,ada,y,2\n2,ada,y,1\n2,ada,x,2\n"
        columns = {"session": "q", "reviewer": "critic", "candidate": "reply"}
        arguments = {"ballots": csv, "options": write({"columns": columns})}
        result = await client.call_tool("tally", arguments)

        counted = result.structured_content["sessions"]
        assert [(one["session"], one["leaders"]) for one in counted] == [("1", ["x"]), ("2", ["y"])]

    async def test_an_imported_session_is_recounted(self, client):
        """It has ballots but no record."""
        arguments = {"session": "lesson 3", "rule": "borda"}
        result = await client.call_tool("recount", arguments)

        assert result.structured_content["rule"] == "borda"

    async def test_an_unreadable_line_is_reported(self, client):
        """Beside the outcome of the others."""
        result = await client.call_tool("tally", {"ballots": BALLOTS + "\n{}\nnonsense\n"})

        assert not result.is_error
        assert [each["line"] for each in result.structured_content["not_read"]] == [5, 6]
        assert "### Not read" in text_of(result)

    async def test_rules_are_compared(self, client):
        """The requested ones."""
        arguments = {"ballots": BALLOTS, "rules": ["borda", "schulze"]}
        result = await client.call_tool("compare", arguments)

        assert [*result.structured_content["stability"]] == ["borda", "schulze"]
        assert "How stable each rule is" in text_of(result)

    async def test_a_session_is_recounted(self, client, session):
        """Under another rule, without a reviewer."""
        arguments = {"session": session, "rule": "tournament", "without": ["bob"]}
        result = await client.call_tool("recount", arguments)

        assert not result.is_error, text_of(result)
        assert result.structured_content["rule"] == "tournament"
        assert "2 of 2 reviewers" in text_of(result)
        assert text_of(result).startswith("**Simulated outcome")


class TestWaiting:
    """Long counts wait for a slot; short calls do not."""

    @pytest.fixture
    def counting(self, server):
        """Occupy every slot for counts until the event is set."""
        over = Event()
        held = [
            server.portal.start_task_soon(run_counting, over.wait, of)
            for of in ("history", "session", "upload")
            for _ in range(AT_ONCE)
        ]
        yield over
        over.set()
        for each in held:
            each.result(5)

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("tally", {"ballots": BALLOTS}),
            ("compare", {"ballots": BALLOTS}),
            ("recount", {"session": "lesson 3"}),
            ("leaderboard", {}),
            ("audit", {}),
        ],
    )
    async def test_counts_wait_for_earlier_ones(self, client, counting, tool, arguments):
        """Then they are counted."""
        came = []

        async def call():
            came.append(await client.call_tool(tool, arguments))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            listed = await client.call_tool("sessions", {})
            await anyio.sleep(0.1)
            assert not listed.is_error
            assert not came
            counting.set()

        assert not came[0].is_error


class TestHistory:
    """Stored sessions can be searched, summarized, voted on and deleted."""

    async def test_sessions_are_found_by_their_words(self, client):
        """The list has their names."""
        told = await client.call_tool("ask", {"question": "Is a walrus a mammal?"})
        found = await client.call_tool("sessions", {"text": "walrus"})

        [line] = found.structured_content["sessions"]
        assert line["session"] == told.structured_content["session"]
        assert "Is a walrus a mammal?" in text_of(found)

    @pytest.mark.parametrize(("tool", "said"), [("leaderboard", "test:ada"), ("audit", "test:bo")])
    async def test_the_history_is_summarized(self, client, tool, said):
        """As text for a reader and as an object for a program."""
        result = await client.call_tool(tool, {})

        assert said in text_of(result)
        assert said in json.dumps(result.structured_content)

    async def test_a_person_votes_blind_then_sees_the_authors(self, client, session):
        """A second vote is refused, unless it replaces the first."""
        who = {"session": session, "as": "ines"}
        paper = await client.call_tool("paper", who)
        unnamed = await client.call_tool("vote", {**who, "ranking": "A > B = C"})
        who["paper"] = paper.structured_content["paper"]
        vote = await client.call_tool("vote", {**who, "ranking": "A > B = C"})
        again = await client.call_tool("vote", {**who, "ranking": "C > B = A"})
        instead = await client.call_tool("vote", {**who, "ranking": "C > B > A", "replace": True})

        assert sorted(paper.structured_content["answers"]) == ["A", "B", "C"]
        assert "ada (" not in text_of(paper)
        assert {line["candidate"] for line in vote.structured_content["answers"]} == {
            "ada", "bob", "cyd",
        }  # fmt: skip
        assert unnamed.is_error
        assert "paper is missing" in text_of(unnamed)
        assert who["paper"] in text_of(paper)
        assert again.is_error
        assert instead.structured_content["replaced"]

    async def test_a_session_is_deleted(self, client, session):
        """It is no longer found."""
        await client.call_tool("forget", {"session": session})

        assert (await client.call_tool("result", {"session": session})).is_error

    async def test_answers_are_judged_again(self, client, session):
        """In a separate session."""
        planned = await client.call_tool("rejudge", {"session": session, "plan": True})
        result = await client.call_tool("rejudge", {"session": session, "wait": 20})

        assert "review" in text_of(planned)
        assert planned.structured_content.keys() <= {
            "expected_usd", "worst_usd", "max_cost_usd", "refusal",
        }  # fmt: skip
        assert result.structured_content["session"] != session
        assert result.structured_content["status"] == "complete"

    @pytest.mark.slow
    async def test_failed_seats_are_retried(self, tmp_path):
        """Earlier replies stay unchanged."""
        with History.open(tmp_path / "history.sqlite") as history:
            file = write_config(tmp_path, synthesis=[{"error": "out of order", "status": 400}])
            with served(councils(file, history)) as server:
                async with over_http(server.url) as client:
                    await client.call_tool("ask", QUESTION)
            with served(councils(write_config(tmp_path), history)) as server:
                async with over_http(server.url) as client:
                    planned = await client.call_tool("retry", {"session": "last", "plan": True})
                    result = await client.call_tool("retry", {"session": "last", "wait": 20})

        assert "synthesis" in text_of(planned)
        assert "review" not in text_of(planned)
        assert result.structured_content["status"] == "complete"

    async def test_councils_are_listed(self, client):
        """The demonstration is always among them."""
        result = await client.call_tool("profiles", {})

        assert [p["name"] for p in result.structured_content["profiles"]] == ["", "demo"]
        assert "| demo (simulated) |" in text_of(result)


class TestResources:
    """Resources are read by their addresses."""

    @pytest.mark.parametrize(
        "name", ["sessions", "leaderboard", "audit", "rules", "rubrics", "profiles"]
    )
    async def test_reports_are_read(self, client, session, name):
        """As JSON."""
        [held] = (await client.read_resource(f"witan://{name}")).contents

        assert session
        assert held.mime_type == "application/json"
        assert json.loads(held.text)

    async def test_the_latest_sessions_are_listed_and_read(self, client, session):
        """With their questions, as whole records."""
        listed = (await client.list_resources()).resources
        [one] = [each for each in listed if each.name == session]
        [held] = (await client.read_resource(one.uri)).contents

        assert one.title == "Is it so?"
        assert json.loads(held.text)["question"] == "Is it so?"

    async def test_any_session_name_can_be_read(self, client):
        """Percent-encoded; an import has its own kind of record."""
        template, _ = (await client.list_resource_templates()).resource_templates
        [held] = (await client.read_resource("witan://sessions/lesson%203")).contents
        [page] = (await client.read_resource("witan://sessions/lesson%203/export.html")).contents
        told = await client.call_tool("result", {"session": "lesson 3", "full": True})

        assert template.uri_template == "witan://sessions/{session}"
        assert json.loads(held.text)["witan_imported"] == 1
        assert "imported from lessons" in page.text
        assert not told.is_error
        assert "imported from lessons" in text_of(told)
        assert told.structured_content["leaders"]

    async def test_a_session_is_read_as_one_page(self, client, session):
        """As by `witan show --html`, with people's votes and without scripts."""
        vote = {"session": session, "as": "ines", "ranking": "ada > bob = cyd"}
        await client.call_tool("vote", vote)
        _, template = (await client.list_resource_templates()).resource_templates
        uri = template.uri_template.replace("{session}", session)
        [held] = (await client.read_resource(uri)).contents

        assert held.mime_type == template.mime_type == "text/html"
        assert "Is it so?" in held.text
        assert "ines" in held.text
        assert "<script" not in held.text

    @pytest.mark.parametrize(
        "uri",
        ["witan://sessions/nothing", "witan://sessions/nothing/export.html", "witan://secrets"],
    )
    async def test_an_unknown_resource_is_an_error(self, client, uri):
        """In the form of the protocol."""
        with pytest.raises(Exception, match="unknown"):
            await client.read_resource(uri)

    async def test_an_unknown_resource_is_named_beside_the_known_ones(self, client):
        """Without their scheme, as addresses are taken out of errors."""
        with pytest.raises(Exception, match=r"unknown resource 'secrets'; known: .*audit"):
            await client.read_resource("witan://secrets")
