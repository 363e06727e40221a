"""Views as HTML: pages, files, and parts of live pages."""

import hashlib
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: TID251 - the gate calls it for every expression
from markupsafe import Markup

from witan.deliberation.session import Session
from witan.errors import UnknownName
from witan.history import SessionSummary
from witan.service.catalogue import redact
from witan.service.operations.ask import QuestionRequest
from witan.service.sessions.running import RunningSession
from witan.service.text import clean, end_sentence
from witan.surfaces.report.document import Block, Chart, FinalAnswer, Link, Note, Report
from witan.surfaces.report.drawing import draw_chart
from witan.surfaces.report.session import (
    cost_of,
    origin_text,
    outcome_text,
    question_beginning,
    readable_question,
)
from witan.surfaces.web.escaping import exact_html, finalize, to_html, trusted_html
from witan.surfaces.web.forms import BLANK, FilledForm, council_sections, form_fields
from witan.surfaces.web.markdown import render_html
from witan.surfaces.web.session_page import Conversation, FollowUp, conversation_of, session_page

if TYPE_CHECKING:
    from witan.core.blind_vote import PairwiseRanking
    from witan.history.ballots import Paper, VoteResult
    from witan.service.session_records import CouncilSession, ImportedSession
    from witan.service.sessions.councils import CouncilProfile
    from witan.surfaces.report.session import RecountView
    from witan.surfaces.web.live import LivePage


PAGE_POLICY = (
    "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "object-src 'none'"
)
"""The content security policy of every page of the server."""


@dataclass(frozen=True, slots=True)
class Site:
    """The context of pages: their base path, client and councils.

    `base`: prefix of every path, without a trailing slash; may be empty.
    `is_file`: whether the page is a file, with its own styles and without links to other pages or
    forms.
    `client`: the client that has signed in; empty if not required.
    `keeps`: whether sessions and people's votes are stored.
    `councils`: councils that can be asked, or that can judge texts or a session again.
    """

    base: str = ""
    is_file: bool = False
    client: str = ""
    keeps: bool = True
    councils: "tuple[CouncilProfile, ...]" = ()

    @property
    def juries(self) -> tuple[str, ...]:
        """Names of the councils that can judge."""
        return tuple(each.name for each in self.councils)

    def at(self, *parts: str) -> str:
        """Return the path of a page."""
        return "/".join([self.base, *(quote(part, safe="") for part in parts)]) or "/"

    def asset(self, name: str) -> str:
        """Return the address of an asset."""
        return asset_href(name, self.base)


SITE = Site()

LIST_CHARS = 160
"""Characters of a question in a list."""

IN_SIGHT = ("question", "profile", "members", "rule", "max_cost_usd")
"""Parameters of a question that are always visible in its form."""

ABOUT_QUESTION = ("category", "files", "parent", "conversation")
"""Parameters that belong to the question, in the first group behind *Advanced*."""


ListedSession: TypeAlias = tuple[SessionSummary, bool]
"""A session, and whether it is running here.

Its leader is hidden by default, because readers may still vote blind.
"""


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("witan.surfaces.web"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=finalize,
    )
    environment.globals["style_files"] = STYLES
    environment.filters |= {
        "address": _address,
        "question": readable_question,
        "beginning": lambda question: question_beginning(clean(question), LIST_CHARS),
        "by_day": group_by_day,
        "clean": clean,
        "cost": cost_of,
        "draw": _draw,
        "exact": exact_html,
        "kind": _kind,
        "minus": lambda text: _MINUS.sub("−", text),
        "origin": origin_text,
        "outcome": outcome_text,
        "overlong": _is_overlong,
        "prose": _render_prose,
        "range": _mark_range,
        "runs": _runs,
        "sentence": end_sentence,
    }
    return environment


_MINUS = re.compile(r"(?<![\w-])-(?=\d)")
"""The hyphen before a number, which a page replaces by a minus sign."""


_RANGE = re.compile(r"(?<=\d )\([^() ]+ to [^() ]+\)$")
"""The interval after a number."""


def _mark_range(text: str) -> Markup | str:
    """Mark the interval of a number, for a line break on phones."""
    if (found := _RANGE.search(text)) is None:
        return text
    number, interval = to_html(text[: found.start()]), to_html(found[0])
    return trusted_html(f'{number}<span class="range">{interval}</span>')


