"""Comparisons: columns become codes, codes become counts, nothing is guessed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

from witan.core.stats.comparisons import (
    FIRST,
    SECOND,
    TIE,
    Comparisons,
    PairCounts,
    count_pairs,
    encode,
    session_squares,
)
from witan.core.stats.ratings import rate
from witan.errors import InvalidParameter

COLUMNS = {
    "lists": list,
    "objects": lambda column: np.array(column, dtype=object),
    "fixed width": np.array,
    "odd width": lambda column: np.array(column, dtype=f"U{max(map(len, column)) // 2 * 2 + 1}"),
    "strided": lambda column: np.array([column, column]).T[:, 1],
}

TABLE_COLUMNS = {
    "arrow": ("pyarrow", lambda pa, column: pa.array(column)),
    "arrow large": ("pyarrow", lambda pa, column: pa.array(column, pa.large_string())),
    "arrow chunks": ("pyarrow", lambda pa, column: pa.chunked_array([column[:1], column[1:]])),
    "arrow dictionary": ("pyarrow", lambda pa, column: pa.array(column).dictionary_encode()),
    "arrow dictionaries": (
        "pyarrow",
        lambda pa, column: pa.chunked_array(
            [pa.array(part, pa.string()).dictionary_encode() for part in (column[:1], column[1:])]
        ),
    ),
    "pandas": ("pandas", lambda pd, column: pd.Series(column, dtype="string")),
    "pandas objects": ("pandas", lambda pd, column: pd.Series(column, dtype=object)),
    "pandas categories": ("pandas", lambda pd, column: pd.Series(column, dtype="category")),
}

NUMBER_COLUMNS = {
    "arrow": ("pyarrow", lambda pa, column: pa.array(column)),
    "arrow chunks": ("pyarrow", lambda pa, column: pa.chunked_array([column[:1], column[1:]])),
    "pandas": ("pandas", lambda pd, column: pd.Series(column)),
}


class TestComponents:
    """Models are connected by their wins, one way or both."""

    @pytest.mark.parametrize("connection", ["weak", "strong"])
    @given(data=st.data())
    def test_components_equal_those_of_scipy(self, connection, data):
        """Components of any graph are numbered by first appearance."""
        n = data.draw(st.integers(1, 12))
        edges = data.draw(st.sets(st.tuples(*[st.integers(0, n - 1)] * 2), max_size=3 * n))
        wins = np.zeros((n, n))
        for winner, loser in edges:
            wins[winner, loser] = winner != loser
        counts = PairCounts(wins, np.zeros((n, n)), np.zeros((n, n)))

        _, label = connected_components(wins, directed=True, connection=connection)
        numbers = {old: new for new, old in enumerate(dict.fromkeys(label.tolist()))}

        assert counts.components(connection).tolist() == [numbers[each] for each in label.tolist()]


class TestEncoding:
    """All forms of columns give the same comparisons."""

    @pytest.mark.parametrize("form", COLUMNS)
    @given(data=st.data())
    def test_every_form_of_a_column_is_read_alike(self, form, data):
        """Codes map back to the names and words of the rows."""
        text = st.text("ab/é𝔸 ", min_size=1, max_size=9).map(lambda name: f"{name}.")
        names = data.draw(st.lists(text, min_size=2, max_size=6, unique=True))
        pairs = st.lists(st.sampled_from(names), min_size=2, max_size=2, unique=True)
        rows = data.draw(st.lists(pairs, min_size=1, max_size=30))
        words = data.draw(
            st.lists(
                st.sampled_from(["first", "second", "tie"]), min_size=len(rows), max_size=len(rows)
            )
        )
        make = COLUMNS[form]

        got = encode(
            make([a for a, _ in rows]), make([b for _, b in rows]), make(words), make(words)
        )

        assert [
            [got.models[i], got.models[j]] for i, j in zip(got.first, got.second, strict=True)
        ] == rows
        assert [("tie", "first", "second")[o] for o in got.outcome] == words
        assert list(got.models) == sorted({name for row in rows for name in row})
        assert got.session is not None
        assert [words[got.session.tolist().index(s)] for s in got.session] == words

    def test_thousands_of_names_stay_distinct(self):
        """Twenty thousand names in columns of fixed width are all distinguished."""
        names = np.array([f"provider/model-{k}" for k in range(20_000)])
        rng = np.random.default_rng(11)
        first = np.concatenate([np.arange(20_000), rng.integers(0, 20_000, 30_000)])
        second = (first + 1) % 20_000

        got = encode(names[first], names[second], np.full(50_000, TIE))

        models = np.array(got.models)
        assert (models[got.first] == names[first]).all()
        assert (models[got.second] == names[second]).all()

    @pytest.mark.parametrize("n_models", [255, 256, 257, 400])
    def test_lists_of_any_number_of_names_are_read(self, n_models):
        """Around and beyond the 256 names that fit a byte, codes map back to the names."""
        names = [f"model-{k}" for k in range(n_models)]
        first, second = names + names[::-1], names[1:] + names[:1] + names[-2::-1] + names[-1:]

        got = encode(first, second, ["tie"] * (2 * n_models), session=first)

        assert [got.models[i] for i in got.first] == first
        assert [got.models[j] for j in got.second] == second
        assert got.n_sessions == n_models

    @pytest.mark.parametrize("empty", [[], np.array([], dtype=str), np.array([], dtype=object)])
    def test_no_rows_are_no_comparisons(self, empty):
        """Empty columns of any form have no models and no comparisons."""
        got = encode(empty, empty, empty, empty)

        assert len(got) == 0
        assert got.models == ()
        assert got.n_sessions == 0

    @pytest.mark.parametrize("form", TABLE_COLUMNS)
    def test_columns_of_tables_are_read(self, form):
        """Columns of Arrow and pandas give the same comparisons as lists."""
        library, make = TABLE_COLUMNS[form]
        module = pytest.importorskip(library)
        columns = ["b", "a", "c"], ["a", "c", "b"], ["first", "tie", "second"], ["x", "y", "x"]
        plain = encode(*columns)

        got = encode(*[make(module, column) for column in columns])

        assert got.models == plain.models
        for column in ("first", "second", "outcome"):
            assert getattr(got, column).tolist() == getattr(plain, column).tolist()
        session = got.session.tolist()
        assert session[0] == session[2] != session[1]

    @pytest.mark.parametrize("form", NUMBER_COLUMNS)
    def test_columns_of_numbers_are_read(self, form):
        """Outcomes and sessions may be whole numbers in the columns of any table."""
        library, make = NUMBER_COLUMNS[form]
        module = pytest.importorskip(library)

        got = encode(["b", "a"], ["a", "c"], make(module, [1, 0]), make(module, [1, 0]))

        assert got.outcome.tolist() == [FIRST, TIE]
        assert got.session.tolist() == [1, 0]

    @pytest.mark.parametrize("form", [form for form in TABLE_COLUMNS if "object" not in form])
    @pytest.mark.parametrize("column", ["first", "second", "outcome", "session"])
    def test_missing_values_of_tables_are_refused(self, form, column):
        """A missing value in the column of a table is named with its column."""
        library, make = TABLE_COLUMNS[form]
        module = pytest.importorskip(library)
        names = ("first", "second", "outcome", "session")
        columns = dict(zip(names, (["a", "c"], ["b", "a"], ["tie"] * 2, ["x", "y"]), strict=True))
        columns[column] = make(module, [columns[column][0], None])

        with pytest.raises(InvalidParameter, match=f"{column} cannot be '1 nulls'"):
            encode(**columns)

    def test_unused_dictionary_values_are_no_models(self):
        """A filtered Arrow dictionary has names without rows: they are not rated."""
        pa = pytest.importorskip("pyarrow")
        words = pa.array(["tie", "tie", "unknown"]).dictionary_encode()
        names = pa.array(["b", "c", "a"]).dictionary_encode()

        got = encode(names[:2], names[:2].take([1, 0]), words[:2])

        assert got.models == ("b", "c")
        assert got.first.tolist() == [0, 1]

    def test_outcomes_may_be_numbers(self):
        """1, 2 and 0 stand for first, second and tie, as evalica's winners do."""
        from evalica import Winner

        for outcomes in (
            [1, 2, 0],
            np.array([1, 2, 0], dtype=np.int8),
            [Winner.X, Winner.Y, Winner.Draw],
        ):
            got = encode(list("aaa"), list("bbb"), outcomes)

            assert got.outcome.tolist() == [FIRST, SECOND, TIE]

    @pytest.mark.parametrize("value", ["First", "abstain", "", 3, -1, None, True, 1.0, math.nan])
    def test_an_unknown_outcome_names_its_value_and_row(self, value):
        """The error shows the value and where it is."""
        with pytest.raises(InvalidParameter, match=r"outcome\[2\]") as caught:
            encode(list("aaa"), list("bbb"), ["first", "tie", value])

        assert caught.value.value is value or caught.value.value == value

    @pytest.mark.parametrize("value", [None, 3, math.nan, b"a", ("a",)])
    def test_a_name_that_is_no_text_is_refused_with_its_row(self, value):
        """A missing name or one of another type is an error, not a model."""
        with pytest.raises(InvalidParameter, match=r"second\[1\]"):
            encode(["a", "a"], ["b", value], ["tie", "tie"])

    def test_a_column_of_lists_is_refused(self):
        """It is no column of text."""
        with pytest.raises(InvalidParameter, match="first"):
            encode([["a"]], ["b"], ["tie"])

    def test_a_model_that_meets_itself_is_refused_with_its_row(self):
        """A comparison takes two models."""
        with pytest.raises(InvalidParameter, match=r"second\[1\] cannot be 'b'"):
            encode(["a", "b"], ["b", "b"], ["tie", "tie"])

    def test_columns_of_different_length_are_refused(self):
        """The error names the column and both lengths."""
        with pytest.raises(InvalidParameter, match="outcome cannot be '1 rows'; expected 2"):
            encode(["a", "b"], ["b", "a"], ["tie"])

    @pytest.mark.parametrize(
        "session",
        [
            np.array([7, 7, 900_000_000_000, 8]),
            np.array([-1, -1, 5, 2]),
            ["x", "x", "y", "z"],
            [4, 4, "4", 5],
        ],
        ids=["sparse", "negative", "text", "mixed"],
    )
    def test_sessions_may_be_any_numbers_or_text(self, session):
        """Equal values are one session, different values are different sessions."""
        got = encode(list("aaaa"), list("bbbb"), ["tie"] * 4, session)

        codes = got.session.tolist()
        assert codes[0] == codes[1]
        assert len({codes[0], codes[2], codes[3]}) == 3
        assert got.n_sessions == 3

    def test_small_session_numbers_are_used_as_codes(self):
        """They are whole numbers about as large as the number of rows."""
        got = encode(list("aaa"), list("bbb"), ["tie"] * 3, np.array([2, 0, 2]))

        assert got.session.tolist() == [2, 0, 2]
        assert got.n_sessions == 2

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("first", np.array([0, 2])),
            ("second", np.array([1, -1])),
            ("outcome", np.array([0, 3])),
            ("outcome", np.array([0.0, 1.0])),
            ("session", np.array([0])),
            ("session", np.array([0, -4])),
            ("first", np.array([[0, 1]])),
            ("models", ("a", "a")),
        ],
    )
    def test_invalid_codes_are_refused(self, field, value):
        """The error names the column of a code without a meaning."""
        columns = {
            "models": ("a", "b"),
            "first": np.array([0, 0]),
            "second": np.array([1, 1]),
            "outcome": np.array([0, 1]),
            "session": None,
        }

        with pytest.raises(InvalidParameter, match=field):
            Comparisons(**{**columns, field: value})


