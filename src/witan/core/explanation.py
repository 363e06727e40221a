"""Explanation of an outcome in steps that can be checked by hand."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from witan.core.ballot import Ballot
from witan.core.counting import BatchCount, count, stack
from witan.core.display import Cell, NotebookDisplay, Step, percent
from witan.core.inference import fit_parts
from witan.core.outcome import MIN_VOTES, Outcome
from witan.core.profile import Electorate, Floats, matchups
from witan.core.rubric import Rubric, overall
from witan.core.rules import RULES
from witan.core.rules.elimination import irv_rounds
from witan.core.rules.pairwise import widen_paths
from witan.core.scale import Scale, read_grade
from witan.core.settings import AUTO, Settings, settings_of
from witan.core.stats.additive import SCALE_DF
from witan.core.stats.distributions import t_probability
from witan.core.tally import prepare, put_on_scale, reliability_by_session, tally_electorates
from witan.errors import MissingParameter, NothingToCount, UnknownName, UnsuitableBallots

MATRIX_LIMIT = 25
"""Maximum number of candidates in a printed matrix."""


def ranking_text(groups: Sequence[Sequence[str]]) -> str:
    """``a > b = c``."""
    return " > ".join(" = ".join(group) for group in groups)


class ExplainedSession:
    """The arrays of one session without their session axis."""

    def __init__(self, count: BatchCount, top: list[int]) -> None:
        profile = count.profile.unscale_weights()
        self.count, self.profile, self.top = count, profile, top
        electorate = count.electorates[0]
        self.names = electorate.candidates
        self.reviewers = [vote.reviewer for vote in electorate.votes]
        n_reviewers, n_candidates, _ = profile.places.shape
        self.ranks = profile.ranks[:, :, 0]
        self.grade_mask = profile.grade_mask[:, :, 0]
        grades = np.zeros(profile.places.shape) if profile.grades is None else profile.grades
        self.grades = np.where(self.grade_mask, grades[:, :, 0], np.nan).astype(np.float64)
        weights = profile.weights
        self.weights = np.ones(n_reviewers) if weights is None else weights[:, 0].astype(np.float64)
        self.weighs = bool(np.any(self.weights != 1.0))
        ranked = (~np.isnan(self.ranks)).sum(axis=1)
        self.lengths = ranked if profile.lengths is None else profile.lengths[:, 0]
        roster = np.full(n_reviewers, n_candidates)
        self.eligible = roster if profile.eligible is None else profile.eligible[:, 0]
        self.score = count.scores.score[:, 0]
        parameters = count.settings.parameters_of(count.rule.name)
        self.parameters: dict[str, Any] = {**count.rule.parameters, **parameters}

    def mean(self, values: Floats, weights: Floats) -> float | None:
        """Average the finite values by weight; None without any."""
        counted = np.isfinite(values) & (weights > 0)
        if not counted.any():
            return None
        return float((weights[counted] * values[counted]).sum() / weights[counted].sum())

    def per_ballot(
        self,
        title: str,
        sentences: Sequence[str],
        columns: Sequence[tuple[str, Floats]],
        worth: tuple[str, Floats | None, Floats],
        weights: Floats | None = None,
    ) -> Step:
        """Tabulate the top lines' values per ballot, with means below.

        Parameters
        ----------
        worth
            Name of the value; what the rule reads from each ballot, (R, C), if different from the
            value; the value, (R, C).
        """
        word, numbers, values = worth
        weights = self.weights if weights is None else weights
        weighed = [("weight", weights)] if np.any(weights != 1.0) else []
        columns = [*weighed, *columns]
        header = ["reviewer", *(name for name, _ in columns)]
        rows: list[list[Cell]] = []
        for r, reviewer in enumerate(self.reviewers):
            rows.append([reviewer, *(cell(column[r]) for _, column in columns)])
        foot: list[Cell] = ["mean", *(None for _ in columns)]
        for c in self.top:
            if numbers is not None:
                header.append(self.names[c])
                foot.append(None)
                for row, cells in zip(rows, numbers[:, c], strict=True):
                    row.append(cell(cells))
            header.append(self.names[c] if numbers is None else word)
            foot.append(self.mean(values[:, c], weights))
            for row, value in zip(rows, values[:, c], strict=True):
                row.append(cell(value))
        table = tuple(tuple(row) for row in [*rows, foot])
        return Step(title, tuple(sentences), tuple(header), table)

    def matrix(self, title: str, sentences: Sequence[str], cells: Sequence[Sequence[Cell]]) -> Step:
        """Tabulate candidates against candidates."""
        rows = tuple(
            (name, *(None if i == j else cell for j, cell in enumerate(row)))
            for i, (name, row) in enumerate(zip(self.names, cells, strict=True))
        )
        return Step(title, tuple(sentences), ("", *self.names), rows)


def cell(value: Any) -> Cell:
    """Convert to a plain number; None for NaN."""
    number = float(value)
    if np.isnan(number):
        return None
    return int(number) if number.is_integer() else number


def borda(session: ExplainedSession) -> Iterator[Step]:
    """Share of rivals ranked below, per ballot."""
    yield _borda_step(session, session.weights)


def weighted_borda(session: ExplainedSession) -> Iterator[Step]:
    """Borda under the reviewers' learned weights."""
    weights = session.weights
    if session.profile.reliability is not None:
        weights = weights * session.profile.reliability[:, 0]
    yield _borda_step(session, weights)


