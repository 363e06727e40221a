"""From ballots to rows: standings, matchups, ballots exactly as cast, noise."""

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from elections import ballot, ballots
from witan.core.ballot import Ballot
from witan.core.entry_builder import entries_of, entries_of_many
from witan.core.gate import Gate
from witan.core.interpretation import Counting, interpret
from witan.core.outcome import Outcome
from witan.core.rules import RULES
from witan.core.session_ballots import (
    Entries,
    SessionBallots,
    StandingEntry,
    read_ballots,
    reuse_electorate,
)
from witan.core.settings import Settings
from witan.core.tally import find_count, tally, tally_columns
from witan.errors import UnknownName

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
REAL = Path(__file__).parents[3] / "shared" / "data"
SESSION_RULES = [name for name, rule in RULES.items() if rule.needs != "history"]


def session_of(*cast: Ballot, **fields) -> SessionBallots:
    return SessionBallots("s", AT, cast, **fields)


def entries_from(*lines: str, **fields) -> Entries:
    return entries_of(session_of(*ballots(*lines), **fields))


def graded(reviewer: str, **grades: float) -> Ballot:
    return Ballot(reviewer, grades=grades, candidates=("a", "b", "c"))


def by_model(entries: Entries, kind: str = "model", rule: str = "borda") -> dict:
    return {s.model: s for s in entries.standings if (s.kind, s.rule) == (kind, rule)}


def matchups_by_pair(entries: Entries, kind: str = "model") -> dict:
    """Wins, losses and ties by pair of models in a matchup row."""
    [row] = [m for m in entries.matchups if m.kind == kind]
    pairs = combinations(row.models, 2)
    return dict(zip(pairs, zip(row.wins, row.losses, row.ties, strict=True), strict=True))


class TestStandings:
    """One row per kind, rule and model."""

    def test_standings_counted_by_hand(self):
        """A tie, a partial ballot, an abstention and own candidates, counted on paper.

        After recusal: a says b > c; b says a = c; c says a; x says a > b > c; y abstains.
        """
        entries = entries_from(
            "a: a > b > c", "b: b > a = c", "c: c > a", "x: a > b > c", "y:"
        )  # fmt: skip

        # a: ½ from b, 1 from x; of seats b, c, x, y; first on b's (half) and x's ballot.
        assert by_model(entries) == {
            "a": StandingEntry("model", "borda", "a", 0.75, None, 3, 4, 1.5),
            "b": StandingEntry("model", "borda", "b", 0.75, None, 2, 4, 1.0),
            "c": StandingEntry("model", "borda", "c", pytest.approx(0.5 / 3), None, 3, 4, 0.5),
        }

    def test_z_is_the_mean_standardised_grade(self):
        """Grades 9, 6, 3 have the z-scores ±√1.5 and 0; a flat ballot has 0."""
        entries = entries_of(session_of(graded("x", a=9, b=6, c=3), graded("y", a=5, b=5, c=5)))
        flat = entries_of(session_of(graded("x", a=5, b=5), graded("y", a=7, b=7)))

        z = {model: s.z for model, s in by_model(entries).items()}
        assert z == pytest.approx({"a": 1.5**0.5 / 2, "b": 0, "c": -(1.5**0.5) / 2}, abs=1e-6)
        assert {model: s.z for model, s in by_model(flat).items()} == {"a": 0, "b": 0, "c": None}

    def test_the_seats_of_one_model_have_one_standing(self):
        """Scores are averaged; votes, possible votes and wins are summed."""
        entries = entries_from(
            "x: a > b > c", "y: b > a > c", models={"a": "m", "b": "n", "c": "m", "x": "m"}
        )

        standings = by_model(entries)
        assert standings["m"] == StandingEntry("model", "borda", "m", 0.375, None, 4, 4, 1.0)
        assert standings["n"] == StandingEntry("model", "borda", "n", 0.75, None, 2, 2, 1.0)

    def test_people_are_counted_separately(self):
        """Their ballots change no standing in the models' electorate."""
        models = ballots("x: a > b", "y: a > b")
        people = ballots("p: b > a", kind="human")

        both = entries_of(session_of(models[0], *people, models[1]))

        assert by_model(both) == by_model(entries_of(session_of(*models)))
        assert by_model(both, "human")["b"].score == 1.0
        assert matchups_by_pair(both) == {("a", "b"): (2, 0, 0)}
        assert matchups_by_pair(both, "human") == {("a", "b"): (0, 1, 0)}

    def test_a_graded_rule_without_grades_has_no_rows(self):
        """Rankings alone have standings under the other rules."""
        entries = entries_of(
            session_of(*ballots("x: a > b", "y: b > a")), rules=("calibrated", "borda", "elo")
        )

        assert {s.rule for s in entries.standings} == {"borda"}

    def test_a_session_of_abstentions_has_no_scores(self):
        """Coverage falls, and no mean changes."""
        entries = entries_from("x:", "y:", "z:")
        roster = entries_of(session_of(*ballots("x:", "y:", candidates=("a", "b"))))

        assert entries.standings == ()
        assert entries.matchups == ()
        assert by_model(roster)["a"] == StandingEntry("model", "borda", "a", None, None, 0, 2, 0)
        assert [row.abstained for row in entries.ballots] == [True] * 3

    def test_an_unknown_rule_is_refused(self):
        """A rule that does not exist is an error, not an empty leaderboard."""
        with pytest.raises(UnknownName, match="bordo"):
            entries_of(session_of(*ballots("x: a > b")), rules=("bordo",))

    def test_a_failed_candidate_is_counted_as_failed(self):
        """It ranks below candidates that it was placed above, as in the outcome."""
        cast = ballots("x: a > b > c", "y: a > c > b", session="s")
        gated = Settings(gates={"s": Gate({"a": ("self_harm",)})})

        entries = entries_of(session_of(*cast), settings=gated)

        assert by_model(entries)["a"].score == 0
        assert entries.ballots[0].shares == (1.0, 0.5, 0.0)