class TestSums:
    """Codes are counted by row."""

    def test_counts_are_those_of_the_rows(self):
        """Wins, losses and ties by model, and by pair and side."""
        comparisons = encode(list("aabc"), list("bbaa"), ["first", "tie", "first", "second"])

        counts = count_pairs(comparisons)
        ratings = rate(comparisons)

        assert counts.first.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
        assert counts.second.tolist() == [[0, 0, 0], [0, 0, 0], [1, 0, 0]]
        assert counts.tie.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
        assert ratings.wins.tolist() == [2, 1, 0]
        assert ratings.losses.tolist() == [1, 1, 1]
        assert ratings.ties.tolist() == [1, 1, 0]

    def test_sparse_and_dense_sums_are_equal(self):
        """Many models use the sparse sum over sessions, few the dense one."""
        rng = np.random.default_rng(5)
        first = rng.integers(0, 6, 3000)
        second = (first + rng.integers(1, 6, 3000)) % 6
        outcome, session = rng.integers(0, 3, 3000), np.sort(rng.integers(0, 300, 3000))
        few = Comparisons(tuple("abcdef"), first, second, outcome, session)
        names = tuple(f"model {k}" for k in range(200))
        many = Comparisons(names, first, second, outcome, session)
        residual = rng.normal(size=(3, 200, 200))

        dense = session_squares(few, np.ascontiguousarray(residual[:, :6, :6]))
        sparse = session_squares(many, residual)

        assert sparse[:6, :6] == pytest.approx(dense)
        assert not sparse[6:].any()

    def test_squares_by_session_need_sessions(self):
        """Without sessions there is no gradient per session."""
        comparisons = encode(["a"], ["b"], ["tie"])

        with pytest.raises(InvalidParameter, match="session"):
            session_squares(comparisons, np.zeros((3, 2, 2)))
