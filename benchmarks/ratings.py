"""Ratings of a hundred models from ten million comparisons, against evalica and arena-rank.

The columns are text: names of models, and who won. Every library gets the form it likes best:
evalica plain lists and its own enumeration of winners; arena-rank a pandas frame of categories.
Ours get lists of the same shared strings, object arrays, fixed-width text and Arrow arrays, and
return robust errors, which evalica does not have. Peers take seconds a call, so they are timed
once, after a warm-up on a hundredth of the rows. Where a peer is not installed the table says so.
The floor is the same model from lists in plain NumPy: a dictionary, `bincount`, Newton's steps and
a sandwich of five lines.
"""

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

# One BLAS thread: on a shared machine a second one mostly waits, and CPU time counts its waiting.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from harness import Row, cpu_seconds, cpu_seconds_in_turn, show
from numpy.typing import NDArray

from witan.core.stats.comparisons import FIRST, SECOND, TIE, Comparisons, count_pairs, encode
from witan.core.stats.ratings import Ratings, rate

ROWS = 10_000_000
MODELS = 100
COUNCIL_MODELS = 20
PER_SESSION = 10
FLOOR_RATIO = 0.6
FLOOR_STEP = 1e-9
FEW_ROWS = 20_000
"""So few that counting them takes nothing next to the fit."""

WORDS = ("tie", "first", "second")

Column = Any


def battles(rows: int, models: int, rng: np.random.Generator) -> Comparisons:
    """Draw comparisons of models of normal strength, a tenth of them ties."""
    strength = rng.normal(scale=0.7, size=models)
    first = rng.integers(0, models, rows)
    second = (first + rng.integers(1, models, rows)) % models
    won = rng.random(rows) < 1 / (1 + np.exp(strength[second] - strength[first]))
    outcome = np.where(rng.random(rows) < 0.1, TIE, np.where(won, FIRST, SECOND))
    return Comparisons(
        tuple(f"provider/model-{k:03d}" for k in range(models)),
        first.astype(np.int16),
        second.astype(np.int16),
        outcome.astype(np.int8),
    )


def as_text(drawn: Comparisons) -> list[NDArray[np.object_]]:
    """Write the codes out as columns of names and words, as arrays of shared strings."""
    names = np.array(drawn.models, dtype=object)
    words = np.array(WORDS, dtype=object)
    return [names[drawn.first], names[drawn.second], words[drawn.outcome]]


