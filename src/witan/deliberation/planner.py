"""Plan a session by measuring its future prompts, and spend adaptively.

Adaptive spending orders reviewers, and stops when ballots suffice.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from math import ceil, comb, inf
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from witan.core.ballot import Ballot
from witan.core.blinding import Sheet, label_map
from witan.core.early_stopping import p_lead_settled
from witan.core.outcome import Outcome
from witan.core.rubric import Rubric
from witan.core.scale import HOLISTIC
from witan.core.sequential import HOPELESS, p_asked
from witan.core.settings import Settings
from witan.core.stats.priors import prior_of, rho_of
from witan.core.stats.separation import Separation, separation
from witan.core.verdict import decide, judge_texts, p_pass_settled
from witan.deliberation.events import Judging, SessionOpened
from witan.deliberation.money import sum_known
from witan.deliberation.plan import BYTES_A_TOKEN, TYPICAL, Lengths, Plan, PlanLine
from witan.deliberation.ports import Member, Message, Seat, Stage, most_input_tokens
from witan.deliberation.procedure import Procedure, check_question_reviews
from witan.deliberation.prompts import (
    LONG_PROBLEM,
    PROBLEM_BYTES,
    REPLY_LENGTH,
    answer_messages,
    debate_messages,
    longest_structure_repair,
    neutralize,
    repair_messages,
    review_messages,
    review_schema,
    synthesis_messages,
)
from witan.deliberation.session import Authorship, is_author
from witan.deliberation.texts import mask, masked_names
from witan.errors import InvalidParameter

AnySeat = TypeVar("AnySeat", bound=Member | Seat)


SECOND_ORDER = 1 / 3
"""Information of a reviewer's second order, as a share of that of its first.

Where half of a ballot's noise stays in the other order, their mean has the information 4/3.
"""

SeatLike = Member | Seat

TOKENIZERS_DIFFER = 2
"""Most tokens of a text for any model, over those for its author.