CARD_LINES, CARD_COLUMNS = 11, 40
"""Approximate lines of a card, and letters per line, without expanding."""


def _is_overlong(text: str) -> bool:
    lines = (1 + len(line) // CARD_COLUMNS for line in text.splitlines() if line.strip())
    return sum(lines) > CARD_LINES


def _render_prose(text: str, key: str = "", final: FinalAnswer | None = None) -> Markup:
    """Render a model's text, linking the citations of final answers."""
    if final is None:
        return render_html(text, key=key)
    anchor_by_label = {label: anchor for label, anchor, _ in final.citations}
    unresolved = final.unresolved_labels
    return render_html(text, anchor_by_label, unresolved, key=key, top_heading=3)


def _address(link: Link, site: Site, values: Mapping[str, str]) -> str:
    """Make the address of a link, with the page's filters."""
    if link.operation == "show":
        path = site.at("sessions", link.parameters["session"])
        count = {name: value for name, value in link.parameters.items() if name != "session"}
        return f"{path}?{urlencode(count)}#ranking" if count else path
    query = urlencode({**link.parameters, **values})
    return f"{site.at(link.operation)}{'?' if query else ''}{query}"


def _draw(chart: Chart, site: Site, values: Mapping[str, str]) -> str:
    def address(link: Link) -> str:
        return "" if site.is_file else _address(link, site, values)

    drawings = (draw_chart(chart, narrow=narrow, address=address) for narrow in (False, True))
    return trusted_html("".join(drawings))


def _kind(value: object) -> str:
    return type(value).__name__.lower()


def _runs(blocks: Sequence[Block]) -> list[tuple[str, list[Block]]]:
    """Group neighbours of one kind, so that notes make one list and concerns another."""

    def look(block: Block) -> tuple[str, bool]:
        return _kind(block), isinstance(block, Note) and block.kind == "concern"

    return [(kind, list(run)) for (kind, _), run in groupby(blocks, key=look)]


def render(template: str, /, *, site: Site = SITE, **values: Any) -> str:
    """Render a template."""
    return _environment().get_template(template).render(site=site, **values)


@lru_cache(maxsize=64)
def _macro(template: str, name: str) -> Any:
    return getattr(_environment().get_template(template).module, name)


def part(template: str, name: str, /, *values: Any) -> str:
    """Render a macro of a template for a live page."""
    return str(_macro(template, name)(*values))


def render_session(
    result: "Session | CouncilSession | ImportedSession",
    *,
    show_names: bool = False,
    recount: "RecountView | None" = None,
    site: Site = SITE,
    problem: str = "",
    misnamed: str = "",
    follow_ups: Sequence[FollowUp] = (),
) -> str:
    """Render a finished, interrupted or imported session.

    `show_names`, `recount`: as `session_page` takes them.
    `problem`: a problem that is not in its record.
    `misnamed`: the wrong name that was typed to delete it; may be empty.
    `follow_ups`: the sessions that continue it.
    """
    page = session_page(result, show_names=show_names, recount=recount)
    talk = conversation_of(
        result, show_names=show_names, councils=site.councils, follow_ups=follow_ups
    )
    words = clean(problem)
    return render("session.html", site=site, page=page, problem=words, misnamed=misnamed, talk=talk)


@dataclass(frozen=True, slots=True)
class Choice:
    """A council that can be asked.

    `words`: its name on the page: its seats.
    `members`, `jury`, `chairmen`: name and text of the seats to choose from.
    """

    name: str
    words: str
    problem: str = ""
    members: tuple[tuple[str, str], ...] = ()
    jury: tuple[tuple[str, str], ...] = ()
    chairmen: tuple[tuple[str, str], ...] = ()

    @property
    def seats(self) -> tuple[tuple[str, str], ...]:
        """All seats that can judge."""
        return (*self.members, *self.jury)


def render_ask(
    profiles: Sequence[Choice],
    *,
    demo_question: str,
    form: FilledForm = BLANK,
    plan: Report | None = None,
    latest: Sequence[ListedSession] = (),
    talk: Conversation | None = None,
    site: Site = SITE,
) -> str:
    """Render the question form, with planned cost and earlier conversation."""
    councils = [
        replace(each, words=clean(each.words), problem=clean(each.problem)) for each in profiles
    ]
    open_ = [each for each in councils if not each.problem]
    writers = dict(pair for each in open_ for pair in (*each.chairmen, *each.seats))
    jurors = [(each.words, each.seats) for each in open_ if each.seats]
    by_hand = form_fields(QuestionRequest, {}, unchosen="as configured")
    chosen = form.value("profile")
    shown = next((each for each in open_ if each.name == chosen), open_[0] if open_ else None)
    return render(
        "ask.html",
        site=site,
        profiles=councils,
        councils=[each for each in open_ if each.members],
        shown=shown,
        sections=council_sections(
            QuestionRequest, jurors, writers.items(), exclude=(*IN_SIGHT, *ABOUT_QUESTION)
        ),
        by_hand={each.name: each for each in by_hand},
        about_question=ABOUT_QUESTION,
        filled=form,
        demo_question=demo_question,
        planned=plan,
        latest=latest,
        talk=talk,
    )


def render_live(live: "LivePage", *, site: Site = SITE) -> str:
    """Render a running session; its page follows the rest."""
    talk = conversation_of(live.session, show_names=live.shows_names)
    return render("live.html", site=site, page=live.page(), live=live, talk=talk)


def export_html(
    result: "Session | CouncilSession | ImportedSession", *, show_names: bool = True
) -> str:
    """Render a session as one self-contained file without scripts."""
    page = session_page(result, show_names=show_names)
    talk = conversation_of(result, show_names=show_names)
    return _render_file("session.html", page=page, problem="", talk=talk)


def export_report_html(report: Report) -> str:
    """Render a report as one self-contained file without scripts."""
    return _render_file("document.html", view=report, title=report.title)


def _render_file(template: str, /, **values: Any) -> str:
    style = styles()
    policy = f"default-src 'none'; style-src {style_source(style)}; base-uri 'none'"
    site = Site(is_file=True)
    return render(template, site=site, style=trusted_html(style), policy=policy, **values)


def render_vote(
    paper: "Paper",
    ranking: "PairwiseRanking | None" = None,
    *,
    problem: str = "",
    values: Mapping[str, str] | None = None,
    choices: Sequence[str] = (),
    seen: str = "",
    site: Site = SITE,
) -> str:
    """Render a voting paper: answers under labels, and a form.

    `ranking`: the initial ranking of the form, from choices between pairs, best first.
    `problem`: what is wrong with the ranking in `values`, or with the choices.
    `values`: places in the form.
    `choices`: choices between pairs so far.
    `seen`: what the person had seen, as in `cast_vote`.
    """
    places, labels = values or {}, [*paper.texts]
    by_choices = ranking if ranking is not None and ranking.n_chosen else None
    if by_choices is not None:
        places = {f"place-{label}": str(place) for label, place in by_choices.places.items()}
        labels.sort(key=by_choices.places.__getitem__)
    return render(
        "vote.html",
        site=site,
        paper=paper,
        texts=[_blind_text(paper, label) for label in labels],
        problem=clean(problem),
        given=places,
        ranking_text="" if by_choices is None else by_choices.text,
        seen=seen,
        undo=_choices_query(paper, choices[:-1], seen=seen) if choices else "",
    )


def render_pair(
    paper: "Paper",
    ranking: "PairwiseRanking",
    *,
    problem: str = "",
    choices: Sequence[str] = (),
    seen: str = "",
    site: Site = SITE,
) -> str:
    """Render two answers side by side, to choose between.

    `problem`, `choices` and `seen` are as in `render_vote`.
    """
    left, right = ranking.next_pair or ("", "")
    return render(
        "vote_pair.html",
        site=site,
        paper=paper,
        ranking=ranking,
        texts=[_blind_text(paper, label) for label in (left, right)],
        problem=clean(problem),
        choices=choices,
        buttons=[
            ("ArrowLeft", "←", f"{left}>{right}", f"{left} is better"),
            ("Enter", "↵", f"{left}={right}", "Equal"),
            ("ArrowRight", "→", f"{left}<{right}", f"{right} is better"),
        ],
        skip=f"{left}?{right}",
        seen=seen,
        at_once=_choices_query(paper, choices, seen=seen, whole=True),
        undo=_choices_query(paper, choices[:-1], seen=seen) if choices else "",
    )


def _blind_text(paper: "Paper", label: str) -> tuple[str, Markup]:
    return label, render_html(paper.texts[label], key=f"vote-{label}")


def _choices_query(
    paper: "Paper", choices: Sequence[str], *, seen: str, whole: bool = False
) -> str:
    """Return the query of a paper after some choices, with its code."""
    flags = [*([("seen", seen)] if seen else []), *([("all", "1")] if whole else [])]
    pairs = [("pair", each) for each in choices]
    return urlencode([("as", paper.sheet.reviewer), ("paper", paper.code), *flags, *pairs])


def render_reveal(question: str, result: "VoteResult", *, site: Site = SITE) -> str:
    """Render the authors, and the panel's ranking next to the person's."""
    from witan.surfaces.report.vote import vote_report

    view = vote_report(result)
    return render("reveal.html", site=site, question=question, result=result, view=view)


def render_problem(title: str, problem: str, *, status: int = 400, site: Site = SITE) -> str:
    """Render an error."""
    return render(
        "problem.html", site=site, title=clean(title), problem=clean(problem), status=status
    )


def group_by_day(rows: Sequence[ListedSession]) -> list[tuple[date, list[ListedSession]]]:
    """Group sessions by the day of their question, in UTC."""
    days = groupby(rows, key=lambda row: row[0].at.astimezone(UTC).date())
    return [(day, list(members)) for day, members in days]


def list_sessions(
    summaries: Sequence[SessionSummary], running_session: Sequence[RunningSession]
) -> list[ListedSession]:
    """List sessions of a history, including running ones."""
    names = {each.id for each in running_session if each.has_name}
    return [(summary, summary.session in names) for summary in summaries]


def latest_sessions(
    summaries: Sequence[SessionSummary], local: Sequence[RunningSession], *, most: int
) -> list[ListedSession]:
    """List the latest sessions, unsaved ones first."""
    stored_names = {each.session for each in summaries}
    new = [
        (_summarize(each), each.under_way)
        for each in reversed(local)
        if each.has_name and each.id not in stored_names
    ]
    running_session = [each for each in local if each.under_way]
    return [*new, *list_sessions([*map(redact, summaries)], running_session)][:most]


def _summarize(running_session: RunningSession) -> SessionSummary:
    session, opened = running_session.session, running_session.session.opening
    return SessionSummary(
        session=running_session.id,
        at=opened.at,
        status=session.status,
        category=opened.category,
        simulated=session.is_simulated,
        question=session.question,
        rule=None,
        leader=None,
        cost_usd=None,
        source="council",
        parent=opened.parent,
        relation=opened.relation,
        has_events=False,
    )


STYLES = (
    "base.css",
    "text.css",
    "session.css",
    "figures.css",
    "charts.css",
    "reports.css",
    "composer.css",
)
"""Style sheets in their order."""

SCRIPTS = (
    "page.js",
    "session.js",
    "charts.js",
    "text.js",
    "composer.js",
    "htmx.min.js",
    "hx-sse.min.js",
)

ASSETS = {
    **dict.fromkeys(STYLES, "text/css; charset=utf-8"),
    **dict.fromkeys(SCRIPTS, "text/javascript; charset=utf-8"),
    "icon.svg": "image/svg+xml",
}
"""Every file that a browser may request, and its media type."""


@lru_cache(maxsize=32)
def asset(name: str) -> bytes:
    """Return the bytes of an asset."""
    if name not in ASSETS:
        raise UnknownName("asset", name, sorted(ASSETS))
    return files(__package__).joinpath("assets", name).read_bytes()


@lru_cache(maxsize=32)
def asset_href(name: str, base: str = "") -> str:
    """Return the address of an asset, with a digest of its content."""
    return f"{base}/assets/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


@lru_cache(maxsize=1)
def styles() -> str:
    """Join all styles for a standalone page."""
    return "\n".join(asset(name).decode() for name in STYLES)


def style_source(text: str) -> str:
    """Return the source of this style for a content security policy."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