def _borda_step(session: ExplainedSession, weights: Floats) -> Step:
    words = {
        "per_ballot": "(ranked − rank) / (ranked − 1)",
        "roster": "(on offer − rank) / (on offer − 1)",
        "truncated": "(ranked − rank) / (on offer − 1)",
    }
    return session.per_ballot(
        "Borda: the share of rivals that each ballot places below",
        [f"A ballot gives {words[_variant(session)]}; the score is the mean over ballots."],
        [("ranked", session.lengths * 1.0), ("on offer", session.eligible * 1.0)],
        ("share", session.ranks, _shares(session)),
        weights,
    )


def _variant(session: ExplainedSession) -> str:
    return str(session.parameters.get("variant", "per_ballot"))


def _shares(session: ExplainedSession) -> Floats:
    """Share from each ballot to each candidate under Borda, shape (R, C)."""
    variant = _variant(session)
    last = session.eligible if variant == "roster" else session.lengths
    spans = session.lengths if variant == "per_ballot" else session.eligible
    divisor = np.where(spans > 1, spans - 1.0, np.nan)
    shares: Floats = (last[:, np.newaxis] - session.ranks) / divisor[:, np.newaxis]
    return shares


def mean_rank(session: ExplainedSession) -> Iterator[Step]:
    """The ranks on each ballot."""
    yield session.per_ballot("Mean rank", ["Low is best."], [], ("rank", None, session.ranks))


def mean_grade(session: ExplainedSession) -> Iterator[Step]:
    """The grades on each ballot."""
    yield session.per_ballot(
        "Mean grade",
        ["The grades as given, not corrected for a reviewer's level."],
        [],
        ("grade", None, session.grades),
    )


def hybrid(session: ExplainedSession) -> Iterator[Step]:
    """Borda and the mean grade, then both blended."""
    yield _borda_step(session, session.weights)
    yield from mean_grade(session)
    alpha = float(session.parameters["alpha"])
    shares = _shares(session)
    rows: list[tuple[Cell, ...]] = []
    for c in session.top:
        share = session.mean(shares[:, c], session.weights)
        grade = session.mean(session.grades[:, c], session.weights)
        rows.append((session.names[c], share, grade, cell(session.score[c])))
    words = f"score = {alpha:g}·borda + {1 - alpha:g}·(mean grade − 1)/9; borda alone if ungraded."
    yield Step(
        "The two blended", (words,), ("candidate", "borda", "mean grade", "score"), tuple(rows)
    )


