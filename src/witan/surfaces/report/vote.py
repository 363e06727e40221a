"""Reports of a voting paper and of a vote."""

from collections.abc import Iterator, Sequence

from witan.core.blind_vote import Difference, PanelMatch
from witan.core.display import level_percent, percent, percent_range
from witan.core.stats.measures import Measure
from witan.history.ballots import RevealedAnswer, VoteResult
from witan.service.operations.voting import PersonalRecord, VotingPaper
from witan.service.text import UNKNOWN, count_noun, interval_text, list_text, number
from witan.surfaces.report.chart import Axis, Dot, Series, Strips, ends
from witan.surfaces.report.document import (
    Block,
    Cell,
    Chart,
    Column,
    Heading,
    Link,
    Note,
    Quote,
    Report,
    Sentence,
    Sides,
    Table,
    table_of,
)
from witan.surfaces.report.session import question_beginning, readable_question


def paper_report(paper: VotingPaper) -> Report:
    """Write the report of a voting paper."""
    mark = "Simulated voting paper" if paper.simulated else "Voting paper"
    return Report(mark, (paper.session,), "", tuple(_paper(paper)))


def _paper(paper: VotingPaper) -> Iterator[Block]:
    yield Quote(
        readable_question(paper.question) or "(the question is not stored)", is_indented=True
    )
    if paper.files:
        yield Sentence(f"with {list_text(paper.files, most=20)}", quiet=True)
    if paper.absent:
        n, texts = paper.absent, "the texts of {:,} more answers are"
        absent = "the text of 1 more answer is" if n == 1 else texts.format(n)
        yield Note(f"{absent} not stored", "reason")
    for label, text in paper.answers.items():
        yield Heading(label, f"answer-{label}")
        yield Quote(text.strip("\n"), is_indented=True)


def vote_report(result: VoteResult) -> Report:
    """Write the report of a vote."""
    return Report(
        "Simulated vote" if result.simulated else "Vote",
        (result.session,),
        STILL_OPEN if result.is_open else match_text(result.match),
        tuple(_comparison(result)),
    )


STILL_OPEN = "The session is still running; the panel's ranking follows when it ends."


def _comparison(result: VoteResult) -> Iterator[Block]:
    """Yield both rankings, the basis of the match, and the differences."""
    answers, panel, match = result.answers, result.panel, result.match
    yield Heading("Your vote" if result.is_open else "You and the panel", "panel")
    if match is not None and match.pairs_decided:
        yield Sentence(_clear_text(match))
    if panel is not None:
        ballots = count_noun(panel.n_ballots, "ballot")
        yield Sentence(f"The panel ({ballots}, by {panel.rule}): {panel.interpretation}")
    ranks = [UNKNOWN if each.panel_rank is None else str(each.panel_rank) for each in answers]
    panel_column = (Column("panel", "left"), ranks)
    yield table_of(
        "Your ranking" if result.is_open else "Your ranking and the panel's",
        [
            (Column("you", "left"), [str(each.rank) for each in answers]),
            *([] if result.is_open else [panel_column]),
            (Column("label", "left"), [each.label for each in answers]),
            (
                Column("written by", "left", fit="middle", heads=True),
                [_author(each) for each in answers],
            ),
        ],
    )
    if match is not None and match.differences:
        yield Heading("Where you differ", "differences")
        clear = [each for each in match.differences if each.is_clear]
        close = [each for each in match.differences if not each.is_clear]
        titles = ("Clear to the panel", clear), ("Too close to call for the panel", close)
        yield Sides(tuple((title, tuple(_differences(each))) for title, each in titles if each))


MOST_DIFFERENCES = 8
"""Most pairs of each kind to list."""


def _differences(differences: Sequence[Difference]) -> Iterator[str]:
    for each in differences[:MOST_DIFFERENCES]:
        yield f"You place {each.above} above {each.below}, the panel {each.below} above"
    if (n_more := len(differences) - MOST_DIFFERENCES) > 0:
        yield f"And {count_noun(n_more, 'more pair')}"


def _clear_text(match: PanelMatch) -> str:
    """Describe how many of the pairs were clear to the panel."""
    n_close = match.pairs_decided - match.clear_decided
    close = f"{match.pairs_alike - match.clear_alike} of {n_close:,} that are too close to call"
    if not match.clear_decided:
        return "The panel finds all of these pairs too close to call."
    clear = f"You agree on {match.clear_alike} of {count_noun(match.clear_decided, 'pair')}"
    verb = "is" if match.clear_decided == 1 else "are"
    clear = f"{clear} that {verb} clear to the panel"
    return f"{clear}, and on {close}." if n_close else f"{clear}."


def _author(answer: RevealedAnswer) -> str:
    differs = not answer.model.endswith(answer.candidate) and not answer.model.startswith("script:")
    return f"{answer.candidate} ({answer.model})" if differs else answer.candidate


def match_text(match: PanelMatch | None) -> str:
    """Describe the match of a person's ranking and the panel's."""
    if match is None or match.same_best is None:
        return "The panel has no ranking to compare yours with."
    best = "the same answer" if match.same_best else "different answers"
    sentence = f"You and the panel picked {best}"
    if not match.pairs_decided:
        return f"{sentence}; no pair is ordered by both of you."
    pairs = count_noun(match.pairs_decided, "pair")
    return f"{sentence}; you agree on {match.pairs_alike} of {pairs} that both of you order."


