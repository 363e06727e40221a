"""Planted biases are found, intervals contain the truth, and without a bias they contain 0."""

import numpy as np
import pytest

import reference_sums as by_hand
from audited import Biased, audit_of, ballot, biased_sessions, session
from witan.core.stats.audit_biases import LengthVotes, Preferences
from witan.core.stats.audit_reviewers import Reviewers, ReviewerTables
from witan.history.schema import code_of

# Hundreds of histories are drawn and counted by hand.
pytestmark = pytest.mark.slow

MODELS = ("ash", "birch", "cedar", "elm", "fir")
QUALITY = (0.25, 0.1, 0.0, -0.1, -0.25)
FAMILIES = {"ash": "tall", "cedar": "tall", "birch": "low"}
HISTORIES = 100
SESSIONS = 40


def preferences(council, sessions, rng):
    votes = by_hand.vote_sums(biased_sessions(council, sessions, rng))
    return Preferences(votes, {code_of(m): f for m, f in council.families.items()}, 0.95)


def lines(council, rng):
    """The line of each reviewer of one history, from the tables that it needs."""
    entries = biased_sessions(council, SESSIONS, rng)
    tables = ReviewerTables(
        ballots=by_hand.ballot_sums(entries),
        reviewers=by_hand.reviewer_sums(entries),
        positions=by_hand.position_sums(entries),
        lengths=by_hand.length_sums(entries),
        humans=by_hand.human_sums(entries),
    )
    nothing = Preferences(by_hand.vote_sums([]), {}, 0.95)
    reviewers = Reviewers(tables, nothing, human=False, level=0.95)
    return {name: reviewers.line(code_of(name), name) for name in MODELS}


def assert_coverage(measures, truth):
    """Assert that about 95% of intervals contain the truth and estimates centre on it."""
    covered = [m.interval.low <= truth <= m.interval.high for m in measures]
    values = np.array([m.value for m in measures])
    assert 0.90 <= np.mean(covered) <= 0.995
    assert abs(values.mean() - truth) < 3.5 * values.std() / np.sqrt(len(values))


@pytest.fixture(scope="module")
def own_shown():
    """Histories with own answers on sheets, where "birch" adds .12 to its own."""
    council = Biased(MODELS, QUALITY, own_shown=True, itself={"birch": 0.12})
    rng = np.random.default_rng(1)
    return [preferences(council, SESSIONS, rng) for _ in range(HISTORIES)]


@pytest.fixture(scope="module")
def families():
    """Histories in which "ash", the best by far, adds .1 to its one relative."""
    council = Biased(MODELS, QUALITY, relatives={"ash": 0.1}, families=FAMILIES)
    rng = np.random.default_rng(2)
    return [preferences(council, SESSIONS, rng) for _ in range(HISTORIES)]


@pytest.fixture(scope="module")
def biased():
    """Histories in which "elm" prefers places, "fir" prefers length, and "cedar" is severe."""
    council = Biased(
        MODELS, QUALITY, first={"elm": 0.1}, severity={"cedar": -0.8}, length={"fir": 0.2}
    )
    rng = np.random.default_rng(3)
    return [lines(council, rng) for _ in range(HISTORIES)]


class TestSelfPreference:
    """The share of own answers beyond the share that others give them."""

    def test_planted_self_preference_is_found(self, own_shown):
        """The measure is the reviewer's addition to its own answer's share."""
        found = [history.for_itself(code_of("birch")) for history in own_shown]
        assert_coverage(found, 0.12)

    @pytest.mark.parametrize("model", ["ash", "fir"])
    def test_quality_is_not_self_preference(self, own_shown, model):
        """The best and the worst model, without self-preference, have intervals around 0."""
        found = [history.for_itself(code_of(model)) for history in own_shown]
        assert_coverage(found, 0.0)


class TestFamilyPreference:
    """The share of relatives beyond the share that outsiders give them."""

    def test_planted_family_preference_is_found(self, families):
        """The measure is the reviewer's addition to its relative's share."""
        found = [history.for_its_family(code_of("ash")) for history in families]
        assert_coverage(found, 0.1)

    def test_recusal_of_a_strong_reviewer_is_no_family_preference(self):
        """Its own answer is no rival on its sheet, which biases a plain difference of shares."""
        strong = Biased(MODELS, (1.0, 0, 0, 0, 0), families=FAMILIES)
        rng = np.random.default_rng(4)
        votes = by_hand.vote_sums(biased_sessions(strong, 200, rng))
        history = Preferences(votes, {code_of(m): f for m, f in FAMILIES.items()}, 0.95)

        measure = history.for_its_family(code_of("ash"))

        ours, to_relative = (votes.reviewer == code_of("ash")), votes.model == code_of("cedar")
        theirs = to_relative & ~ours & (votes.own == 0)
        plain = votes.total[ours & to_relative].sum() / votes.votes[ours & to_relative].sum()
        plain -= votes.total[theirs].sum() / votes.votes[theirs].sum()
        assert plain > 0.2
        assert measure.interval.low < 0 < measure.interval.high
        assert abs(measure.value) < 0.03

    def test_a_model_alone_in_its_family_has_no_family_preference(self, families):
        """There is nothing to measure, and the line says so."""
        for name in ("birch", "elm"):
            measure = families[0].for_its_family(code_of(name))
            assert measure.value is None
            assert all(fact in measure.why for fact in ("0 votes on its family", "30 needed"))