def explain_normalized(session: ExplainedSession) -> Iterator[Step]:
    """Each grade as standard deviations from the mean of its ballot."""
    if bool(session.count.scores.fell_back is not None and session.count.scores.fell_back[0]):
        yield Step("Every ballot is flat", ("No ballot separates any candidates: Borda decides.",))
        yield _borda_step(session, session.weights)
        return
    count = np.maximum(session.grade_mask.sum(axis=1), 1)
    level = np.where(session.grade_mask, session.grades, 0.0).sum(axis=1) / count
    deviations = session.grades - level[:, np.newaxis]
    spread = np.sqrt((np.where(session.grade_mask, deviations, 0.0) ** 2).sum(axis=1) / count)
    flat = spread < 0.001
    z = np.where(
        flat[:, np.newaxis],
        0.0 * deviations,
        deviations / np.where(flat, 1.0, spread)[:, np.newaxis],
    )
    yield session.per_ballot(
        "Standardised grades",
        ["z = (grade − mean) / deviation of that ballot, 0 on a flat one; the score is mean z."],
        [("mean", level), ("deviation", spread)],
        ("z", session.grades, z),
    )


def explain_calibrated(session: ExplainedSession) -> Iterator[Step]:
    """Each grade corrected for the reviewer's scale and level."""
    graded = session.grade_mask & (session.weights > 0)[:, np.newaxis]
    grades = np.where(graded, session.grades, np.nan)
    count = graded.sum(axis=1)
    n = np.maximum(count, 1)
    mean = np.where(graded, grades, 0.0).sum(axis=1) / n
    squares = np.where(graded, (grades - mean[:, np.newaxis]) ** 2, 0.0).sum(axis=1)
    freedom = np.maximum(count - 1, 0)
    pooled = squares.sum() / max(int(freedom.sum()), 1)
    own = (SCALE_DF * pooled + squares) / (SCALE_DF + freedom)
    factor = np.sqrt(pooled / own) if pooled > 0 else np.ones(len(n))
    adjusted = grades * factor[:, np.newaxis]
    residuals = np.where(graded, adjusted - session.score, 0.0)
    offset = np.where(count > 0, residuals.sum(axis=1) / n, np.nan)
    yield session.per_ballot(
        "Grades with each reviewer's scale and level taken out",
        [
            "factor = panel's spread / reviewer's own, drawn toward the panel's; "
            "level = mean of grade · factor, less the candidates' scores.",
            "The adjusted grade is grade · factor − level, and the score is its mean; least "
            "squares fits scores and levels together.",
        ],
        [("mean grade", np.where(count > 0, mean, np.nan)), ("factor", factor), ("level", offset)],
        ("adjusted", grades, adjusted - offset[:, np.newaxis]),
    )


def _matchups(session: ExplainedSession) -> Iterator[Step]:
    if len(session.names) > MATRIX_LIMIT:
        return
    over = matchups(session.profile).wins[:, :, 0]
    cells = [[f"{over[i, j]:g}–{over[j, i]:g}" for j in range(len(over))] for i in range(len(over))]
    ballots = "weight of the ballots" if session.weighs else "ballots"
    words = f"Each cell: {ballots} that place the row above the column, and the reverse."
    yield session.matrix("Head to head", [words], cells)


def tournament(session: ExplainedSession) -> Iterator[Step]:
    """Matchups won, drawn and lost."""
    yield from _matchups(session)
    counts = matchups(session.profile)
    margins, met = counts.margins[:, :, 0], counts.comparisons[:, :, 0] > 0
    won, lost = (np.sign(margins) == 1).sum(axis=1), (np.sign(margins) == -1).sum(axis=1)
    played = met.sum(axis=1)
    rows = tuple(
        (
            name,
            int(won[c]),
            int(played[c] - won[c] - lost[c]),
            int(lost[c]),
            cell(session.score[c]),
        )
        for c, name in enumerate(session.names)
    )
    yield Step(
        "Matchups",
        ("score = (won + ½ drawn) / played.",),
        ("candidate", "won", "drawn", "lost", "score"),
        rows,
    )


