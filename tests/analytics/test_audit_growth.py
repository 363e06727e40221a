"""The time of an audit as sessions grow wider."""

from datetime import UTC, datetime
from time import process_time

import numpy as np
import pytest

from witan.analytics.audits import audit
from witan.core.ballot import Ballot
from witan.history import History, SessionImport

REVIEWERS, PEOPLE = 34, 9


def wide_session(n_candidates: int) -> SessionImport:
    """One session: nine people and 25 models grade this many answers of known length."""
    rng = np.random.default_rng(n_candidates)
    models = [f"model-{k:02d}" for k in range(n_candidates)]
    worth = rng.standard_normal(n_candidates)
    ballots = []
    for reviewer in range(REVIEWERS):
        grades_shown = np.rint(5 + worth + rng.standard_normal(n_candidates)).clip(1, 10).tolist()
        grades = dict(zip(models, grades_shown, strict=True))
        groups = tuple(
            tuple(model for model in models if grades[model] == grade)
            for grade in sorted(set(grades_shown), reverse=True)
        )
        kind = "human" if reviewer < PEOPLE else "model"
        name = f"reviewer-{reviewer}"
        ballots.append(Ballot(name, groups, session="wide", grades=grades, kind=kind))
    lengths = dict(zip(models, rng.integers(200, 4000, n_candidates).tolist(), strict=True))
    return SessionImport(
        "wide", datetime(2026, 1, 1, tzinfo=UTC), ballots=tuple(ballots), lengths=lengths
    )


@pytest.mark.slow
@pytest.mark.alone
def test_cost_grows_with_the_square_of_the_candidates(tmp_path):
    """Twice the candidates are four times the pairs, and at most five times the CPU time."""
    places = {}
    for n_candidates in (4, 15, 30, 60):  # the first one for what is imported
        places[n_candidates] = tmp_path / f"{n_candidates}.sqlite"
        with History.open(places[n_candidates]) as history:
            history.add([wide_session(n_candidates)], "wide", "wide")

    def grows_so() -> bool:
        seconds = []
        for place in places.values():
            began = process_time()
            report = audit(place)
            seconds.append(process_time() - began)
            assert len(report.reviewers) == REVIEWERS - PEOPLE
        return seconds[2] < 5 * seconds[1] and seconds[3] < 5 * seconds[2]

    assert any(grows_so() for _ in range(4))  # a busy machine may slow down one audit