def random_session(rng: np.random.Generator, session: str) -> SessionBallots:
    """A session with ties, gaps, abstentions, criteria, own ballots, people and comparisons."""
    names = [f"m{i}" for i in rng.permutation(8)[: rng.integers(2, 6)]]
    kind_of_grades = rng.integers(0, 3)
    cast = []
    for reviewer in [*names, "x", "y"]:
        if rng.random() < 0.1:
            cast.append(Ballot(reviewer, abstained=True, session=session, candidates=tuple(names)))
            continue
        ranked = [name for name in names if rng.random() < 0.85]
        levels: dict[int, list[str]] = {}
        for name in ranked:
            levels.setdefault(int(rng.integers(0, 4)), []).append(name)
        grades: dict = {}
        if kind_of_grades == 1:
            grades = {name: float(rng.integers(1, 11)) for name in ranked}
        elif kind_of_grades == 2:
            criteria = ("accuracy", "clarity", "completeness", "relevance", "conciseness")
            grades = {n: {c: int(rng.integers(1, 11)) for c in criteria} for n in ranked}
        cast.append(
            Ballot(
                reviewer,
                tuple(tuple(group) for _, group in sorted(levels.items())),
                grades,
                session,
                candidates=tuple(names) if rng.random() < 0.8 else None,
                weight=float(rng.choice([1, 1, 1, 0, 2.5])),
                scale="1-10" if grades else None,
            )
        )
    for person in ("p", "q"):
        if rng.random() < 0.5:
            one, other = rng.permutation(names)[:2]
            cast.append(
                Ballot(person, ((one,), (other,)), session=session, kind="human", paired=True)
            )
    if rng.random() < 0.3:
        for shown in (names[:2], names[1::-1]):
            order = rng.permutation(shown)
            positions = {name: place for place, name in enumerate(shown, start=1)}
            cast.append(
                Ballot(
                    "z",
                    tuple((name,) for name in order),
                    session=session,
                    positions=positions,
                    paired=True,
                )
            )
    return SessionBallots(session, AT, tuple(cast))


def random_sessions(n: int) -> Iterator[SessionBallots]:
    rng = np.random.default_rng(4)
    return (random_session(rng, f"s{number}") for number in range(n))


def met_rivals(outcome: Outcome, where: str) -> set[str]:
    """Whether each candidate met another, on one ballot or in the session, as the rule needs."""
    rankings = [
        {name for group in note.ranking for name in group}
        for note in outcome.ballots
        if note.weight > 0
    ]
    if where == "none":
        return {line.candidate for line in outcome.standings}
    if where == "session":
        rankings = [set().union(*rankings)]
    return set().union(*(names for names in rankings if len(names) > 1))