class TestPosition:
    """The excess at the first place over that at the last."""

    def test_planted_position_bias_is_found(self, biased):
        """The measure is the excess of the first place over the last."""
        assert_coverage([history["elm"].position_effect for history in biased], 0.1)

    def test_without_position_bias_the_interval_contains_zero(self, biased):
        """A reviewer that ignores places has no effect."""
        assert_coverage([history["ash"].position_effect for history in biased], 0.0)


class TestSeverity:
    """The offset of a reviewer's grades from the others'."""

    def test_planted_severity_is_found(self, biased):
        """A reviewer that grades .8 lower than all others is measured so."""
        assert_coverage([history["cedar"].severity for history in biased], -0.8)

    def test_a_severe_reviewer_makes_the_others_lenient(self, biased):
        """Against the mean of four others, one of whom is .8 severe, one is .2 or more lenient."""
        # "ash" judges four answers; of their other judges "cedar" is one of three, or of none.
        truth = 0.8 * np.mean([1 / 3, 0, 1 / 3, 1 / 3])
        assert_coverage([history["ash"].severity for history in biased], truth)


class TestDiscrimination:
    """The slope of grades on the others' mean, over that of the panel."""

    def similar_reviewers(self, rng, steep, n=SESSIONS, people=()):
        """Reviewers with grades of quality plus equal noise; one of them may be steeper."""
        cast = []
        for k in range(n):
            quality = rng.normal(0, 1, 5)
            sheets = []
            for name in (*MODELS, *people):
                grades = 6 + quality * (steep if name == "elm" else 1) + rng.normal(0, 1, 5)
                sheets.append(
                    ballot(
                        name,
                        dict.fromkeys("vwxyz", 0.5),
                        grades=dict(zip("vwxyz", grades.tolist(), strict=True)),
                        kind="human" if name in people else "model",
                    )
                )
            cast.append(session(f"question {k} of {rng.integers(1 << 40)}", *sheets))
        return cast

    def discrimination_of(self, entries):
        tables = ReviewerTables(
            ballots=by_hand.ballot_sums(entries),
            reviewers=by_hand.reviewer_sums(entries),
            positions=by_hand.position_sums(entries),
            lengths=by_hand.length_sums(entries),
            humans=by_hand.human_sums(entries),
        )
        nothing = Preferences(by_hand.vote_sums([]), {}, 0.95)
        return Reviewers(tables, nothing, human=False, level=0.95)

    def test_equal_reviewers_have_discrimination_one(self):
        """With equal noise it is 1, though the noise of the others' mean flattens slopes."""
        rng = np.random.default_rng(7)
        found = [
            self.discrimination_of(self.similar_reviewers(rng, 1.0))
            .line(code_of("elm"), "elm")
            .discrimination
            for _ in range(HISTORIES)
        ]

        assert_coverage(found, 1.0)

    def test_a_steeper_reviewer_is_found(self):
        """Twice the distances of the others give about two, beyond noise."""
        entries = self.similar_reviewers(np.random.default_rng(8), 2.0, 200)

        measure = self.discrimination_of(entries).line(code_of("elm"), "elm").discrimination

        assert measure.value == pytest.approx(2.0, abs=0.2)
        assert measure.interval.low > 1.5

    def test_people_together_have_no_discrimination(self):
        """They have no panel other than themselves."""
        entries = self.similar_reviewers(np.random.default_rng(9), 1.0, people=("ann", "bob"))

        measure = audit_of(entries).people.discrimination

        assert measure.value is None
        assert "are the panel" in measure.why


class TestLength:
    """The correlation of votes with length."""

    def test_without_length_bias_the_interval_contains_zero(self, biased):
        """A reviewer that ignores length has a correlation of 0."""
        assert_coverage([history["birch"].length.shares for history in biased], 0.0)

    def test_planted_length_bias_is_found(self, biased):
        """Estimates for a reviewer that values length centre on that of a long history."""
        council = Biased(MODELS, QUALITY, length={"fir": 0.2})
        table = by_hand.length_sums(biased_sessions(council, 3000, np.random.default_rng(5)))
        long_history = LengthVotes(table, 0.95).of(table.reviewer == code_of("fir"))

        assert_coverage(
            [history["fir"].length.shares for history in biased], long_history.shares.value
        )
        assert long_history.shares.value > 0.3
        assert long_history.longer_wins.value > 0.6

    def test_length_preference_shared_with_people_is_no_bias(self):
        """Where people value length as a reviewer does, nothing is beyond people."""
        everyone = dict.fromkeys((*MODELS, "ann", "bob"), 0.2)
        council = Biased(MODELS, QUALITY, length=everyone, people=("ann", "bob"))
        rng = np.random.default_rng(6)
        found = []
        for _ in range(HISTORIES):
            table = by_hand.length_sums(biased_sessions(council, SESSIONS, rng))
            found.append(LengthVotes(table, 0.95).of(table.human == 0))

        assert_coverage([history.shares_beyond_people for history in found], 0.0)
        assert_coverage([history.longer_wins_beyond_people for history in found], 0.0)
        assert all(history.shares.interval.low > 0 for history in found)