def votes_report(record: PersonalRecord) -> Report:
    """Write the report comparing a person's votes with the panels."""
    return Report(
        f"Votes by {record.reviewer}",
        (count_noun(record.votes, "vote"), str(record.window)),
        _record_finding(record),
        tuple(_record(record)),
    )


def _record_finding(record: PersonalRecord) -> str:
    match = record.match
    if match.value is None:
        return f"There is no vote by {record.reviewer} to compare with a panel."
    votes = count_noun(record.votes, "vote")
    pairs = f"{percent(match.value)} of {count_noun(match.n, 'pair')}"
    within = f" ({percent_range(match.interval)})" if match.interval else ""
    return f"{record.reviewer} and the panels agree on {pairs}{within}, over {votes}."


def _record(record: PersonalRecord) -> Iterator[Block]:
    reasons = (
        (record.not_blind, "not known to be blind"),
        (record.simulated, "on simulated sessions"),
        (record.waiting, "on open sessions"),
        (record.without_panel, "on sessions without a ranking by the panel"),
    )
    for n, why in reasons:
        if n:
            yield Note(f"{count_noun(n, 'vote')} {why}: not compared", "reason")
    for session, why in record.uncounted.items():
        yield Note(f"the vote on {session} could not be counted: {why}", "warning")
    if not record.votes:
        return
    yield Heading("Match with the panels", "match")
    yield _shares(record)
    level = level_percent(record.level)
    yield Sentence(
        f"By chance, half of the pairs would agree. Intervals are {level}, clustered by session, "
        "and need five votes.",
        quiet=True,
    )
    yield Heading("Over time", "time")
    yield _periods(record)
    yield Heading("Latest votes", "latest")
    yield _latest(record)


SHARES = (
    ("match", "all pairs", "pairs ordered alike, of those that neither places equal"),
    ("clear", "clear pairs", "the same, of pairs clear to the panel"),
    ("close", "close pairs", "the same, of pairs too close to call for the panel"),
    ("same_best", "same best", "votes whose best answer is a best one of the panel"),
)
"""Field of a share, its title, and its meaning."""


def _shares(record: PersonalRecord) -> Table:
    shares: list[Measure] = [getattr(record, name) for name, *_ in SHARES]
    return table_of(
        "Match with the panels",
        [
            (Column("share", "left", heads=True), [title for _, title, _ in SHARES]),
            (Column("value"), [number(each.value, 2) for each in shares]),
            (
                Column("interval", "left", keep=80),
                [interval_text(each.interval) for each in shares],
            ),
            (Column("rests on", "left", keep=70), [_basis(each) for each in shares]),
            (Column("is", "left", keep=60), [meaning for *_, meaning in SHARES]),
        ],
        form="measures",
    )


def _periods(record: PersonalRecord) -> Table:
    """List each period's shares, and draw a strip per kind of pair."""
    periods = record.periods
    return table_of(
        "Over time",
        [
            (Column("from", "left", heads=True), [each.since for each in periods]),
            (Column("votes"), [f"{each.votes:,}" for each in periods]),
            *(
                (Column(title), [_share_text(getattr(each, name)) for each in periods])
                for name, title, _ in SHARES[:3]
            ),
        ],
        chart=(lambda: _periods_chart(record)) if len(periods) > 1 else None,
    )


def _periods_chart(record: PersonalRecord) -> Chart:
    periods = record.periods
    series = tuple(
        Series(
            title,
            tuple(_dot(title, each.since, getattr(each, name)) for each in periods),
            number(getattr(periods[-1], name).value, 2),
        )
        for name, title, _ in SHARES[:3]
        if getattr(record, name).n
    )
    return Chart(
        Strips(Axis("", 0.0, 1.0, line=0.5), periods[0].since, periods[-1].since, series),
        "Over time",
        "Share of pairs ordered like the panel, with an interval from five votes on; chance is "
        "one half. In the numbers: pairs in brackets.",
    )


def _basis(share: Measure) -> str:
    return count_noun(share.n, share.of.removesuffix("s"))


def _dot(title: str, since: str, share: Measure) -> Dot | None:
    if share.value is None:
        return None
    pairs = _basis(share)
    within = f", interval {ends(share.interval, 2)}" if share.interval else ""
    text = f"{title} from {since}: {number(share.value, 2)}{within}, {pairs}"
    return Dot(share.value, share.interval, alt_text=text)


def _share_text(share: Measure) -> str:
    if share.value is None:
        return UNKNOWN
    within = f", {interval_text(share.interval)}" if share.interval else ""
    return f"{number(share.value, 2)} ({share.n:,}){within}"


def _latest(record: PersonalRecord) -> Table:
    matches = [each.match for each in record.latest]
    questions = [
        Cell(
            question_beginning(each.question) or each.session,
            link=Link("show", {"session": each.session}),
        )
        for each in record.latest
    ]
    return table_of(
        "Latest votes",
        [
            (Column("question", "left", fit="fold", heads=True), questions),
            (Column("asked", "left"), [f"{each.at:%Y-%m-%d}" for each in record.latest]),
            (
                Column("all pairs"),
                [_ratio(each.pairs_alike, each.pairs_decided) for each in matches],
            ),
            (
                Column("clear pairs"),
                [_ratio(each.clear_alike, each.clear_decided) for each in matches],
            ),
            (Column("same best", "left"), [_SAME_BEST[each.same_best] for each in matches]),
        ],
    )


_SAME_BEST = {True: "yes", False: "no", None: UNKNOWN}


def _ratio(n: int, of: int) -> str:
    return f"{n} of {of}" if of else UNKNOWN