class TestAgreesWithTheTally:
    """Stored rows equal the tally of the same ballots."""

    @pytest.mark.parametrize("rule", SESSION_RULES)
    def test_standings_equal_the_outcome(self, rule):
        """Scores of candidates that met a rival, votes and wins are the outcome's, by kind."""
        for cast in random_sessions(12):
            entries = entries_of(cast, rules=(rule,))
            for kind in ("model", "human"):
                mine = [one for one in cast.ballots if one.kind == kind]
                standings = by_model(entries, kind, rule)
                needs_grades = RULES[rule].needs == "grades"
                if not mine or (needs_grades and not any(b.grades for b in mine)):
                    assert standings == {}
                    continue
                if not standings:
                    continue  # every grade is on a ballot that does not count
                outcome = tally(mine, rule, flips=False)
                has_rival = met_rivals(outcome, RULES[rule].rivals)
                contested = bool(met_rivals(outcome, "session"))
                result = {
                    line.candidate: (
                        line.score if line.votes and line.candidate in has_rival else None,
                        line.votes,
                        line.wins if contested else 0,
                    )
                    for line in outcome.standings
                }
                if outcome.n_ballots:
                    assert result == {m: (s.score, s.votes, s.wins) for m, s in standings.items()}
                    coverage = {line.candidate: line.coverage for line in outcome.standings}
                    share = {m: s.votes / s.offered for m, s in standings.items() if s.offered}
                    assert share == pytest.approx({m: coverage[m] for m in share})

    def test_a_rule_is_missing_only_where_it_cannot_count(self):
        """Every session that `tally` counts under a rule has standings under it."""
        for cast in random_sessions(60):
            mine = [one for one in cast.ballots if one.kind == "model"]
            entries = entries_of(cast, rules=("calibrated",))
            electorate = interpret("s", mine, Counting())
            counted = any(not np.isnan(v.grades).all() for v in electorate.votes)
            assert counted == bool(by_model(entries, "model", "calibrated"))

    @pytest.mark.parametrize("recusal", ["before", "after", "off"])
    @pytest.mark.parametrize("unranked", ["skip", "last"])
    def test_the_electorate_equals_that_of_interpret(self, recusal, unranked):
        """Reading recused and own ballots in one pass gives the same electorate."""
        how = Settings(counting=Counting(recusal, unranked))
        for cast in random_sessions(80):
            mine = [one for one in cast.ballots if one.kind == "model"]
            counted = read_ballots("s", mine, how).electorate
            expected = interpret("s", mine, how.counting)
            assert repr(counted) == repr(expected)  # NaN is not equal to itself

    def test_weights_per_reviewer_count(self):
        """Reviewer weights change the standings as they change the outcome."""
        cast = ballots("x: a > b > c", "y: c > b > a", "z: c > a > b")
        weights = {"x": 3, "z": 0}

        entries = entries_of(session_of(*cast), settings=Settings(weights=weights))
        outcome = tally(cast, "borda", weights=weights)

        assert {m: s.score for m, s in by_model(entries).items()} == {
            line.candidate: line.score for line in outcome.standings
        }

    def test_agreement_and_probabilities_equal_the_outcome(self):
        """Kendall's W, the leader's p_best and p_beats are those of the outcome."""
        cast = [
            graded("x", a=9, b=6, c=3), graded("y", a=8, b=7, c=1), graded("z", a=9, b=5, c=4)
        ]  # fmt: skip
        outcome = tally(cast)

        entries = entries_of(session_of(*cast, ballot("p: a > b", kind="human")))

        assert entries.session.kendall_w == outcome.kendall_w == 1.0
        assert entries.session.agreement == outcome["a"].p_best
        assert entries.matchups[0].p_beats == (
            outcome.p_beats[0][1], outcome.p_beats[0][2], outcome.p_beats[1][2]
        )  # fmt: skip

    def test_a_known_outcome_is_not_counted_again(self):
        """Its scores under its own rule, its W and its probabilities are stored as they are."""
        cast = [graded("x", a=9, b=6, c=3), graded("y", a=8, b=7, c=1)]
        told = tally(cast, "calibrated")
        lines = tuple(replace(line, score=7.0, p_best=0.5) for line in told.standings)
        outcome = replace(told, standings=lines, kendall_w=0.25)

        entries = entries_of(session_of(*cast, outcome=outcome), rules=("borda", "calibrated"))

        assert {s.score for s in by_model(entries, rule="calibrated").values()} == {7.0}
        assert by_model(entries)["a"].score == 1.0
        assert (entries.session.agreement, entries.session.kendall_w) == (0.5, 0.25)

    @pytest.mark.parametrize(
        "settings",
        [
            Settings(),
            Settings.of("borda"),
            Settings(weights={"m1": 2.0, "m2": 0.0}),
            Settings(gates={f"s{n}": Gate({"m3": ("flag",)}, 2.0) for n in range(0, 60, 3)}),
            *(Settings(counting=Counting(recusal=which)) for which in ("after", "off")),
            Settings(counting=Counting(unranked="last")),
        ],
        ids=["auto", "borda", "weights", "gates", "after", "off", "last"],
    )
    def test_a_count_at_hand_gives_the_same_rows(self, settings):
        """They are those of the ballots alone to the last bit, own candidates graded or not."""
        reused = 0
        for cast in random_sessions(60):
            models = [b for b in cast.ballots if b.kind == "model"]
            council = [
                replace(
                    b,
                    grades={name: g for name, g in b.grades.items() if name != b.reviewer},
                    groups=tuple(group for group in b.groups if b.reviewer not in group),
                    weight=1.0,
                )
                for b in models
                if not b.paired
            ]
            for given in (models, council):
                columns = tally_columns(given, settings, on_unsuitable=lambda _: None)
                for batch, column in columns:
                    outcome = batch.defer(column)
                    count = find_count(outcome)
                    known = replace(cast, ballots=tuple(given), outcome=outcome)
                    rules = ("borda", outcome.rule)

                    with_count = entries_of(
                        replace(known, count=count), rules=rules, settings=settings
                    )
                    assert with_count == entries_of(known, rules=rules, settings=settings)
                    [electorate] = count[0].electorates
                    reused += reuse_electorate(electorate, given, settings) is not None
        plain = settings.counting.recusal != "after" and settings.counting.unranked == "skip"
        assert (reused > 20) == (plain and not settings.weights)

    def test_probabilities_are_stored_only_for_calibration(self):
        """They are computed only for sessions that people judged, too."""
        models = [graded("x", a=9, b=6, c=3), graded("y", a=8, b=7, c=1)]
        person = ballot("p: a > b", kind="human")

        plain = entries_of(session_of(*models))
        judged = entries_of(session_of(*models, person))

        assert plain.matchups[0].p_beats == (None, None, None)
        assert all(p is not None and p > 0.5 for p in judged.matchups[0].p_beats)
        assert judged.matchups[1].p_beats == (None,)
        assert plain.session.agreement is None
        assert judged.session.agreement > 0.5


