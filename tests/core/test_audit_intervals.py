"""Planted biases are found, their intervals hold the truth, and without a bias they hold 0."""

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
    """The line of each reviewer of one history, read from the tables that it needs."""
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


def holds(measures, truth):
    """Assert that about 95 % of the intervals hold the truth, and that estimates centre on it."""
    held = [m.interval.low <= truth <= m.interval.high for m in measures]
    values = np.array([m.value for m in measures])
    assert 0.90 <= np.mean(held) <= 0.995
    assert abs(values.mean() - truth) < 3.5 * values.std() / np.sqrt(len(values))


@pytest.fixture(scope="module")
def own_shown():
    """Histories in which own answers are shown and "birch" adds .12 to its own."""
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
    """Histories in which "elm" goes by position, "fir" by length, and "cedar" is severe."""
    council = Biased(
        MODELS, QUALITY, first={"elm": 0.1}, severity={"cedar": -0.8}, length={"fir": 0.2}
    )
    rng = np.random.default_rng(3)
    return [lines(council, rng) for _ in range(HISTORIES)]


class TestSelfPreference:
    """The share given to own answers beyond what the others give them."""

    def test_a_planted_one_is_found(self, own_shown):
        """What a reviewer adds to its own answer's share is what is measured."""
        found = [held.for_itself(code_of("birch")) for held in own_shown]
        holds(found, 0.12)

    @pytest.mark.parametrize("model", ["ash", "fir"])
    def test_quality_is_not_taken_for_it(self, own_shown, model):
        """The best and the worst model, which add nothing, are charged with nothing."""
        found = [held.for_itself(code_of(model)) for held in own_shown]
        holds(found, 0.0)


class TestFamilyPreference:
    """The share given to relatives beyond what outsiders give them."""

    def test_a_planted_one_is_found(self, families):
        """What a reviewer adds to its relative's share is what is measured."""
        found = [held.for_its_family(code_of("ash")) for held in families]
        holds(found, 0.1)

    def test_a_strong_reviewer_is_not_charged_with_its_own_absence(self):
        """Its own answer is no rival on its own sheet; a plain difference of shares would show."""
        strong = Biased(MODELS, (1.0, 0, 0, 0, 0), families=FAMILIES)
        rng = np.random.default_rng(4)
        votes = by_hand.vote_sums(biased_sessions(strong, 200, rng))
        held = Preferences(votes, {code_of(m): f for m, f in FAMILIES.items()}, 0.95)

        measure = held.for_its_family(code_of("ash"))

        ours, given = (votes.reviewer == code_of("ash")), votes.model == code_of("cedar")
        theirs = given & ~ours & (votes.own == 0)
        plain = votes.total[ours & given].sum() / votes.votes[ours & given].sum()
        plain -= votes.total[theirs].sum() / votes.votes[theirs].sum()
        assert plain > 0.2
        assert measure.interval.low < 0 < measure.interval.high
        assert abs(measure.value) < 0.03

    def test_a_model_alone_in_its_family_has_none(self, families):
        """Without a relative there is nothing to measure, and the line says so."""
        for name in ("birch", "elm"):
            measure = families[0].for_its_family(code_of(name))
            assert measure.value is None
            assert all(fact in measure.why for fact in ("0 votes on its family", "30 needed"))


class TestPosition:
    """The excess at the first place over that at the last."""

    def test_a_planted_one_is_found(self, biased):
        """What the first place has over the last is what is measured."""
        holds([held["elm"].position_effect for held in biased], 0.1)

    def test_without_one_the_interval_holds_zero(self, biased):
        """A reviewer that does not look at places is charged with nothing."""
        holds([held["ash"].position_effect for held in biased], 0.0)


class TestSeverity:
    """The offset of a reviewer's grades from the others'."""

    def test_a_planted_one_is_found(self, biased):
        """A reviewer that grades .8 lower than all others is measured so."""
        holds([held["cedar"].severity for held in biased], -0.8)

    def test_the_others_are_each_offset_from_a_panel_with_the_severe_one(self, biased):
        """Against the mean of four others, one of whom is .8 severe, one is .2 or more lenient."""
        # "ash" judges four answers; of their other judges "cedar" is one of three, or of none.
        truth = 0.8 * np.mean([1 / 3, 0, 1 / 3, 1 / 3])
        holds([held["ash"].severity for held in biased], truth)


class TestDiscrimination:
    """The slope of grades on the others' mean, over that of the panel."""

    def alike(self, rng, steep, n=SESSIONS, people=()):
        """Reviewers whose grades are quality and as much noise; one of them may be steeper."""
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

    def found(self, entries):
        tables = ReviewerTables(
            ballots=by_hand.ballot_sums(entries),
            reviewers=by_hand.reviewer_sums(entries),
            positions=by_hand.position_sums(entries),
            lengths=by_hand.length_sums(entries),
            humans=by_hand.human_sums(entries),
        )
        nothing = Preferences(by_hand.vote_sums([]), {}, 0.95)
        return Reviewers(tables, nothing, human=False, level=0.95)

    def test_one_of_equals_has_one(self):
        """As noisy as the others and no more: 1, though the noise of their mean flattens slopes."""
        rng = np.random.default_rng(7)
        found = [
            self.found(self.alike(rng, 1.0)).line(code_of("elm"), "elm").discrimination
            for _ in range(HISTORIES)
        ]

        holds(found, 1.0)

    def test_a_steeper_one_is_found(self):
        """Twice the distances of the others: about two, beyond noise."""
        entries = self.alike(np.random.default_rng(8), 2.0, 200)

        measure = self.found(entries).line(code_of("elm"), "elm").discrimination

        assert measure.value == pytest.approx(2.0, abs=0.2)
        assert measure.interval.low > 1.5

    def test_all_people_together_have_none(self):
        """They are their own panel."""
        entries = self.alike(np.random.default_rng(9), 1.0, people=("ann", "bob"))

        measure = audit_of(entries).people.discrimination

        assert measure.value is None
        assert "are the panel" in measure.why


class TestLength:
    """The correlation of votes with length."""

    def test_without_a_liking_the_interval_holds_zero(self, biased):
        """A reviewer that does not look at length has a correlation of 0."""
        holds([held["birch"].length.shares for held in biased], 0.0)

    def test_a_liking_for_length_is_found(self, biased):
        """The correlation of a reviewer that values length centres on that of a long history."""
        council = Biased(MODELS, QUALITY, length={"fir": 0.2})
        table = by_hand.length_sums(biased_sessions(council, 3000, np.random.default_rng(5)))
        whole = LengthVotes(table, 0.95).of(table.reviewer == code_of("fir"))

        holds([held["fir"].length.shares for held in biased], whole.shares.value)
        assert whole.shares.value > 0.3
        assert whole.longer_wins.value > 0.6

    def test_length_alone_is_no_bias(self):
        """Where people value length as a reviewer does, it is not beyond people."""
        everyone = dict.fromkeys((*MODELS, "ann", "bob"), 0.2)
        council = Biased(MODELS, QUALITY, length=everyone, people=("ann", "bob"))
        rng = np.random.default_rng(6)
        found = []
        for _ in range(HISTORIES):
            table = by_hand.length_sums(biased_sessions(council, SESSIONS, rng))
            found.append(LengthVotes(table, 0.95).of(table.human == 0))

        holds([held.shares_beyond_people for held in found], 0.0)
        holds([held.longer_wins_beyond_people for held in found], 0.0)
        assert all(held.shares.interval.low > 0 for held in found)