def schulze(session: ExplainedSession) -> Iterator[Step]:
    """The strongest chains of majorities."""
    yield from _matchups(session)
    if len(session.names) > MATRIX_LIMIT:
        return
    counts = matchups(session.profile)
    margins = counts.margins[:, :, 0]
    by_votes = session.parameters.get("strength") == "winning_votes"
    ballots = "weight for it" if session.weighs else "ballots for it"
    path = np.where(margins > 0, counts.wins[:, :, 0] if by_votes else margins, 0).astype(float)
    widen_paths(path)
    words = [
        "A chain of majorities is as strong as its weakest link; each cell: the strongest chain "
        f"from row to column, in {ballots if by_votes else 'margins'}.",
        "One is above another if its chain is stronger than the chain back; the score is the share "
        "of rivals that are not above.",
    ]
    if len(session.top) > 1:
        i, j = session.top
        words.append(
            f"{session.names[i]} to {session.names[j]}: {path[i, j]:g}; back: {path[j, i]:g}."
        )
    cells = [[cell(strength) for strength in row] for row in path]
    yield session.matrix("Strongest chains", words, cells)


def ranked_pairs(session: ExplainedSession) -> Iterator[Step]:
    """Majorities in the order in which they are locked in."""
    yield from _matchups(session)
    margins = matchups(session.profile).margins[:, :, 0]
    pairs = [(i, j) for i, j in np.argwhere(margins > 0).tolist()]
    pairs.sort(key=lambda pair: -float(margins[pair]))
    reach = np.eye(len(margins), dtype=np.bool_)
    rows: list[tuple[Cell, ...]] = []
    for i, j in pairs:
        closes = bool(reach[j, i])
        if not closes:
            reach |= reach[:, i, np.newaxis] & reach[j]
        action = "skipped: it would close a cycle" if closes else "locked"
        rows.append((session.names[i], session.names[j], cell(margins[i, j]), action))
    strengths = [float(margins[pair]) for pair in pairs]
    words = ["Majorities from the clearest down; one that would close a cycle is skipped."]
    if len(set(strengths)) < len(strengths):
        words.append(
            "Where margins are equal, this list follows seat order; up to six candidates, the rule "
            "follows every order and gives each candidate its best place."
        )
    yield Step("Locking", tuple(words), ("above", "below", "margin", ""), tuple(rows))


def kemeny(session: ExplainedSession) -> Iterator[Step]:
    """Votes against the ranking, pair by pair."""
    yield from _matchups(session)
    over = matchups(session.profile).wins[:, :, 0]
    details = session.count.scores.details
    distance, optima = float(details["distance"][0]), int(details["optima"][0])
    placed = [
        c for c in np.argsort(-session.score, kind="stable") if not np.isnan(session.score[c])
    ]
    against = [
        (above, below)
        for at, above in enumerate(placed)
        for below in placed[at + 1 :]
        if over[below, above] > 0
    ]
    rows: list[tuple[Cell, ...]] = [
        (session.names[above], session.names[below], cell(over[below, above]))
        for above, below in against
    ]
    fewer, few = "fewer pairs on ballots", "few"
    if session.weighs:
        fewer, few = "less weight of ballots, pair by pair,", "little"
    words = [f"No ranking contradicts {fewer} than {distance:g}."]
    if optima == 1:
        words.append(
            f"Only this ranking contradicts so {few}; the table has the votes against its pairs."
        )
    else:
        many = f"{optima} rankings" if optima else "Several rankings"
        words.append(
            f"{many} contradict so {few}; up to six candidates are in order of their mean places."
        )
    yield Step("Least contradiction", tuple(words), ("above", "below", "against"), tuple(rows))