class TestMatchups:
    """Wins, losses and ties per pair of models."""

    def test_matchups_counted_by_hand(self):
        """A ballot counts for a pair only if it ranks both, without its reviewer's own."""
        entries = entries_from("a: a > b > c", "b: b > a = c", "x: c > a", "y: a > b > c")

        assert matchups_by_pair(entries) == {
            ("a", "b"): (1, 0, 0),
            ("a", "c"): (1, 1, 1),
            ("b", "c"): (2, 0, 0),
        }

    def test_pairs_follow_the_order_of_model_names(self):
        """Names of seats do not matter; p_beats is in the same order."""
        entries = entries_from(
            "x: a > b > c", "y: a > b > c", models={"a": "z", "b": "y", "c": "x"}
        )

        assert entries.matchups[0].models == ("x", "y", "z")
        assert matchups_by_pair(entries) == {
            ("x", "y"): (0, 2, 0),
            ("x", "z"): (0, 2, 0),
            ("y", "z"): (0, 2, 0),
        }

    def test_two_seats_of_one_model_do_not_meet(self):
        """Pairs of one model are dropped; those with others are summed over its seats."""
        entries = entries_from("x: a > b > c", models={"a": "m", "b": "n", "c": "m"})
        alone = entries_from("x: a > c", models={"a": "m", "c": "m"})

        assert matchups_by_pair(entries) == {("m", "n"): (1, 1, 0)}
        assert alone.matchups == ()

    def test_both_orders_of_a_pair_are_one_opinion(self):
        """Agreement counts once; a flip is a tie."""
        positions = ({"a": 1, "b": 2}, {"a": 2, "b": 1})
        agreed = [ballot("x: a > b", positions=held, paired=True) for held in positions]
        flipped = [
            ballot("y: a > b", positions=positions[0], paired=True),
            ballot("y: b > a", positions=positions[1], paired=True),
        ]

        entries = entries_of(session_of(*agreed, *flipped))

        assert matchups_by_pair(entries) == {("a", "b"): (1, 0, 1)}
        assert [(row.kept, row.compared) for row in entries.ballots] == [
            (1, 1), (0, 0), (0, 1), (0, 0)
        ]  # fmt: skip
        assert [row.shares for row in entries.ballots] == [
            (1.0, 0.0), (1.0, 0.0), (1.0, 0.0), (0.0, 1.0)
        ]  # fmt: skip
        assert [row.positions for row in entries.ballots] == [(1, 2), (2, 1), (1, 2), (2, 1)]

    def test_matchups_sum_to_the_weight_of_ballots(self):
        """Wins, losses and ties of a pair add up to the ballots on it, whose mean weight is 1.

        The mean is over ballots of two candidates or more: others are in no matchup.
        """
        for cast in random_sessions(80):
            entries = entries_of(cast)
            mine = [one for one in cast.ballots if one.kind == "model"]
            electorate = interpret("s", mine, Counting())
            if len(electorate.candidates) < 2 or not electorate.votes:
                continue
            comparing = [v for v in electorate.votes if v.length > 1]
            unit = np.mean([v.weight for v in comparing or electorate.votes])
            seats = {name: seat for seat, name in enumerate(electorate.candidates)}
            for (first, second), sums in matchups_by_pair(entries).items():
                i, j = seats[first], seats[second]
                weight = sum(v.weight for v in electorate.votes if v.places[i] and v.places[j])
                assert sum(sums) == pytest.approx(weight / unit)


