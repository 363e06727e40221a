"""The prompts for users, read by the protocol's own client."""

import re

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from mcp_clients import command, over_http
from served import served
from services import councils, write_config
from witan.history import History
from witan.surfaces.mcp.tools import TOOLS

pytestmark = pytest.mark.anyio

NAMES = [
    "ask_council", "check_draft", "count_ballots", "review_leaderboard",
    "vote_blind",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of three scripted members."""
    with served(councils(write_config(tmp_path_factory.mktemp("council")))) as running:
        yield running


@pytest.fixture
async def client(server):
    """A client of the server."""
    async with over_http(server.url) as connected:
        yield connected


@pytest.mark.slow
async def test_standard_input_offers_the_same_prompts(tmp_path):
    """They are also written with their arguments."""
    async with Client(command(write_config(tmp_path))) as client:
        listed = (await client.list_prompts()).prompts
        written = await client.get_prompt("ask_council", {"question": "Is it so?"})

    assert [each.name for each in listed] == NAMES
    assert "Is it so?" in written.messages[0].content.text


async def test_every_prompt_has_a_title_and_descriptions(client):
    """A sentence for the prompt, and one for each argument."""
    listed = (await client.list_prompts()).prompts

    assert [each.name for each in listed] == NAMES
    for prompt in listed:
        assert prompt.title
        assert prompt.description
        assert all(argument.description for argument in prompt.arguments)


@pytest.mark.parametrize("name", NAMES)
async def test_every_prompt_mentions_existing_tools(client, name):
    """As a message of the user, with every argument in it."""
    [prompt] = [each for each in (await client.list_prompts()).prompts if each.name == name]
    given = {argument.name: f"my {argument.name}" for argument in prompt.arguments}
    [message] = (await client.get_prompt(name, given)).messages
    named = re.findall(r"`(\w+)`", message.content.text)
    tools = (await client.list_tools()).tools
    arguments = {name for tool in tools for name in tool.input_schema["properties"]}

    assert message.role == "user"
    assert all(value in message.content.text for value in given.values())
    assert {*named} <= TOOLS.keys() | arguments


async def test_optional_arguments_may_be_omitted(client):
    """The text does not mention them."""
    plain = (await client.get_prompt("review_leaderboard", {"since": " "})).messages[0]
    chosen = (await client.get_prompt("review_leaderboard", {"since": "30d"})).messages[0]

    assert "since" not in plain.content.text
    assert "`since` 30d" in chosen.content.text


async def test_names_of_sessions_and_profiles_are_completed(tmp_path):
    """From their beginnings, wherever a prompt or an address takes one."""
    with (
        History.open(tmp_path / "history.sqlite") as history,
        served(councils(write_config(tmp_path), history)) as server,
    ):
        async with over_http(server.url) as client:
            asked = await client.call_tool("ask", {"question": "Is it so?"})
            session = asked.structured_content["session"]
            vote = PromptReference(name="vote_blind")
            page = ResourceTemplateReference(uri="witan://sessions/{session}")
            ask = PromptReference(name="ask_council")
            found = [
                (await client.complete(ref, {"name": name, "value": value})).completion.values
                for ref, name, value in (
                    (vote, "session", session[:4]),
                    (page, "session", session),
                    (page, "session", "nothing"),
                    (ask, "profile", "de"),
                    (ask, "question", "d"),
                )
            ]

    assert found == [[session], [session], [], ["demo"], []]


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("ask_council", {}, "question is missing; expected a text"),
        ("ask_council", {"question": "So?", "profil": "x"}, "did you mean 'profile'"),
        ("ask_concil", {}, "did you mean 'ask_council'"),
    ],
)
async def test_an_invalid_request_is_an_error(client, name, given, said):
    """In the form of the protocol."""
    with pytest.raises(MCPError, match=said):
        await client.get_prompt(name, given)