def irv(session: ExplainedSession) -> Iterator[Step]:
    """The rounds of elimination."""
    rows: list[tuple[Cell, ...]] = []
    reasons = {"none": "", "borda": "tied for fewest, lower Borda", "seat": "tied, later seat"}
    gone: set[int] = set()
    for number, step in enumerate(irv_rounds(session.profile), 1):
        counts = [None if c in gone else cell(value) for c, value in enumerate(step.first_places)]
        gone.add(step.eliminated)
        out = session.names[step.eliminated]
        rows.append((number, *counts, cell(step.exhausted), out, reasons[step.broken_by]))
    by_weight = " by its weight" if session.weighs else ""
    words = (
        f"In each round every ballot counts{by_weight} for its highest remaining candidate, 1/k "
        "for each of k tied ones; the candidate with the fewest is eliminated.",
    )
    header = ("round", *session.names, "exhausted", "goes out", "")
    yield Step("Rounds", words, header, tuple(rows))


def explain_fit(session: ExplainedSession) -> Iterator[Step]:
    """Explain the fitted strengths and their meaning for the first two."""
    yield from _matchups(session)
    prior = float(session.parameters["ghost_wins"])
    words = [
        "The strengths under which these ballots are likeliest, each candidate being credited with "
        f"{prior:g} wins and {prior:g} losses against a ghost. They are found by iteration, and "
        "mean: P(a above b) = 1 / (1 + exp(b − a)).",
    ]
    if len(session.top) > 1:
        i, j = session.top
        above = 1 / (1 + np.exp(session.score[j] - session.score[i]))
        words.append(f"P({session.names[i]} above {session.names[j]}) = {above:.3f}.")
    header = ("candidate", "log-strength", "error")
    yield Step("Log-strengths", tuple(words), header, _scores(session))


def show_scores(session: ExplainedSession) -> Iterator[Step]:
    """Scores of a rule that has no explanation of its own."""
    yield from _matchups(session)
    yield Step("Scores", (), ("candidate", "score", "error"), _scores(session))


def _scores(session: ExplainedSession) -> tuple[tuple[Cell, ...], ...]:
    error = session.count.scores.std_error
    errors: NDArray[Any] = np.full(len(session.names), np.nan) if error is None else error[:, 0]
    return tuple(
        (name, cell(session.score[c]), cell(errors[c])) for c, name in enumerate(session.names)
    )


_ARITHMETIC: dict[str, Callable[[ExplainedSession], Iterator[Step]]] = {
    "borda": borda,
    "weighted_borda": weighted_borda,
    "mean_rank": mean_rank,
    "range": mean_grade,
    "hybrid": hybrid,
    "normalized_scores": explain_normalized,
    "calibrated": explain_calibrated,
    "tournament": tournament,
    "schulze": schulze,
    "ranked_pairs": ranked_pairs,
    "kemeny": kemeny,
    "irv": irv,
    "bradley_terry": explain_fit,
    "plackett_luce": explain_fit,
}


@dataclass(frozen=True, slots=True)
class Explanation(NotebookDisplay):
    """An outcome and the steps that lead to it.

    Parameters
    ----------
    steps
        Steps from the ballots as cast to the difference between the first two lines.
    """

    outcome: Outcome
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        return f"<Explanation of {self.outcome!r} in {len(self.steps)} steps>"


