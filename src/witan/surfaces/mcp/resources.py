"""Resources at their addresses, and prompts with their arguments."""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import Parameter, cleandoc, signature
from types import MappingProxyType
from typing import Annotated, Any, get_type_hints
from urllib.parse import unquote

import anyio
import mcp_types as types

from witan.errors import MissingParameter, UnknownName
from witan.history import SessionSummary
from witan.service.catalogue import CATALOGUE, Operation, find_operation, redact
from witan.service.dispatch import dispatch
from witan.service.json_output import to_json
from witan.service.operations.sessions import ShowParameters, show
from witan.service.sessions.manager import Service
from witan.service.sessions.spending import LOCAL
from witan.surfaces.mcp.replies import address
from witan.surfaces.report.session import origin_text, question_beginning
from witan.surfaces.session_pages import session_to_html

JSON, HTML = "application/json", "text/html"

PAGE = "/export.html"
"""Ending of the address of a session's page; a slash of a name is quoted."""

LATEST = 20
"""Sessions that are listed one by one."""

QUESTION_LENGTH = 100
"""Letters of a question that title its session."""

SESSION = "witan://sessions/"

REPORTS: Mapping[str, Operation[Any, Any]] = MappingProxyType(
    {
        f"witan://{name}": operation
        for name in CATALOGUE
        if (operation := find_operation(name)).method == "GET" and not operation.path_parameters
    }
)
"""Operations that are read without parameters."""

TEMPLATES = [
    types.ResourceTemplate(
        uri_template=f"{SESSION}{{session}}",
        name="session",
        title="A session",
        description="The whole record of a session: answers, ballots, outcome, every event; of "
        "one that came in as ballots, what is known.",
        mime_type=JSON,
    ),
    types.ResourceTemplate(
        uri_template=f"{SESSION}{{session}}{PAGE}",
        name="page",
        title="A session as one HTML file",
        description="A self-contained page without scripts; save it to a file to share the "
        "session.",
        mime_type=HTML,
    ),
]


async def list_resources(service: Service) -> list[types.Resource]:
    """List the reports, then the latest sessions."""
    reports = [
        types.Resource(uri=uri, name=each.name, description=each.summary, mime_type=JSON)
        for uri, each in REPORTS.items()
    ]
    return [*reports, *await anyio.to_thread.run_sync(_latest, service)]


def _latest(service: Service) -> list[types.Resource]:
    if service.history is None:
        return []
    return [
        types.Resource(
            uri=address(summary.session),
            name=summary.session,
            title=question_beginning(summary.question, QUESTION_LENGTH) or summary.session,
            description=_describe(summary),
            mime_type=JSON,
        )
        for summary in map(redact, service.history.find(limit=LATEST))
    ]


def _describe(summary: SessionSummary) -> str:
    parts = ("simulated" if summary.simulated else "", summary.status, origin_text(summary))
    return ", ".join([*filter(None, parts), f"{summary.at:%Y-%m-%d %H:%M} UTC"])


async def read_resource(service: Service, uri: str) -> tuple[str, str]:
    """Read a resource; return its text and media type."""
    if uri.startswith(SESSION) and uri != SESSION:
        name = unquote(uri.removeprefix(SESSION).removesuffix(PAGE))
        if uri.endswith(PAGE):
            return await dispatch(show, service, LOCAL, ShowParameters(name), session_to_html), HTML
        return await dispatch(show, service, LOCAL, ShowParameters(name), to_json), JSON
    operation = REPORTS.get(uri)
    if operation is None:
        raise UnknownName("resource", uri, [*REPORTS, *(each.uri_template for each in TEMPLATES)])
    return await dispatch(operation, service, LOCAL, operation.parameters(), to_json), JSON


Session = Annotated[str, "The session: its name, a beginning of it, or `last`."]

TRUST = (
    "Say how sure this is, from the line of trust: who voted, what is tied, what is missing, and "
    "that it is simulated, if it is. Where leaders are tied, say so instead of naming one."
)


def ask_council(
    question: Annotated[str, "The question."],
    profile: Annotated[str, "The council to ask; the configured one unless given."] = "",
) -> str:
    """Have several models answer a question and review each other's answers."""
    council = f" with the profile `{profile}`" if profile else ""
    return (
        f"Put the question below to the council, by the tool `ask`{council}. Call it with `plan` "
        "true first, and tell me what it may cost before you go on.\n\n"
        f"<question>\n{question}\n</question>\n\n"
        "Give me the final answer, then where the members disagreed (`result` with `full` true). "
        f"{TRUST}"
    )


def check_draft(
    draft: Annotated[str, "The text to check."],
    purpose: Annotated[str, "What it is to achieve, or must satisfy."] = "",
) -> str:
    """Have the council approve or reject a text before it is used."""
    aim = purpose or "to be correct, complete and safe to use"
    return (
        "Have the council judge the draft below: call `ask` with the draft in `files` as draft.md, "
        'with `options` {"mode": "verdict"}, and with the question whether the draft should be '
        f"approved. It is meant {aim}.\n\n"
        f"<draft>\n{draft}\n</draft>\n\n"
        f"Tell me whether it is approved, and every objection that members raised. {TRUST}"
    )


