"""Elo over a stream of matches equals the rule, session by session."""

import numpy as np
import pytest

from witan.core.profile import Profile
from witan.core.rules import RULES
from witan.core.rules.elo import Match, rate_matches
from witan.errors import InvalidParameter


def test_one_match_by_hand():
    """Equal ratings expect a half: the winner gains 16 of k = 32, a draw changes nothing."""
    won = rate_matches([Match("s", 1, 2, 3, 1, 0)])
    draw = rate_matches([Match("s", 1, 2, 1, 1, 5)])

    assert won == {1: 1016, 2: 984}
    assert draw == {1: 1000, 2: 1000}


def test_an_upset_gains_more():
    """400 points behind expects 1/11 (Elo 1978, base 400): a win then gains k · 10/11."""
    stream = [Match(n, 1, 2, 1, 0, 0) for n in range(2)]

    result = rate_matches(stream, k=400, base=400)

    # 200 up and 200 down, then 400 ahead expects 10/11.
    assert result[1] == pytest.approx(1200 + 400 / 11)


def test_the_stream_equals_the_rule():
    """60 sessions of five candidates and four partial, tied ballots give equal ratings."""
    rng = np.random.default_rng(8)
    ranks = rng.integers(1, 5, (4, 5, 60)).astype(np.float64)
    ranks[rng.random(ranks.shape) < 0.25] = np.nan
    stream = []
    for s in range(60):
        for i in range(5):
            for j in range(i + 1, 5):
                one, two = ranks[:, i, s], ranks[:, j, s]
                stream.append(
                    Match(s, i, j, int((one < two).sum()), int((one > two).sum()),
                          int((one == two).sum()))
                )  # fmt: skip

    by_rule = RULES["elo"](Profile.from_ranks(ranks))
    result = rate_matches(iter(stream))

    assert [result[c] for c in range(5)] == pytest.approx(by_rule.score[:, 0].tolist())


def test_only_the_order_of_sessions_matters():
    """All matches of a session change ratings at once; reversed sessions end elsewhere."""
    session = [Match(0, 1, 2, 1, 0, 0), Match(0, 2, 3, 1, 0, 0), Match(0, 1, 3, 0, 1, 0)]
    later = [Match(1, 1, 2, 0, 1, 0), Match(1, 2, 3, 1, 0, 0)]

    straight = rate_matches([*session, *later])
    stirred = rate_matches([*session[::-1], *later[::-1]])
    reversed_order = rate_matches([*later, *session])

    assert stirred == pytest.approx(straight)
    assert reversed_order[1] != pytest.approx(straight[1], abs=0.01)
    assert sum(straight.values()) == pytest.approx(3000)


def test_pairs_without_ballots_play_no_match():
    """Pairs of weight 0, and a model paired with itself, leave no rating."""
    assert rate_matches([Match(0, 1, 2, 0, 0, 0), Match(0, 3, 3, 1, 0, 0)]) == {}


def test_equal_sums_of_weights_are_a_draw():
    """Three ballots of 0.1 against one of 0.3 are even."""
    assert Match(0, 1, 2, 0.1 + 0.1 + 0.1, 0.3, 0).result == 0.5


def test_ratings_far_apart_do_not_overflow():
    """A tiny base puts ratings thousands of decades apart; the numbers stay finite."""
    result = rate_matches([Match(n, 1, 2, 1, 0, 0) for n in range(50)], k=1e4, base=1e-3)

    assert np.isfinite(list(result.values())).all()


@pytest.mark.parametrize("options", [{"k": 0}, {"base": -1}, {"initial": float("nan")}])
def test_invalid_options_are_refused(options):
    """The error names the option."""
    with pytest.raises(InvalidParameter, match=next(iter(options))):
        rate_matches([], **options)