def explain(
    ballots: Iterable[Ballot], settings: Settings | str | None = None, session: str | None = None
) -> Explanation:
    """Explain the outcome of one session step by step.

    Parameters
    ----------
    ballots
        Ballots of any number of sessions; learning uses all of them.
    settings
        As for `tally_sessions`, or the name of a rule; None: the defaults.
    session
        The session to explain; None if all ballots belong to one.

    Raises
    ------
    NothingToCount
        If there are no ballots.
    UnknownName
        If no ballot belongs to the session, or there is no such rule.
    InvalidParameter
        If the settings are neither settings nor a name.
    UnsuitableBallots
        If the rule cannot count the session, or counts a history instead of one.
    """
    chosen = settings_of(settings)
    scaled_ballots = put_on_scale(ballots, chosen)
    name = _session(scaled_ballots, session)
    if chosen.rule != AUTO and RULES[chosen.rule].needs == "history":
        raise UnsuitableBallots(
            chosen.rule, "it rates candidates over a history, not one session", "explain another"
        )
    electorate, chosen = _prepare(scaled_ballots, chosen, name)
    outcome = next(tally_electorates([electorate], chosen))
    reliability = None if chosen.reliability is None else [chosen.reliability]
    profile = stack([electorate], reliability=reliability)
    recount = count(outcome.rule, profile, [electorate], replace(chosen, flips=False))
    ballots_of_session = [ballot for ballot in scaled_ballots if ballot.session == name]
    return Explanation(outcome, tuple(_steps(ballots_of_session, recount, outcome)))


def _session(ballots: Sequence[Ballot], session: str | None) -> str:
    session_names = list(dict.fromkeys(ballot.session for ballot in ballots))
    if not session_names:
        raise NothingToCount("there is no ballot to count")
    if session is None and len(session_names) > 1:
        expected = f"one of {len(session_names):,} sessions, such as {session_names[0]!r}"
        raise MissingParameter("the session to explain", None, expected)
    if session is not None and session not in session_names:
        raise UnknownName("session of the ballots", session, session_names)
    return session_names[0] if session is None else session


def _prepare(
    ballots: Sequence[Ballot], settings: Settings, name: str
) -> tuple[Electorate, Settings]:
    """Return the session's electorate, and settings with all learned values."""
    electorates, settings = prepare(ballots, settings)
    at = next(
        (place for place, electorate in enumerate(electorates) if electorate.session == name), None
    )
    if at is None:
        raise NothingToCount(f"session {name!r} has no ballot of the kind {settings.kind!r}")
    if reliability := reliability_by_session(electorates, settings, (settings.rule,)):
        settings = replace(settings, reliability=reliability[at])
    return electorates[at], settings


def _steps(ballots: Sequence[Ballot], count: BatchCount, outcome: Outcome) -> Iterator[Step]:
    electorate = count.electorates[0]
    yield _explain_ballots(ballots)
    yield _explain_counted(ballots, electorate, count.settings)
    if not outcome.leaders:
        return
    seats = {name: seat for seat, name in enumerate(electorate.candidates)}
    top = [seats[line.candidate] for line in outcome.standings[:2]]
    yield _explain_input(count, outcome)
    yield from _ARITHMETIC.get(count.rule.name, show_scores)(ExplainedSession(count, top))
    yield _standings(outcome)
    if len(top) == 2:
        yield _difference(count, outcome, top)
    yield Step("What the lead depends on", (_flips(outcome),))


def _explain_ballots(ballots: Sequence[Ballot]) -> Step:
    graded = any(ballot.grades for ballot in ballots)
    rows: list[tuple[Cell, ...]] = []
    for ballot in ballots:
        ranking = ranking_text(ballot.groups)
        if ballot.abstained:
            ranking = f"abstained: {ballot.reason}" if ballot.reason else "abstained"
        row: tuple[Cell, ...] = (ballot.reviewer, ranking)
        rows.append((*row, _grades_text(ballot.grades)) if graded else row)
    header = ("reviewer", "ranking", "grades") if graded else ("reviewer", "ranking")
    return Step("The ballots as cast", (), header, tuple(rows))