def judge_answers(
    question: Annotated[str, "The question that was answered."],
    answers: Annotated[str, "The answers, one after the other."],
) -> str:
    """Have the council say which of several answers is best."""
    return (
        "Have the council compare the answers below: put each into `files` of the tool `ask` under "
        "a neutral name (answer-1.md, answer-2.md, …), without its author, and ask which of them "
        "answers the question best, and why.\n\n"
        f"<question>\n{question}\n</question>\n\n<answers>\n{answers}\n</answers>\n\n"
        f"Give me the ranking that the council arrives at, with its reasons. {TRUST}"
    )


def count_ballots(
    ballots: Annotated[str, "Ballots in any format, such as CSV or JSON Lines."],
) -> str:
    """Count ballots, and say in plain words who leads and how firmly."""
    return (
        "Count the ballots below with `tally`, then with `compare`; no model is called.\n\n"
        f"<ballots>\n{ballots}\n</ballots>\n\n"
        "Tell me who leads, which differences are real and which are too close to call, whether "
        "the rules agree, and how few ballots could end the lead. "
        "Name the lines that could not be read."
    )


def review_leaderboard(
    since: Annotated[str, "Only sessions since this time: 30d, 12h or 2026-01-31."] = "",
    category: Annotated[str, "Only sessions of this category."] = "",
) -> str:
    """Explain how models fare, and how far to trust their reviewers."""
    filters = {"since": since, "category": category}
    filter_text = " and ".join(f"`{name}` {value}" for name, value in filters.items() if value)
    return (
        f"Call `leaderboard` and `audit`{f' with {filter_text}' if filter_text else ''}. Tell "
        "me which models are ahead, and which of the differences exceed their intervals; "
        "which models have too few "
        "sessions to say; and which reviewers prefer their own family, are harsh, or disagree with "
        "the others. Recommend changes to the council only where the intervals support them."
    )


def vote_blind(session: Session = "last") -> str:
    """Rank the answers of a session before you see their authors."""
    return (
        f"Call `paper` for the session {session} and show me the question and every answer under "
        "its label, word for word. Do not rank, summarize or comment on them: the vote is mine. "
        "Ask me for my ranking, best first, then call `vote` with the code of the paper, and tell "
        "me who wrote what, and where I and the panel differ."
    )


Prompt = Callable[..., str]

_PROMPTS: tuple[Prompt, ...] = (
    ask_council,
    check_draft,
    judge_answers,
    count_ballots,
    review_leaderboard,
    vote_blind,
)

PROMPTS: Mapping[str, Prompt] = {prompt.__name__: prompt for prompt in _PROMPTS}
"""Every prompt by name."""


def list_prompts() -> list[types.Prompt]:
    """Describe the prompts as the protocol lists them."""
    return [_prompt(prompt) for prompt in PROMPTS.values()]


def _prompt(prompt: Prompt) -> types.Prompt:
    hints = get_type_hints(prompt, include_extras=True)
    return types.Prompt(
        name=prompt.__name__,
        title=prompt.__name__.replace("_", " ").capitalize(),
        description=cleandoc(prompt.__doc__ or ""),
        arguments=[
            types.PromptArgument(
                name=name,
                description=hints[name].__metadata__[0],
                required=each.default is Parameter.empty,
            )
            for name, each in signature(prompt).parameters.items()
        ],
    )


def write_prompt(name: str, values: Mapping[str, str]) -> types.GetPromptResult:
    """Write a prompt with its arguments, as a message of the user."""
    if name not in PROMPTS:
        raise UnknownName("prompt", name, PROMPTS)
    about = _prompt(PROMPTS[name])
    arguments = {each.name: each for each in about.arguments or ()}
    for unknown in values.keys() - arguments.keys():
        raise UnknownName(f"argument of {name}", unknown, arguments)
    for each in arguments.values():
        if each.required and not values.get(each.name, "").strip():
            raise MissingParameter(each.name, None, each.description or "a text")
    text = PROMPTS[name](**{key: value for key, value in values.items() if value.strip()})
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=about.description, messages=[message])


MOST_COMPLETIONS = 100


async def complete_argument(service: Service, name: str, value: str) -> types.Completion:
    """Complete the beginning of a session's or a profile's name."""
    names: list[str] = []
    if name == "profile":
        names = [each for each in service.profiles if each]
    elif name == "session" and service.history is not None:
        find = partial(service.history.find, limit=MOST_COMPLETIONS, simulated=None)
        names = [summary.session for summary in await anyio.to_thread.run_sync(find)]
    return types.Completion(values=[each for each in names if each.startswith(value)])