class TestBatches:
    """Batches give the rows of single sessions, in the order of input."""

    def test_a_batch_equals_single_sessions(self):
        """Mixed shapes, kinds and rules come out in order, the same to the digits they have."""
        casts = list(random_sessions(60))
        rules = ("borda", "calibrated", "normalized_scores", "schulze")

        together = list(entries_of_many(casts, rules=rules))
        alone = [entries_of(cast, rules=rules) for cast in casts]

        assert len(together) == len(alone)
        for one, other in zip(together, alone, strict=True):
            assert rounded(one) == rounded(other)

    @pytest.mark.parametrize("order", [1, -1])
    @pytest.mark.parametrize("n_candidates", [1, 3])
    def test_a_count_of_several_sessions_gives_the_same_rows(self, n_candidates, order):
        """They are the same in the order of the count and in another."""
        rng = np.random.default_rng(7)
        criteria = ("accuracy", "clarity", "completeness", "relevance", "conciseness")
        names = ("a", "b", "c")[:n_candidates]
        sessions = {
            f"s{number}": [
                Ballot(
                    reviewer,
                    grades={c: {k: int(rng.integers(1, 11)) for k in criteria} for c in names},
                    session=f"s{number}",
                    candidates=names,
                    scale="1-10",
                )
                for reviewer in ("x", "y", "z")
            ]
            for number in range(6)
        }
        columns = tally_columns([b for cast in sessions.values() for b in cast], Settings())
        casts = [
            SessionBallots(name, AT, tuple(cast), outcome=(outcome := batch.defer(column)),
                           count=find_count(outcome))
            for (name, cast), (batch, column) in zip(sessions.items(), columns, strict=True)
        ][::order]  # fmt: skip

        with_counts = list(entries_of_many(casts))
        without = list(entries_of_many([replace(cast, count=None) for cast in casts]))

        assert all(len(cast.count[0].electorates) == 6 for cast in casts)
        assert list(map(rounded, with_counts)) == list(map(rounded, without))

    def test_probabilities_beside_people_are_computed_together(self):
        """Two hundred sessions with people's votes take at most a third of the time one by one."""
        lines = ballots("a: b > c", "b: a > c", "c: a > b", "d: a > b > c")
        person = ballot("eve: a > b > c", kind="human")
        casts = [SessionBallots(f"s{n}", AT, (*lines, person)) for n in range(200)]

        start = time.process_time()
        together = list(entries_of_many(casts))
        middle = time.process_time()
        alone = [entries_of(cast) for cast in casts]
        end = time.process_time()

        assert list(map(rounded, together)) == list(map(rounded, alone))
        assert 3 * (middle - start) < end - middle

    def test_no_sessions_give_no_rows(self):
        """A session without ballots has its session row alone."""
        assert list(entries_of_many([])) == []
        assert entries_of(session_of()) == Entries(entries_of(session_of()).session)

    def test_a_session_too_large_for_a_rule_does_not_stop_the_others(self):
        """The rest of the batch has its standings."""
        names = [f"c{i:02}" for i in range(60)]
        large = SessionBallots("large", AT, (Ballot("x", tuple((name,) for name in names)),))
        small = SessionBallots("small", AT, tuple(ballots("x: a > b", "y: a > b")))

        first, second = entries_of_many([large, small], rules=("kemeny", "borda"))

        assert {s.rule for s in second.standings} == {"kemeny", "borda"}
        assert "borda" in {s.rule for s in first.standings}


def rounded(value: object) -> object:
    """The same with every number at twelve digits."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: rounded(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple):
        return [rounded(held) for held in value]
    return round(value, 12) if isinstance(value, float) else value