def _grades_text(grades: Mapping[str, Any]) -> str:
    parts = []
    for name, cell in grades.items():
        if isinstance(cell, Mapping):
            inner = ", ".join(f"{criterion} {grade}" for criterion, grade in cell.items())
            parts.append(f"{name} ({inner})")
        else:
            parts.append(f"{name} {cell}")
    return ", ".join(parts)


def _explain_counted(ballots: Sequence[Ballot], electorate: Electorate, settings: Settings) -> Step:
    weights = settings.weights
    rows = tuple(
        (vote.reviewer, ranking_text(vote.groups), vote.weight * weights.get(vote.reviewer, 1.0))
        for vote in electorate.votes
    )
    changes = [
        *_recusals(ballots, settings.counting.recusal),
        *_ceilings(ballots, settings.counting.rubric),
        *(f"{name} abstains: {why}." for name, why in electorate.abstentions.items()),
        *(f"{name} failed the safety gate and goes last." for name in electorate.failed),
        *electorate.warnings,
    ]
    if settings.kind != "all":
        changes.append(f"Only ballots of kind {settings.kind!r} count.")
    title = "The ballots as counted"
    return Step(title, tuple(changes), ("reviewer", "ranking", "weight"), rows)


def _recusals(ballots: Sequence[Ballot], recusal: str) -> Iterator[str]:
    recusal_text = {"before": "before places are counted", "after": "after places are counted"}
    pairs = set()
    for ballot in ballots:
        authors = ballot.authors or {}
        for name in ballot.candidate_names():
            own = authors.get(name, name) == ballot.reviewer
            if own and recusal in recusal_text and (ballot.reviewer, name) not in pairs:
                pairs.add((ballot.reviewer, name))
                phase = recusal_text[recusal]
                yield f"{ballot.reviewer} has no say on its own {name}: recused {phase}."


def _ceilings(ballots: Sequence[Ballot], rubric: Rubric) -> Iterator[str]:
    """Describe the grades lowered by a ceiling of the rubric."""
    criteria = {criterion.name for criterion in rubric.criteria}
    bare = replace(rubric, ceilings=())
    for ballot in ballots:
        for name, cell in ballot.grades.items():
            if not isinstance(cell, Mapping):
                continue
            scale = Scale() if ballot.scale is None else ballot.scale
            read_grades = {k: read_grade(v, scale.of(k)) for k, v in cell.items() if k in criteria}
            grades = {k: grade for k, grade in read_grades.items() if grade is not None}
            total = overall(rubric, grades)
            if total.capped_by is not None:
                before = overall(bare, grades).value
                yield (
                    f"{ballot.reviewer}'s grade of {name} is {total.value:g} instead of "
                    f"{before:.4g}: {total.capped_by.criterion} is under {total.capped_by.below:g}."
                )


def _explain_input(count: BatchCount, outcome: Outcome) -> Step:
    electorate, profile = count.electorates[0], count.profile
    header = ("reviewer", *electorate.candidates)
    if RULES[outcome.rule].needs == "grades":
        cells = [vote.grades for vote in electorate.votes]
        words = "Overall grades after rubric, ceiling and recusal; an empty cell means no grade."
    else:
        cells = [tuple(row) for row in profile.ranks[:, :, 0].tolist()]
        words = "Ranks, 1 is best; tied candidates share their mean; an empty cell means no vote."
    rows = tuple(
        (vote.reviewer, *(None if isnan(cell) else cell for cell in row))
        for vote, row in zip(electorate.votes, cells, strict=True)
    )
    return Step(f"What {outcome.rule} reads", (words,), header, rows)


def _standings(outcome: Outcome) -> Step:
    rows = tuple((line.rank, line.candidate, line.score) for line in outcome.standings)
    words = []
    if outcome.tie_broken_by is not None:
        words.append(f"Some ties were broken by {outcome.tie_broken_by}.")
    scores = [line.votes for line in outcome.standings if line.votes]
    if min(scores, default=0) < MIN_VOTES <= max(scores, default=0):
        words.append("A candidate with a single vote is listed below those with two or more.")
    return Step("Hence the order", tuple(words), ("rank", "candidate", "score"), rows)