def floor_ratings(columns: list[list[str]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Rate lists of text in plain NumPy; return centred logits and robust errors."""
    names = sorted({*columns[0], *columns[1]})
    n, place = len(names), {name: number for number, name in enumerate(names)}
    code = {word: number for number, word in enumerate(WORDS)}
    first, second, outcome = (
        np.fromiter(map(codes.__getitem__, column), np.int32, count=len(column))
        for column, codes in zip(columns, (place, place, code), strict=True)
    )
    cells = np.bincount((outcome * n + first) * n + second, minlength=3 * n * n)
    tied, won, lost = cells.reshape(3, n, n)
    points = won + lost.T + 0.5 * (tied + tied.T)
    met, rating, step = points + points.T, np.zeros(n), np.ones(n)
    while np.abs(step).max() > FLOOR_STEP:
        likely = 1 / (1 + np.exp(rating - rating[:, np.newaxis]))
        slope = (points - met * likely).sum(axis=1) - 0.5 * np.tanh(rating / 2)
        weight = met * likely * (1 - likely)
        curve = np.diag(weight.sum(axis=1) + 0.25 / np.cosh(rating / 2) ** 2) - weight
        step = np.linalg.solve(curve, slope)
        rating += step
    square = won * (1 - likely) ** 2 + lost * likely**2 + tied * (0.5 - likely) ** 2
    square += square.T
    inverse = np.linalg.inv(curve)
    covariance = inverse @ (np.diag(square.sum(axis=1)) - square) @ inverse
    return rating - rating.mean(), np.sqrt(np.diag(covariance))


def seconds_once(call: Callable[[int], object], rows: int) -> float:
    """CPU seconds of one call on all rows, after a warm-up on a hundredth of them."""
    call(rows // 100)
    start = time.process_time()
    call(rows)
    return time.process_time() - start


def evalica_call(drawn: Comparisons) -> Callable[[int], NDArray[np.float64]]:
    """Prepare evalica's public call on lists; it returns centred logits."""
    import evalica

    first, second = (column.tolist() for column in as_text(drawn)[:2])
    winners = [evalica.Winner.Draw, evalica.Winner.X, evalica.Winner.Y]
    won = [winners[outcome] for outcome in drawn.outcome.tolist()]

    def call(rows: int) -> NDArray[np.float64]:
        scores = evalica.bradley_terry(first[:rows], second[:rows], won[:rows]).scores
        logits = np.log([scores[name] for name in drawn.models])
        return np.asarray(logits - logits.mean())

    return call


def arena_call(drawn: Comparisons) -> Callable[[int], NDArray[np.float64]]:
    """Prepare arena-rank's public call on categories, sandwich errors included."""
    pd = import_module("pandas")
    from arena_rank.models.bradley_terry import BradleyTerry
    from arena_rank.utils.data_utils import PairDataset

    codes = {"model_a": drawn.first, "model_b": drawn.second, "winner": drawn.outcome}
    labels = {
        "model_a": list(drawn.models),
        "model_b": list(drawn.models),
        "winner": ["tie", "model_a", "model_b"],
    }
    frame = pd.DataFrame(
        {name: pd.Categorical.from_codes(codes[name], labels[name]) for name in codes}
    )

    def call(rows: int) -> NDArray[np.float64]:
        dataset = PairDataset.from_pandas(frame.iloc[:rows])
        fitted = BradleyTerry(n_competitors=MODELS).compute_ratings_and_cis(dataset)
        logits = np.asarray(fitted["ratings"]) * np.log(10) / 400
        assert np.isfinite(np.asarray(fitted["rating_lower"])).all()
        return np.asarray(logits - logits.mean())

    return call


PEERS: dict[str, tuple[str, Callable[[Comparisons], Callable[[int], NDArray[np.float64]]], int]] = {
    "evalica": ("evalica", evalica_call, 5),
    "arena-rank": ("arena_rank", arena_call, 15),
}


def text_rows(drawn: Comparisons) -> list[Row]:
    """Time text to ratings with robust errors, per form and against each peer."""
    objects = as_text(drawn)
    forms: dict[str, list[Column]] = {
        "lists": [column.tolist() for column in objects],
        "object arrays": list(objects),
        "fixed-width text": [column.astype(np.str_) for column in objects],
    }
    if find_spec("pyarrow"):
        import pyarrow as pa

        forms["Arrow arrays"] = [pa.array(column) for column in objects]
    taken, rows = {}, []
    for form, columns in forms.items():
        taken[form] = cpu_seconds(partial(rate_text, columns))
        figure = f"{taken[form] / ROWS * 1e9:.0f} ns a row"
        rows.append(
            Row(f"text to ratings, {form}", figure, "<= 200 ns", taken[form] <= 2e-7 * ROWS)
        )
    rated = rate_text(forms["lists"])
    rating, error = floor_ratings(forms["lists"])
    assert np.allclose(rated.rating, rating, atol=1e-6)
    assert np.allclose(rated.std_error, error, rtol=0.02)
    rows.extend(floor_rows(forms))
    for name, (module, prepare, target) in PEERS.items():
        if not find_spec(module):
            print(f"{name} is not installed and not compared with")
            continue
        call = prepare(drawn)
        assert np.allclose(call(ROWS // 10), rate_first(drawn, ROWS // 10), atol=5e-3), name
        theirs = seconds_once(call, ROWS)
        ratio = theirs / taken["lists"]
        figure = f"{ratio:.1f}x ({theirs / ROWS * 1e9:.0f} ns a row)"
        rows.append(Row(f"{name} against our lists", figure, f">= {target}x", ratio >= target))
    assert np.allclose(rated.rating, rate(drawn).rating)
    return rows


def floor_rows(forms: dict[str, list[Column]]) -> list[Row]:
    """Time lists and Arrow arrays in turn with plain NumPy on lists."""
    calls: list[Callable[[], object]] = [
        partial(floor_ratings, forms["lists"]),
        partial(rate_text, forms["lists"]),
    ]
    arrow = forms.get("Arrow arrays")
    if arrow is not None:
        calls.append(partial(rate_text, arrow))
    floor, *taken = cpu_seconds_in_turn(*calls, rounds=2)
    rows = []
    for form, seconds in zip(("lists", "Arrow arrays"), taken, strict=False):
        figure = f"{seconds / floor:.2f}x ({floor / ROWS * 1e9:.0f} ns a row)"
        met = seconds <= FLOOR_RATIO * floor
        rows.append(Row(f"{form} over lists in plain NumPy", figure, f"<= {FLOOR_RATIO}x", met))
    if arrow is not None:
        ratio = taken[1] / taken[0]
        rows.append(Row("Arrow arrays over lists", f"{ratio:.2f}x", "< 1x", ratio < 1))
    return rows


def rate_text(columns: list[Column]) -> Ratings:
    """Do the whole way: encode, count, fit, robust errors."""
    return rate(encode(*columns), cluster=False)


def rate_first(drawn: Comparisons, rows: int) -> NDArray[np.float64]:
    """Rate the first rows alone."""
    part = Comparisons(drawn.models, drawn.first[:rows], drawn.second[:rows], drawn.outcome[:rows])
    return rate(part, cluster=False).rating


def code_rows(drawn: Comparisons, rng: np.random.Generator) -> list[Row]:
    """Time what remains once text is codes: counting, fit and errors, and clustering."""
    counting = cpu_seconds(partial(count_pairs, drawn))
    fitting = cpu_seconds(partial(rate_first, drawn, FEW_ROWS))
    rows = [
        Row(
            "counting codes",
            f"{counting / ROWS * 1e9:.1f} ns a comparison",
            "<= 4 ns",
            counting <= 4e-9 * ROWS,
        ),
        Row("fit and robust errors", f"{fitting * 1e3:.0f} ms", "<= 100 ms", fitting <= 0.1),
    ]
    n_sessions = ROWS // PER_SESSION
    session = np.repeat(np.arange(n_sessions, dtype=np.int32), PER_SESSION)
    for models in (COUNCIL_MODELS, MODELS):
        one = battles(ROWS, models, rng)
        held = Comparisons(one.models, one.first, one.second, one.outcome, session)
        extra = cpu_seconds(partial(rate, held)) - cpu_seconds(partial(rate, held, cluster=False))
        per_session = extra / n_sessions * 1e9
        what = f"clustering, {models} models, {PER_SESSION} comparisons a session"
        rows.append(Row(what, f"{per_session:.0f} ns a session", "<= 1000 ns", per_session <= 1000))
    return rows


def unanimous_rows() -> list[Row]:
    """Rate three unanimous ballots a > b > c, where no finite maximum exists without a prior."""
    first, second = ["a", "a", "b"] * 3, ["b", "c", "c"] * 3
    ours = rate(encode(first, second, ["first"] * 9))
    shown = " ".join(f"{r:.2f}±{e:.2f}" for r, e in zip(ours.rating, ours.std_error, strict=True))
    rows = [Row("ours", shown, "a > b > c", bool(np.all(np.diff(ours.rating) < 0)))]
    if find_spec("evalica"):
        import evalica

        scores = evalica.bradley_terry(first, second, [evalica.Winner.X] * 9).scores
        figure = " ".join(f"{scores[name]:.2g}" for name in "abc")
        rows.append(Row("evalica", figure, "shown only", met=True))
    return rows


def main() -> int:
    """Print the tables; return 1 if a target is missed."""
    rng = np.random.default_rng(2026)
    drawn = battles(ROWS, MODELS, rng)
    text = text_rows(drawn)
    show(f"{ROWS:,} comparisons of {MODELS} models held as text: CPU time", text)
    codes = code_rows(drawn, rng)
    show(f"{ROWS:,} comparisons held as integer codes: CPU time", codes)
    unanimous = unanimous_rows()
    show("three unanimous ballots a > b > c", unanimous)
    return 0 if all(row.met for row in text + codes + unanimous) else 1


if __name__ == "__main__":
    sys.exit(main())
