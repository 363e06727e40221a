"""Convert ballots to votes: labels, grades, recusal, places and pairs.

Interpretation is the step between a `Ballot`, stored as cast, and a `Profile` of arrays. Each
change adds a warning that names the ballot.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import isnan, nan
from typing import Literal

from witan.core.attributes import cached_property
from witan.core.ballot import Ballot, Groups, one_opinion_each
from witan.core.display import changes_line
from witan.core.gate import Gate
from witan.core.profile import MAX_CANDIDATES, Electorate, Vote
from witan.core.rubric import RUBRICS, Rubric, overall, trips, weigher
from witan.core.scale import (
    HIGHEST,
    HOLISTIC,
    LOWEST,
    NATIVE,
    NUMBER_TYPES,
    grade_on,
    is_empty,
    may_be_typing_error,
)
from witan.errors import InvalidParameter, TooLarge

NOTHING_LEFT = "nothing is left on the ballot after recusal"
"""The reason for abstention if a reviewer judged only its own candidates."""

Recusal = Literal["before", "after", "off"]
Unranked = Literal["skip", "last"]


def roster(session: str, ballots: Sequence[Ballot]) -> tuple[str, ...]:
    """List the candidates in seat order.

    Candidates are in the order of the declared rosters if these agree. Otherwise they are sorted by
    name, because the order of first mention would depend on the order of ballots. Without a roster,
    every name on a ballot is a candidate. An abstention does not add candidates.

    Raises
    ------
    TooLarge
        If there are more candidates than can be counted.
    """
    sheets = [
        ballot.candidates
        for ballot in ballots
        if ballot.candidates is not None and not (ballot.paired or ballot.abstained)
    ]
    candidates = dict.fromkeys(chain.from_iterable(sheets))
    speakers = [ballot for ballot in ballots if ballot.paired] if candidates else ballots
    candidate_names = dict.fromkeys(
        name for ballot in speakers for name in ballot.candidate_names()
    )
    order = tuple(candidates)
    if all(sheet == order or _follows(sheet, order) for sheet in sheets):
        names = (*candidates, *sorted(name for name in candidate_names if name not in candidates))
    else:
        names = tuple(sorted({**candidates, **candidate_names}))
    if len(names) > MAX_CANDIDATES:
        place = f"candidates in session {session!r}" if session else "candidates in one session"
        raise TooLarge(place, len(names), MAX_CANDIDATES)
    return names


def _follows(sheet: Sequence[str], order: Sequence[str]) -> bool:
    """Test if a sheet lists its names in this order, ignoring repetitions."""
    names = dict.fromkeys(sheet)
    return list(names) == [name for name in order if name in names]


def authors_of(ballots: Sequence[Ballot], warnings: list[str]) -> dict[str, str]:
    """Map candidates to authors; warn if ballots disagree.

    Recusal depends on authorship.
    """
    authors: dict[str, str] = {}
    for ballot in ballots:
        for candidate, author in (ballot.authors or {}).items():
            if authors.setdefault(candidate, author) != author:
                warnings.append(
                    f"the ballots disagree on who wrote {candidate!r}; "
                    f"the first says {authors[candidate]}"
                )
    return authors


@dataclass(frozen=True, slots=True)
class Counting:
    """Options for turning ballots into votes.

    Parameters
    ----------
    recusal
        ``before``: a reviewer's own candidate is removed from its ballot before places are counted.
        ``after``: it is removed after places are counted. ``off``: votes for oneself count.
    unranked
        ``skip``: no vote for a candidate left out of a ballot. ``last``: those left out share the
        last places.
    rubric
        Rubric that combines criteria into an overall grade.
    """

    recusal: Recusal = "before"
    unranked: Unranked = "skip"
    rubric: Rubric = RUBRICS["general"]

    def __post_init__(self) -> None:
        if not isinstance(self.rubric, Rubric):
            raise InvalidParameter("rubric", self.rubric, "a Rubric, such as RUBRICS['coding']")
        if self.recusal not in ("before", "after", "off"):
            raise InvalidParameter("recusal", self.recusal, "'before', 'after' or 'off'")
        if self.unranked not in ("skip", "last"):
            raise InvalidParameter("unranked", self.unranked, "'skip' or 'last'")

    def __repr__(self) -> str:
        return changes_line(self)


def interpret(
    session: str,
    ballots: Sequence[Ballot],
    counting: Counting,
    gate: Gate | None = None,
) -> Electorate:
    """Convert one session's ballots to votes, with warnings.

    Raises
    ------
    TooLarge
        If there are more candidates than can be counted.
    """
    warnings: list[str] = []
    candidates = roster(session, ballots)
    ballots_cast, order_kept = one_opinion_each(session, ballots, warnings)
    failed = {c: gate.failed[c] for c in candidates if gate and c in gate.failed}
    cap = gate.cap if gate else 0.0
    stated_scales = dict.fromkeys(b.scale for b in ballots_cast if b.scale is not None and b.grades)
    scales = tuple(scale for scale in stated_scales if not scale.is_plain)
    warnings += [scale.sentence for scale in scales]
    reader = _Reader(
        candidates,
        counting,
        failed,
        cap,
        authors=authors_of(ballots, warnings),
        ballots=ballots_cast,
        warnings=warnings,
    )
    votes, abstentions, offered = [], {}, dict.fromkeys(candidates, 0)
    for ballot in ballots_cast:
        sheet = reader.sheet(ballot)
        for name in reader.on_offer(ballot, sheet):
            offered[name] += 1
        result = reader.read_vote(ballot, sheet)
        if isinstance(result, Vote):
            votes.append(result)
        elif result is not None:
            abstentions[ballot.reviewer] = result
    voted = {vote.reviewer for vote in votes}
    abstentions = {reviewer: why for reviewer, why in abstentions.items() if reviewer not in voted}
    return Electorate(
        session=session,
        candidates=candidates,
        votes=tuple(votes),
        offered=tuple(offered.values()),
        abstentions=abstentions,
        order_kept=order_kept,
        failed=failed,
        warnings=tuple(dict.fromkeys(warnings)),
        at=min((ballot.at for ballot in ballots if ballot.at is not None), default=None),
        scales=scales,
        stands_for=_stands_for(candidates, ballots_cast),
    )


def _stands_for(candidates: Sequence[str], ballots: Sequence[Ballot]) -> tuple[int, ...]:
    """Map candidates to the first one with equal places on all sheets."""
    sheets = [ballot.positions for ballot in ballots if ballot.positions]
    if not any(len(set(sheet.values())) < len(sheet) for sheet in sheets):
        return ()
    places = [tuple(sheet.get(name) for sheet in sheets) for name in candidates]
    first: dict[tuple[int | None, ...], int] = {}
    return tuple(
        first.setdefault(place, seat) if any(place) else seat for seat, place in enumerate(places)
    )


class _Reader:
    """Reader of one session's ballots that adds deviations to `warnings`."""

    def __init__(
        self,
        candidates: tuple[str, ...],
        counting: Counting,
        failed: Mapping[str, tuple[str, ...]],
        cap: float,
        *,
        authors: Mapping[str, str],
        ballots: Sequence[Ballot],
        warnings: list[str],
    ) -> None:
        self.candidates, self.counting, self.failed = candidates, counting, failed
        self.cap, self.warnings = cap, warnings
        self.seats = {name: seat for seat, name in enumerate(candidates)}
        self.candidates_by_author: dict[str, set[str]] = {}
        for name in candidates:
            self.candidates_by_author.setdefault(authors.get(name, name), set()).add(name)
        self.recusals = {} if counting.recusal == "off" else self.candidates_by_author
        self.ballots = ballots
        self.weigh = weigher(counting.rubric)

    def sheet(self, ballot: Ballot) -> tuple[str, ...]:
        """Return the candidates shown to this reviewer, its own included."""
        if ballot.candidates == self.candidates:  # other names are not candidates
            return self.candidates
        if ballot.candidates is None and not ballot.paired:
            return self.candidates
        return tuple(filter(self.seats.__contains__, ballot.candidate_names()))

    def on_offer(self, ballot: Ballot, sheet: Sequence[str]) -> list[str]:
        """Return the candidates on this reviewer's sheet that it may vote for."""
        own = self._own_candidates(ballot)
        if ballot.paired and own.intersection(sheet):
            return []
        return [name for name in sheet if name not in own]

    def read_vote(self, ballot: Ballot, sheet: Sequence[str]) -> Vote | str | None:
        """Return a vote, a reason to abstain, or None (recused comparison)."""
        if not 0 < ballot.weight < float("inf"):
            return self._without_weight(ballot)
        if ballot.abstained:
            return ballot.reason or "abstained"
        if ballot.paired and len(sheet) != 2:
            self._warn(ballot, "compares something other than two candidates; dropped")
            return "compared something other than two candidates"
        groups = self._known_groups(ballot)
        grades, by_rubric = self._grades(ballot)
        if not any(groups) and not grades:
            if ballot.grades and not ballot.reason:
                rubric = self.counting.rubric
                cells = [cell for cell in ballot.grades.values() if isinstance(cell, Mapping)]
                missing = {name: None for cell in cells for name in rubric.missing_criteria(cell)}
                is_partial = 0 < len(missing) < len(rubric.criteria)
                without = f", without {', '.join(missing)}" if is_partial else ""
                return f"gave no grade that counts under the rubric {rubric.name!r}{without}"
            return ballot.reason or "gave neither a ranking nor a grade that can be read"
        mismatch = _contradicts(groups, grades)
        omitted = self._find_omissions(ballot, grades)
        grades |= dict.fromkeys(omitted, LOWEST)
        groups = self._counted_ranking(ballot, groups, grades, by_rubric)
        if self.failed:
            grades = {c: min(g, self.cap) if c in self.failed else g for c, g in grades.items()}
        return self._vote(ballot, sheet, groups, grades, mismatch=mismatch, omitted=omitted)

    def _without_weight(self, ballot: Ballot) -> str:
        if ballot.weight == 0:
            return "weighs nothing"
        raise InvalidParameter(
            f"the weight of {ballot.reviewer}'s ballot", ballot.weight, "a finite number ≥ 0"
        )

    def _own_candidates(self, ballot: Ballot) -> set[str]:
        return self.recusals.get(ballot.reviewer, set())

    def _known_groups(self, ballot: Ballot) -> Groups:
        """Return the ranking without unknown and repeated names."""
        ranked_names = [name for group in ballot.groups for name in group]
        distinct = set(ranked_names)
        if (
            len(distinct) == len(ranked_names)
            and all(ballot.groups)
            and distinct <= self.seats.keys()
        ):
            return ballot.groups
        names: set[str] = set()
        groups = []
        for group in ballot.groups:
            remaining = []
            for name in group:
                if name not in self.seats:
                    self._warn(ballot, f"ranks {name!r}, who is not a candidate; dropped")
                elif name in names:
                    self._warn(ballot, f"ranks {name!r} more than once; the first place counts")
                else:
                    names.add(name)
                    remaining.append(name)
            if remaining:
                groups.append(tuple(remaining))
        return tuple(groups)

    def _grades(self, ballot: Ballot) -> tuple[dict[str, float], bool]:
        """Read overall grades by candidate, and whether any come from criteria."""
        grades: dict[str, float] = {}
        by_rubric, is_native = False, ballot.scale is None or ballot.scale.is_native
        for name, cell in ballot.grades.items():
            if name not in self.seats:
                self._warn(ballot, f"grades {name!r}, who is not a candidate; dropped")
            elif type(cell) is dict or isinstance(cell, Mapping):
                grade = None
                if is_native and NUMBER_TYPES.issuperset(map(type, cell.values())):
                    grade = self.weigh(tuple(cell.items()))
                if grade is None:
                    grade = self._by_criteria(ballot, name, cell)
                if grade is not None:
                    by_rubric = True
                    grades[name] = grade
            else:
                grade = self._grade(ballot, name, cell, HOLISTIC)
                if grade is not None:
                    grades[name] = grade
        return grades, by_rubric

    def _grade(self, ballot: Ballot, name: str, grade: object, criterion: str) -> float | None:
        """Read one grade as 1–10, with warnings; None if unreadable."""
        if ballot.scale is None and type(grade) is int and LOWEST <= grade <= HIGHEST:
            return float(grade)  # the usual case
        within = NATIVE if ballot.scale is None else ballot.scale.of(criterion)
        grade_value = grade_on(within, grade)
        if grade_value is None:
            if not is_empty(grade):
                typo = " (a typing error?)" if may_be_typing_error(grade) else ""
                self._warn(ballot, f"grades {name!r} {_shorten(grade)}, not a grade{typo}; dropped")
            return None
        if grade_value[1]:
            problem = f"grades {name!r} {_shorten(grade)}, outside the scale {within}"
            self._warn(ballot, f"{problem}; its nearer end counts")
        return grade_value[0]

    def _find_omissions(self, ballot: Ballot, grades: Mapping[str, float]) -> list[str]:
        """Find ungraded candidates on the sheet of a grading ballot.

        The sheet consists of the candidates in its positions or roster. Without either, it consists
        of the candidates that the ballot names, and of all graded candidates if another ballot
        without a sheet, of the same kind, grades them all. A candidate that no ballot ranks or
        grades has no votes, unless `unranked` places it. An empty or invalid grade is unknown and
        not a vote; so are grades on too few criteria on a ballot without a sheet.
        """
        own = self.candidates_by_author.get(ballot.reviewer, set())
        bare = [name for name in self.candidates if name not in grades and name not in own]
        if not bare:
            return []
        stated = ballot.positions or ballot.candidates is not None
        unknown = [
            name
            for name in ballot.grades
            if name not in grades and not (stated and all(_are_graded(ballot, name)))
        ]
        if others := [name for name in unknown if name in self.seats and name not in own]:
            names_text = ", ".join(map(repr, others))
            self._warn(ballot, f"has no readable grade for {names_text}, and so no vote there")
        if ballot.paired or not grades.keys() - own:
            return []
        shown = set(ballot.candidate_names())
        if ballot.positions:
            shown = {*ballot.positions, *chain.from_iterable(ballot.groups)}
        elif not stated and ballot.kind in self.whole_kinds:
            shown |= self.graded_candidates
        if self.counting.unranked == "skip":  # otherwise they have places
            shown &= self.judged_candidates
        omitted = [name for name in bare if name in shown and name not in unknown]
        if omitted:
            names_text = ", ".join(map(repr, omitted))
            self._warn(
                ballot,
                f"gives no grade to {names_text}, on its sheet; the lowest counts (positions or "
                "candidates say whom a ballot was shown)",
            )
        return omitted

    @cached_property
    def criteria(self) -> set[str]:
        return {criterion.name for criterion in self.counting.rubric.criteria}

    @cached_property
    def guards(self) -> Mapping[str, None]:
        return dict.fromkeys(ceiling.criterion for ceiling in self.counting.rubric.ceilings)

    @cached_property
    def counted_ballots(self) -> list[Ballot]:
        return [ballot for ballot in self.ballots if not ballot.abstained and ballot.weight > 0]

    @cached_property
    def graded_candidates(self) -> set[str]:
        return {
            name for b in self.counted_ballots for name in b.grades if any(_are_graded(b, name))
        }

    @cached_property
    def judged_candidates(self) -> set[str]:
        """Candidates with at least one grade or place."""
        groups = chain.from_iterable(ballot.groups for ballot in self.counted_ballots)
        return self.graded_candidates.union(*groups)

    @cached_property
    def whole_kinds(self) -> set[str]:
        """Kinds with a ballot that grades every candidate and states no sheet."""
        return {
            ballot.kind
            for ballot in self.ballots
            if ballot.grades
            and ballot.candidates is None
            and not (ballot.positions or ballot.paired or ballot.abstained)
            and self.graded_candidates - ballot.grades.keys()
            <= self.candidates_by_author.get(ballot.reviewer, set())
        }

    def _by_criteria(
        self, ballot: Ballot, name: str, grades: Mapping[str, float | str]
    ) -> float | None:
        """Combine criteria; below half of the weight, use the holistic grade."""
        grade_by_criterion: dict[str, float] = {}
        holistic = None
        for criterion, value in grades.items():
            grade = self._grade(ballot, name, value, criterion)
            if criterion in self.criteria:
                if grade is not None:
                    grade_by_criterion[criterion] = grade
            elif criterion == HOLISTIC:
                holistic = grade
            else:
                self.warnings.append(
                    f"the criterion {criterion!r} is not in the rubric "
                    f"{self.counting.rubric.name!r}; its grades are dropped"
                )
        total = overall(self.counting.rubric, grade_by_criterion)
        guards = self._left_out_guards(ballot, name, grade_by_criterion)
        grade_by_criterion |= dict.fromkeys(guards, LOWEST)
        if total.value is not None:
            return (
                overall(self.counting.rubric, grade_by_criterion).value if guards else total.value
            )
        consequence = "its holistic grade counts" if holistic is not None else "it gives no grade"
        missing = ", ".join(self.counting.rubric.missing_criteria(grade_by_criterion))
        what = f"grades {name!r} on less than half of the rubric's weight, without {missing}"
        self._warn(ballot, f"{what}; {consequence}")
        if holistic is None:
            return None
        ceiling = trips(self.counting.rubric, holistic, grade_by_criterion)
        return holistic if ceiling is None else ceiling.at_most

    def _left_out_guards(self, ballot: Ballot, name: str, known: Mapping[str, float]) -> list[str]:
        """Find ceiling criteria without a valid grade here but graded elsewhere."""
        if known.keys() >= self.guards.keys():
            return []
        sheets = [mappings for mappings in ballot.grades.values() if isinstance(mappings, Mapping)]
        missing = [
            criterion
            for criterion in self.guards
            if criterion not in known
            and any(_is_graded(ballot, sheet, criterion) for sheet in sheets)
        ]
        if missing:
            listed = " and ".join(map(repr, missing))
            what = f"has no readable grade on {listed} for {name!r}, and a ceiling depends on"
            self._warn(ballot, f"{what} {'it' if len(missing) == 1 else 'them'}; the lowest counts")
        return missing

    def _counted_ranking(
        self, ballot: Ballot, groups: Groups, grades: Mapping[str, float], by_rubric: bool
    ) -> Groups:
        """Return the ranking that counts: explicit, or derived from grades."""
        if groups and not by_rubric:
            return groups
        if not grades:
            return groups
        place = {name: order for order, group in enumerate(groups) for name in group}
        ungraded = [name for name in place if name not in grades]
        if ungraded:
            problem = (
                f"ranks {', '.join(ungraded)} without grading; its order does not count for them"
            )
            self._warn(ballot, problem)
        if len(grades) == 1:
            return (tuple(grades),)
        levels: dict[tuple[float, int], list[str]] = {}
        for name in self.candidates:
            if name in grades:
                key = (-grades[name], place.get(name, len(groups)))
                levels.setdefault(key, []).append(name)
        return tuple([tuple(levels[key]) for key in sorted(levels)])

    def _complete_groups(self, groups: Groups, sheet: Sequence[str]) -> Groups:
        """Append unranked candidates if these count; move failed ones last."""
        if not self.failed and self.counting.unranked == "skip":
            return groups
        ranked = {name for group in groups for name in group}
        passed = [tuple(c for c in group if c not in self.failed) for group in groups]
        foot = tuple(c for group in groups for c in group if c in self.failed)
        if self.counting.unranked == "last" and ranked:
            passed.append(tuple(c for c in sheet if c not in ranked and c not in self.failed))
            foot += tuple(c for c in sheet if c not in ranked and c in self.failed)
        return tuple(group for group in [*passed, foot] if group)

    def _vote(
        self,
        ballot: Ballot,
        sheet: Sequence[str],
        groups: Groups,
        grades: Mapping[str, float],
        *,
        mismatch: bool,
        omitted: Sequence[str],
    ) -> Vote | str | None:
        own = self._own_candidates(ballot)
        if ballot.paired and own.intersection(sheet):
            return None
        leaves = own if self.counting.recusal == "before" else set()
        counted_groups = groups
        if not leaves.isdisjoint(chain.from_iterable(groups)):
            counted_groups = tuple(
                g for g in (tuple(c for c in g if c not in leaves) for g in groups) if g
            )
        sheet_names = [name for name in sheet if name not in leaves]
        places = [0] * len(self.candidates)
        above = 0
        for group in self._complete_groups(counted_groups, sheet_names):
            for name in group:
                places[self.seats[name]] = 2 * above + len(group) + 1
            above += len(group)
        for name in own:
            places[self.seats[name]] = 0
        graded = tuple([nan if c in own else grades.get(c, nan) for c in self.candidates])
        if not any(places) and all(isnan(grade) for grade in graded):
            return NOTHING_LEFT
        return Vote(
            reviewer=ballot.reviewer,
            groups=counted_groups,
            places=tuple(places),
            grades=graded,
            weight=float(ballot.weight),
            length=above,
            eligible=len(sheet_names),
            mismatch=mismatch,
            paired=ballot.paired,
            kind=ballot.kind,
            omitted=tuple([self.seats[name] for name in omitted]),
        )

    def _warn(self, ballot: Ballot, problem: str) -> None:
        self.warnings.append(f"the ballot of {ballot.reviewer} {problem}")


def _are_graded(ballot: Ballot, name: str) -> list[bool]:
    """Test which grades of a candidate can be read."""
    grade = ballot.grades[name]
    grades = grade if isinstance(grade, Mapping) else {HOLISTIC: grade}
    return [_is_graded(ballot, grades, criterion) for criterion in grades]


def _is_graded(ballot: Ballot, grades: Mapping[str, float | str], criterion: str) -> bool:
    within = NATIVE if ballot.scale is None else ballot.scale.of(criterion)
    return grade_on(within, grades.get(criterion)) is not None


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"


def _contradicts(groups: Groups, grades: Mapping[str, float]) -> bool:
    """True if ranking and grades order any pair in strictly opposite ways."""
    if len(grades) < 2:
        return False
    best_below = float("-inf")
    for group in reversed(groups):
        values = [grades[name] for name in group if name in grades]
        if values and min(values) < best_below:
            return True
        best_below = max([best_below, *values])
    return False