def _difference(count: BatchCount, outcome: Outcome, top: Sequence[int]) -> Step:
    """Explain the contrast between the first two lines, or their intervals."""
    if outcome.ties == "intervals":
        return _intervals(count, outcome)
    parts = fit_parts(count)
    title = "Is the difference more than noise?"
    if not parts or not parts[0].uncertainty.can_tell[0]:
        return Step(title, ("There are too few ballots to tell: no degrees of freedom are left.",))
    uncertainty, unit, places = parts[0].uncertainty, parts[0].unit, parts[0].places
    i, j = top if places is None else places[top]
    difference = float(uncertainty.fit.effects[i, 0] - uncertainty.fit.effects[j, 0])
    error = float(uncertainty.contrast_variances()[i, j, 0]) ** 0.5
    df = float(uncertainty.contrast_df()[i, j, 0])
    if not error > 0:
        return Step(title, ("The two were never compared, not even through others.",))
    t = difference / error
    p = 2 * t_probability(-abs(t), df)
    names = [line.candidate for line in outcome.standings[:2]]
    # A rule that reads grades may count fewer votes than the fit of the rankings.
    votes = int(min(uncertainty.votes[[i, j], 0].min(), count.votes[top, 0].min()))
    words = [
        f"Effects fitted on {unit}, with every reviewer's own level taken out; Student's t.",
        _verdict(outcome, names, p, votes),
    ]
    if outcome.rho is not None:
        words.insert(
            1, f"The error includes the one that all reviewers share, ρ = {outcome.rho:g}."
        )
    pairs = uncertainty.pairs
    if pairs is not None and pairs.is_unanimous[i, j, 0]:
        n_ballots = int(pairs.n_ballots[i, j, 0])
        words.append(
            "Every ballot states the same difference, so none shows its noise: only the prior does."
            f" By chance alone {n_ballots} would agree in {percent(2 ** (1 - n_ballots), 1)} of"
            " sessions."
        )
    header = ("first", "second", "difference", "error", "t", "df", "p")
    row = (*names, difference, error, t, df, p)
    return Step(title, tuple(words), header, (row,))


def _verdict(outcome: Outcome, names: Sequence[str], p: float, votes: int) -> str:
    pair = f"{names[0]} and {names[1]}"
    if votes < 2:
        return f"{pair} are too close to call: one of them has fewer than two votes."
    limit = 1 - outcome.level
    if p < limit:
        return f"p is under {limit:.2g}: {pair} differ."
    return f"p is not under {limit:.2g}: {pair} are too close to call."


def _intervals(count: BatchCount, outcome: Outcome) -> Step:
    threshold = count.settings.threshold
    rows: list[tuple[Cell, ...]] = []
    for line in outcome.standings[:2]:
        low = high = None
        if line.score is not None and line.std_error is not None:
            reach = threshold * line.std_error
            low, high = line.score - reach, line.score + reach
        rows.append((line.candidate, line.score, line.std_error, low, high))
    tied = outcome.standings[0].tied_with_next
    words = f"Score ∓ {threshold:g} errors: the two {'overlap' if tied else 'do not overlap'}."
    return Step(
        "Is the difference more than noise?",
        (words,),
        ("candidate", "score", "error", "low", "high"),
        tuple(rows),
    )


def _flips(outcome: Outcome) -> str:
    n = outcome.ballots_to_flip
    if n is None:
        return "How many ballots would end the lead was not searched."
    if n == 0:
        return "The first place is shared, so there is no lead to end."
    ballots = "1 ballot" if n == 1 else f"{n} ballots"
    most = "" if outcome.flip_is_exact else "At most "
    return f"{most}{ballots}, removed or reversed, would end the lead of {outcome.leaders[0]}."