Tokenizers differ by a third on prose in major languages and by less than twice on code; the
rest is room for fences and masks.
"""

STANDINGS_TOKENS, CANDIDATE_TOKENS, PAIR_TOKENS = 256, 128, 32
"""Tokens of a future outcome: in all, per candidate, per pair."""

PROBLEM_MARKERS = PROBLEM_BYTES // len("<<<OWN")
"""Most markers in the problem of a review that is repeated."""

CHARACTER_BYTES, MARKER_LENGTH = 4, 4
"""Bytes of the longest character, and characters of the shortest marker, at least two tokens."""

LONG_GRADE = 26 / 3
"""A grade with the most digits possible; two orders of a sheet are averaged."""

NONCE = "0" * 32

NO_FILES: Mapping[str, str] = MappingProxyType({})

Sizes = Sequence[tuple[int, int]]
"""Most tokens of each review of a seat, and of its repair."""


def order_sheets(
    reviewers: Sequence[AnySeat], settings: Settings, n_orders: int = 1
) -> list[tuple[AnySeat, int]]:
    """Order sheets, as seat and order, the most informative first.

    Reversed sheets come after all first ones. Where reliability is known, that of a more reliable
    reviewer comes before the first sheet of one with less than a third of its weight; but as many
    reviewers as the first look needs begin.
    """
    ranking = order_reviewers(reviewers, settings)
    reliability = settings.reliability or {}
    first_look = settings.looks[0] if settings.looks else len(ranking)
    sheets: list[tuple[AnySeat, int]] = []
    begun: list[AnySeat] = []
    for seat in ranking:
        if n_orders > 1 and reliability and len(begun) >= first_look:
            bar = reliability.get(seat.name, 1.0)
            better = [s for s in begun if reliability.get(s.name, 1.0) * SECOND_ORDER > bar]
            sheets += [(each, 1) for each in better if (each, 1) not in sheets]
        sheets.append((seat, 0))
        begun.append(seat)
    later = [(seat, turn) for turn in range(1, n_orders) for seat in ranking]
    return [*sheets, *(each for each in later if each not in sheets)]


def order_reviewers(reviewers: Sequence[AnySeat], settings: Settings) -> list[AnySeat]:
    """Order reviewers by how informative their ballots are likely to be.

    Models of one maker share errors, so makers take turns. Within a turn the more reliable reviewer
    comes first if reliability is known, otherwise the earlier seat.
    """
    reliability = settings.reliability or {}
    turns: Counter[str] = Counter()
    turn: dict[str, int] = {}
    by_trust = sorted(reviewers, key=lambda each: -reliability.get(each.name, 1.0))
    for seat in by_trust:
        turn[seat.name] = turns[_maker(seat)]
        turns[_maker(seat)] += 1
    return sorted(by_trust, key=lambda each: turn[each.name])


def _maker(seat: Member | Seat) -> str:
    """Return the maker of a seat's model, such as ``openrouter:qwen`` for ``openrouter:qwen/x``.

    Every script, program and model passed as an object counts as a separate maker.
    """
    if not seat.source or seat.provider in ("script", "cmd"):
        return f"seat {seat.name}"
    return seat.source.rpartition("/")[0] or seat.provider


@dataclass(frozen=True, slots=True)
class Look:
    """State of the reviews: settled, hopeless or open.

    `is_settled`: true if nothing is too close to call.
    `p_settled`: probability that the remaining ballots would settle it.
    `leader`: the decided candidate, if any.
    """

    is_settled: bool
    p_settled: float
    leader: str | None

    @property
    def ends(self) -> bool:
        """True if no more ballots should be requested."""
        return self.is_settled or self.p_settled < HOPELESS


def look_at(
    ballots: Sequence[Ballot],
    outcome: Outcome | None,
    settings: Settings,
    judging: Judging | None,
    growth: float,
) -> Look:
    """Look at the ballots so far.

    `outcome`: outcome of these ballots; None if they are too few for one.
    `settings`: the settings of the count, planned looks included.
    `growth`: ratio of all ballots that may be requested to those received, ≥ 1.
    """
    if outcome is None:
        return Look(is_settled=False, p_settled=1.0, leader=None)
    if judging is None:
        leader = outcome.clear_leader
        if leader is not None or growth <= 1:
            return Look(leader is not None, float(leader is not None), leader)
        return Look(False, p_lead_settled(ballots, outcome, settings, growth), None)
    ballots_cast = [ballot for ballot in ballots if not ballot.abstained]
    mark, expected = judging.pass_mark, judging.expected
    verdict = judge_texts(ballots_cast, outcome, settings, pass_mark=mark, expected=expected)
    if verdict.decision not in (None, "too close to call"):
        return Look(is_settled=True, p_settled=1.0, leader=verdict.text)
    if growth <= 1:
        return Look(is_settled=False, p_settled=0.0, leader=None)
    chances = [1.0]
    if len(verdict.texts) > 1 and verdict.leader is None:
        chances.append(p_lead_settled(ballots_cast, outcome, settings, growth))
    grades = {each.text: each for each in verdict.texts}
    about = grades[verdict.text or verdict.texts[0].text]
    if mark is not None and decide(about.p_pass, verdict.look_level) == "too close to call":
        chance = p_pass_settled(
            ballots_cast, outcome, settings, about.text, pass_mark=mark, growth=growth
        )
        chances.append(chance)
    return Look(is_settled=False, p_settled=min(chances), leader=None)


def make_plan(
    members: Sequence[SeatLike],
    chairmen: Sequence[SeatLike],
    procedure: Procedure,
    question: str,
    *,
    jury: Sequence[SeatLike] = (),
    conversation: Sequence[Message] = (),
    files: Mapping[str, str] = NO_FILES,
    lengths: Lengths = TYPICAL,
) -> Plan:
    """Plan a session: its calls, their tokens and cost at most.

    Tokens are bounds and not estimates. Known text has one token per byte, which no tokenizer
    exceeds. A future text has as many as its author may write, and twice that for other readers; a
    failed review has as many as its repair repeats. Costs follow from them, so no session without
    retries and hedges costs more. Most cost a fraction: prose has four bytes per token, and few
    answers reach their limit.

    The final answer is planned for the first chairman and, if needed, for the others and for the
    most expensive member, since the best-ranked member is asked last.

    `jury`: reviewers in place of the members.

    Raises `InvalidParameter` if two members would only rank each other.
    """
    check_question_reviews(procedure, len(members), len(jury))
    blank_answers = {f"seat {number}": "" for number in range(len(members))}
    blank = _BlankPrompts.of(blank_answers, procedure, question, conversation, files)
    planner = _Planner(members, members, procedure, blank, lengths, jury=bool(jury))
    reviewers = jury or members
    authors = {seat.name: planner.visible_authors(seat) for seat in reviewers}
    reviews = {n: blank.reviews([*blank_answers][:n]) for n in {*map(len, authors.values())}}
    answers = blank.answers()
    lines = [planner.answers(seat, answers) for seat in members]
    lines += planner.review_lines([(seat, reviews[len(authors[seat.name])]) for seat in reviewers])
    lines += planner.synthesis_lines(chairmen)
    separable = panel_separation(members, procedure, jury)
    return sum_lines(lines, separable, lengths.sessions)


def panel_separation(
    members: Sequence[SeatLike], procedure: Procedure, jury: Sequence[SeatLike]
) -> Separation | None:
    """Smallest difference detectable by this panel.

    Jurors judge all answers except those of their own models.
    """
    if not jury:
        return review_separation(len(members), procedure)
    n_own = [sum(is_author(juror, member) for member in members) for juror in jury]
    n_reviewers = sum(1 for n in n_own if n < len(members))
    return review_separation(n_reviewers, procedure, len(members), authors=all(n_own))


def review_separation(
    reviewers: int, procedure: Procedure, candidates: int | None = None, *, authors: bool = True
) -> Separation | None:
    """Smallest difference detectable by reviews, or None without grades.

    `candidates`: number of answers judged; by default one per reviewer.
    `authors`: true if the reviewers wrote them.
    """
    counting = procedure.counting
    if not procedure.asks_grades or counting.ties != "contrast":
        return None
    n_candidates = reviewers if candidates is None else candidates
    counts_own = procedure.self_review and counting.counting.recusal == "off"
    return separation(
        reviewers,
        n_candidates,
        authors=authors and not counts_own,
        level=counting.level,
        prior=prior_of(counting.prior, "grades", n_candidates),
        rho=rho_of(counting.rho, "grades"),
    )


def plan_reviews(  # noqa: PLR0913 - all but four by name
    jury: Sequence[SeatLike],
    chairmen: Sequence[SeatLike],
    procedure: Procedure,
    question: str,
    *,
    answers: Mapping[str, str],
    own_candidates: Mapping[str, Collection[str]],
    substitutes: Sequence[SeatLike],
    conversation: Sequence[Message] = (),
    files: Mapping[str, str],
) -> Plan:
    """Plan reviews of existing answers, and the final answer.

    `answers`: candidate to text as the sheets show it.
    `own_candidates`: juror to the candidates that it does not see.
    `substitutes`: members, one of whom writes the final answer if every chairman fails.
    """
    blank = _BlankPrompts.of(answers, procedure, question, conversation, files)
    planner = _Planner(substitutes, (), procedure, blank, TYPICAL)
    sheets = [tuple(c for c in answers if c not in own_candidates[juror.name]) for juror in jury]
    reviews = {each: blank.reviews(each) for each in dict.fromkeys(sheets)}
    lines = planner.review_lines(
        [(juror, reviews[each]) for juror, each in zip(jury, sheets, strict=True)]
    )
    lines += planner.synthesis_lines(chairmen)
    n_reviewers = sum(1 for each in sheets if reviews[each])
    authors = all(own_candidates[juror.name] for juror in jury)
    separable = review_separation(n_reviewers, procedure, len(answers), authors=authors)
    return sum_lines(lines, separable, TYPICAL.sessions)


def sum_lines(
    lines: Sequence[PlanLine], separable: Separation | None = None, expected_from: int = 0
) -> Plan:
    """Sum the lines of a plan."""
    repairs = sum(line.calls for line in lines if line.stage == "repair")
    worst = sum_known([line.worst_usd for line in lines])
    return Plan(tuple(lines), repairs, worst, separable, expected_from)


class _Unwritten(NamedTuple):
    """Answers in a prompt: number, and tokens of those not yet written.

    `most` is their bound for any reader, and `expected` what their authors usually write.
    """

    n: int
    most: int
    expected: float


class _Planner:
    """Plans each seat's calls from blank prompts and longest answers.

    A council's prompts are measured once, since those of two seats differ only in these two.

    `members`: members, one of whom writes the final answer if every chairman fails.
    `authors`: members whose answers are not yet written.
    `jury`: true if other models than the authors review.
    """

    def __init__(
        self,
        members: Sequence[SeatLike],
        authors: Sequence[SeatLike],
        procedure: Procedure,
        blank: "_BlankPrompts",
        lengths: Lengths,
        *,
        jury: bool = False,
    ) -> None:
        self._members, self._authors, self._jury = members, authors, jury
        self._procedure, self._blank, self._lengths = procedure, blank, lengths
        self._tokens = {
            author.name: (
                TOKENIZERS_DIFFER * self._max_tokens(author),
                lengths.tokens(author.source or author.name, "answer", 0),
            )
            for author in authors
        }
        self._all_answers = self._unwritten(authors)

    def review_lines(self, sizes: Sequence[tuple[SeatLike, Sizes]]) -> list[PlanLine]:
        """Return the reviews of every seat with answers to review, then repairs."""
        adaptive = self._procedure.spend == "adaptive"
        seats, reviews, repairs = [], [], []
        for seat, each in sizes:
            if each:
                sheet, prompts = self._sheet(seat), [size for size, _ in each]
                # A review that may not be needed has a line of its own.
                parts = [[size] for size in prompts] if adaptive else [prompts]
                seats.append(seat)
                reviews.append([self._reviews(seat, sheet, part) for part in parts])
                repairs.append(self._repairs(seat, sheet, [size for _, size in each]))
        if adaptive and reviews:
            return [*self._weigh(reviews, seats), *repairs]
        return [*chain.from_iterable(reviews), *repairs]

    def _weigh(
        self, lines: Sequence[Sequence[PlanLine]], seats: Sequence[SeatLike]
    ) -> list[PlanLine]:
        """Estimate the probability of each review, in asking order."""
        counting = self._procedure.counting
        rho = rho_of(counting.rho, "grades" if self._procedure.asks_grades else "ranks")
        chances = p_asked(counting.looks, len(self._blank.seats), counting.level, rho / (1 - rho))
        turns = {seat.name: own for seat, own in zip(seats, lines, strict=True)}
        n_turns = max(map(len, lines))
        queue = [turns[seat.name][at] for seat, at in order_sheets(seats, counting, n_turns)]
        likely = [
            replace(line, probability=chance) for line, chance in zip(queue, chances, strict=False)
        ]
        return [*likely, *queue[len(likely) :]]

    def answers(self, seat: SeatLike, blank: Sequence[int]) -> PlanLine:
        """Return the answers of a seat, one per round."""
        first, *debates = blank
        prompts = [first, *(size + self._all_answers.most for size in debates)]
        return self._line(seat, "answer", prompts, self._all_answers, n_reading=len(debates))

    def _reviews(self, seat: SeatLike, sheet: _Unwritten, blank: Sequence[int]) -> PlanLine:
        prompts = [size + sheet.most for size in blank]
        return self._line(
            seat, "review", prompts, sheet, n_reading=len(blank), unwritten=sheet.most
        )

    def _repairs(self, seat: SeatLike, sheet: _Unwritten, blank: Sequence[int]) -> PlanLine:
        tokens = sheet.most + self._repeated_tokens(seat)
        prompts = [size + tokens for size in blank]
        return self._line(seat, "repair", prompts, sheet, unwritten=tokens, if_needed=True)

    def visible_authors(self, seat: SeatLike) -> list[SeatLike]:
        """Return the authors of the answers on a reviewer's sheet."""
        if not self._authors:
            return []
        if self._jury:
            return [author for author in self._authors if not is_author(seat, author)]
        sees_all = self._procedure.self_review
        return [other for other in self._authors if sees_all or other.name != seat.name]

    def _sheet(self, seat: SeatLike) -> _Unwritten:
        """Measure the answers on a sheet; for pairs, the two possibly longest."""
        authors = self.visible_authors(seat)
        if self._procedure.pairs is not None:
            authors = sorted(authors, key=self._max_tokens, reverse=True)[:2]
        return self._unwritten(authors)

    def _unwritten(self, authors: Collection[SeatLike]) -> _Unwritten:
        if not self._authors:
            n_texts = len(self._blank.texts)
            return _Unwritten(n_texts if self._procedure.pairs is None else min(n_texts, 2), 0, 0.0)
        tokens = [self._tokens[author.name] for author in authors]
        return _Unwritten(
            len(authors),
            sum([most for most, _ in tokens]),
            sum([expected for _, expected in tokens], 0.0),
        )

    def synthesis_lines(self, chairmen: Sequence[SeatLike]) -> list[PlanLine]:
        """Return every chairman, then the dearest member; only the first is certain.

        None writes if there is no final answer, or the best one is used.
        """
        if not self._procedure.synthesis or self._procedure.mode == "best":
            return []
        answers = self._all_answers
        blank, repair = self._blank.synthesis()
        size, unwritten = blank + answers.most, answers.most + self._blank.standings()
        names = {seat.name for seat in chairmen}
        others = [seat for seat in self._members if seat.name not in names]
        dearest = max(others, key=lambda seat: self._worst_usd(seat, size), default=None)
        seats = chairmen if dearest is None else [*chairmen, dearest]
        chain = [
            self._line(
                seat, "synthesis", [size], answers,
                n_reading=1, unwritten=unwritten, if_needed=place > 0,
            )
            for place, seat in enumerate(seats)
        ]  # fmt: skip
        if repair is not None:
            prompts = [repair + answers.most]
            chain += [
                self._line(seat, "synthesis", prompts, answers, unwritten=unwritten, if_needed=True)
                for seat in seats
            ]
        return chain

    def _line(
        self,
        seat: SeatLike,
        stage: Stage,
        prompts: Sequence[int],
        answers: _Unwritten,
        *,
        n_reading: int = 0,
        unwritten: int = 0,
        if_needed: bool = False,
    ) -> PlanLine:
        """Plan the calls of one seat, one for each prompt.

        `answers`: the answers that its prompts contain.
        `n_reading`: number of prompts with unwritten answers.
        `unwritten`: most tokens of the shortest prompt that are not yet written.
        """
        calls, longest, price = len(prompts), self._max_tokens(seat), seat.price
        system = _system_tokens(seat)
        input_tokens, output_tokens = sum(prompts) + calls * system, calls * longest
        worst = least_usd = expected = None
        if price is not None:
            worst = price.of(input_tokens, output_tokens)
            known_tokens = (input_tokens - n_reading * answers.most) / BYTES_A_TOKEN
            reply = self._lengths.tokens(seat.source or seat.name, stage, answers.n)
            reply = min(reply, longest)
            likely_tokens = round(known_tokens + n_reading * answers.expected)
            expected = price.of(likely_tokens, round(calls * reply))
            least_usd = price.of(min(prompts) + system - unwritten, longest)
        return PlanLine(
            seat.name,
            stage,
            calls,
            input_tokens,
            output_tokens,
            worst,
            if_needed,
            least_usd,
            expected,
        )

    def _worst_usd(self, seat: SeatLike, size: int) -> float:
        if seat.price is None:
            return inf
        return seat.price.of(size + _system_tokens(seat), self._max_tokens(seat))

    def _repeated_tokens(self, seat: SeatLike) -> int:
        """Maximum tokens of a seat's own review, repeated in its repair.

        For its author a text has as many tokens as were written; each marker adds one.
        """
        most = min(self._max_tokens(seat), CHARACTER_BYTES * REPLY_LENGTH)
        return most + min(most // 2, REPLY_LENGTH // MARKER_LENGTH)

    def _max_tokens(self, seat: SeatLike) -> int:
        own_limit = seat.options.max_tokens
        return self._procedure.limits.max_tokens if own_limit is None else own_limit


def _system_tokens(seat: SeatLike) -> int:
    """Return the most tokens of a seat's system text in a prompt."""
    if seat.options.system is None:
        return 0
    return most_input_tokens([Message("system", seat.options.system)]) - most_input_tokens([])


@dataclass(frozen=True, slots=True)
class _BlankPrompts:
    """Most tokens of a session's prompts, without system texts.

    `texts`: candidate to its answer; empty if not yet written.
    """

    texts: Mapping[str, str]
    procedure: Procedure
    question: str
    conversation: Sequence[Message]
    files: Mapping[str, str]

    @classmethod
    def of(
        cls,
        texts: Mapping[str, str],
        procedure: Procedure,
        question: str,
        conversation: Sequence[Message],
        files: Mapping[str, str],
    ) -> "_BlankPrompts":
        """Make the prompts' parts, each neutralized once for all prompts."""
        safe_files = {name: neutralize(text) for name, text in files.items()}
        return cls(texts, procedure, neutralize(question), conversation, safe_files)

    @property
    def seats(self) -> list[str]:
        """The candidates."""
        return list(self.texts)

    def answers(self) -> list[int]:
        """Return a member's first answer and its revisions in debate."""
        messages = answer_messages(
            self.question,
            conversation=self.conversation,
            files=self.files,
            system=None,
            verdict=self.procedure.mode == "verdict",
            nonce=NONCE,
        )
        rounds = self.procedure.debate_rounds
        debates = [self._debate()] * rounds if rounds else []
        return [most_input_tokens(messages), *debates]

    def reviews(self, candidates: Sequence[str]) -> list[tuple[int, int]]:
        """Return a member's reviews with repairs, without the failed reply."""
        if len(candidates) < (1 if self.procedure.asks_grades else 2):
            return []
        if self.procedure.pairs is not None:
            # An upper bound: every pair counts as the two longest texts.
            longest = sorted(candidates, key=lambda name: -len(self.texts[name].encode()))[:2]
            n_pairs = min(self.procedure.pairs, comb(len(candidates), 2))
            return [self._review(longest, 1)] * (2 * n_pairs)
        rounds = range(1, self.procedure.review_rounds + 1)
        review_lines = [self._review(candidates, number) for number in rounds]
        return review_lines * 2 if self.procedure.mirrored else review_lines

    def _debate(self) -> int:
        others = self.seats[1:]
        return most_input_tokens(
            debate_messages(
                self.question,
                conversation=self.conversation,
                files=self.files,
                system=None,
                own_answer="",
                sheet=_draw_sheet(tuple(others)),
                answers=dict.fromkeys(others, ""),
                verdict=self.procedure.mode == "verdict",
            )
        )

    def _review(self, candidates: Sequence[str], number: int) -> tuple[int, int]:
        sheet = _draw_sheet(tuple(candidates))
        rubric = self.procedure.graded_rubric
        peers = self._ballots() if number > 1 else {}
        messages = review_messages(
            self.question,
            sheet,
            self.texts,
            rubric,
            holistic=self.procedure.holistic,
            conversation=self.conversation,
            files=self.files,
            peers=peers or None,
            own_ballot=next(iter(peers.values()), None),
            weighs=self.procedure.weighed_rubric,
        )
        form = _schema_tokens(sheet, rubric, holistic=self.procedure.holistic)
        tokens = most_input_tokens(messages) + form
        return tokens, tokens + _repair_tokens() + PROBLEM_MARKERS

    def synthesis(self) -> tuple[int, int | None]:
        """Return the final answer, and its repair if there is a schema."""
        messages = synthesis_messages(
            self.question,
            conversation=self.conversation,
            files=self.files,
            sheet=_draw_sheet(tuple(self.seats)),
            answers=self.texts,
            outcome=None,
            mode=self.procedure.mode,
            votes={},
            schema=self.procedure.json_schema,
        )
        standings = self.standings()
        if self.procedure.json_schema is None:
            return most_input_tokens(messages) + standings, None
        schema = json.loads(self.procedure.json_schema)
        repair = most_input_tokens(longest_structure_repair(messages), schema) + standings
        return most_input_tokens(messages, schema) + standings, repair

    def standings(self) -> int:
        """Return the most tokens of a future outcome."""
        n = len(self.seats)
        return STANDINGS_TOKENS + n * CANDIDATE_TOKENS + n * (n - 1) // 2 * PAIR_TOKENS

    def _ballots(self) -> dict[str, Ballot]:
        """Return the longest ballots of the round before, one's own first."""
        criteria = [*(criterion.name for criterion in self.procedure.rubric.criteria), HOLISTIC]
        grades = dict.fromkeys(self.seats, dict.fromkeys(criteria, LONG_GRADE))
        groups = tuple((seat,) for seat in self.seats)
        return {seat: Ballot(seat, groups, grades) for seat in self.seats[1:]}


@lru_cache(maxsize=64)
def _schema_tokens(sheet: Sheet, rubric: Rubric | None, *, holistic: bool) -> int:
    """Return the most tokens that the schema of a review adds."""
    schema = review_schema(sheet, rubric, holistic=holistic)
    return most_input_tokens([], schema) - most_input_tokens([])


@cache
def _repair_tokens() -> int:
    """Return the most tokens of a repair, without review and failed reply."""
    return most_input_tokens(repair_messages((), "", LONG_PROBLEM)) - most_input_tokens(())


@lru_cache(maxsize=64)
def _draw_sheet(candidates: tuple[str, ...]) -> Sheet:
    return label_map("plan", candidates, (0,))


def fit_pairs(
    procedure: Procedure, n_texts: int, n_reviewers: int, plan: Callable[[Procedure], Plan]
) -> Procedure:
    """Lower the pairs per reviewer to what exists and is affordable.

    Raises `InvalidParameter` if there are too few to compare every text with another.
    """
    if procedure.pairs is None:
        return procedure
    fewest = ceil(n_texts / n_reviewers)
    most = max(min(procedure.pairs, comb(n_texts, 2)), 1)
    if most < fewest and most < comb(n_texts, 2):
        expected = f"{fewest} or more, for {n_reviewers} reviewers to compare {n_texts} texts"
        raise InvalidParameter("pairs", procedure.pairs, expected)
    ceiling = procedure.limits.max_cost_usd
    for n_pairs in range(most, fewest, -1):
        fitted = replace(procedure, pairs=n_pairs)
        usual = None if ceiling is None else plan(fitted).usual_usd
        if ceiling is None or usual is None or usual <= ceiling:
            return fitted
    return replace(procedure, pairs=min(fewest, most))


def plan_session(opening: SessionOpened) -> Plan:
    """Plan a session from its opening."""
    if opening.answers:
        return plan_stored_answers(opening, {each.seat: each.text for each in opening.answers})
    return make_plan(
        opening.seats,
        opening.chairmen,
        opening.procedure,
        opening.question,
        jury=opening.jury,
        conversation=opening.conversation,
        files=opening.files,
    )


def plan_stored_answers(opening: SessionOpened, answers: Mapping[str, str]) -> Plan:
    """Plan a session with stored answers."""
    names = masked_names((*opening.seats, *opening.jury))
    members = [seat for seat in opening.seats if seat.name in answers]
    own_candidates = Authorship.of(opening).candidates_by_author
    if opening.procedure.self_review and not opening.jury:
        own_candidates = dict.fromkeys(own_candidates, ())
    return plan_reviews(
        opening.jury or members,
        opening.chairmen,
        opening.procedure,
        opening.question,
        conversation=opening.conversation,
        files=opening.files,
        answers={seat: mask(text, opening.question, names) for seat, text in answers.items()},
        own_candidates=own_candidates,
        substitutes=opening.jury if opening.answers else members,
    )
