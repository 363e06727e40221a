"""Every battle in a table of pairs counts, whichever column tells one question from another."""

import json
import re

import pytest

from witan import read_ballots, tally

SESSIONS = ("prompt", "question", "instruction", "conversation_id", "question_id", "id")
UNNAMED = ("timestamp", None)
ARENA = ("model_a", "model_b", "winner", "judge", "model_a", "model_b")
SIDES = ("left", "right", "vote", "rater", "left", "right")


def battles(path, column, names=ARENA, judges=("j",), wins=(36, 4)):
    """A table in which A wins so many battles of each judge, and then B so many."""
    first, second, outcome, judge, *sides = names
    rows = [[*([column] if column else []), first, second, outcome, judge]]
    for name in judges:
        for n in range(sum(wins)):
            cell = f"2026-01-01T00:{n:02d}:00" if column == "timestamp" else f"Why {n}?"
            won = sides[n >= wins[0]]
            rows.append([*([cell] if column else []), "A", "B", won, name])
    path.write_text("\n".join(map(",".join, rows)), encoding="utf-8")
    return path


def led(outcomes):
    """How many sessions each candidate leads."""
    leaders = [one["standings"][0]["candidate"] for one in outcomes["sessions"]]
    return {name: leaders.count(name) for name in sorted(set(leaders))}


@pytest.mark.parametrize("names", [ARENA, SIDES], ids=["arena", "sides"])
@pytest.mark.parametrize("column", SESSIONS)
def test_each_column_name_of_a_question_makes_sessions(witan, tmp_path, column, names):
    """Counting and the leaderboard have the same 40 sessions, 36 of them led by A."""
    path = battles(tmp_path / "pairs.csv", column, names)

    counted = witan("tally", path, "--json")
    [first, _] = witan("leaderboard", path, "--json").json["lines"]

    assert led(counted.json) == {"A": 36, "B": 4}
    assert "again" not in counted.err
    assert (first["model"], first["sessions"], first["wins"]) == ("A", 40, 36.0)


@pytest.mark.parametrize(
    ("column", "names"),
    [
        pytest.param(column, names, marks=() if n_column == n_names else pytest.mark.slow)
        for n_column, column in enumerate(UNNAMED)
        for n_names, names in enumerate([ARENA, SIDES])
    ],
)
def test_all_battles_without_a_session_count(witan, tmp_path, column, names):
    """40 votes, 36 of them for A, under every command and from Python."""
    path = battles(tmp_path / "pairs.csv", column, names)

    said = witan("tally", path, "--json")
    [one] = said.json["sessions"]
    [first, _] = witan("leaderboard", path, "--json").json["lines"]
    outcome = tally(read_ballots(path))

    assert [(s["candidate"], s["votes"], s["wins"]) for s in one["standings"]] == [
        ("A", 40, 36.0),
        ("B", 40, 4.0),
    ]
    assert any("a battle of its own" in text for text in one["warnings"])
    assert "the last" not in said.err + json.dumps(one["warnings"])
    assert re.search(r"^borda +A +1 · 0\.900", witan("compare", path).out, re.MULTILINE)
    assert (first["model"], first["score"], first["sessions"]) == ("A", 0.9, 40)
    assert outcome.standings[0].candidate == "A"
    assert outcome.standings[0].score == pytest.approx(0.9)


def test_four_judges_who_end_with_a_defeat_put_the_winner_far_ahead(witan, tmp_path):
    """Nine wins and then one defeat with each judge are 36 wins of 40, not four defeats."""
    path = battles(tmp_path / "four.csv", None, judges=("k", "l", "m", "n"), wins=(9, 1))

    [one] = witan("tally", path, "--json").json["sessions"]
    a, b = one["standings"]

    assert (a["candidate"], a["score"], b["score"]) == ("A", 0.9, pytest.approx(0.1))
    assert a["interval"]["low"] > b["interval"]["high"]


def test_both_orders_of_a_pair_are_one_opinion_without_a_session(witan, write):
    """A flip is a tie, as in a named session, unless a judge repeats an order."""
    rows = ["reviewer,first,second,outcome", "gpt,A,B,first", "gpt,B,A,second", "grok,A,B,first"]
    path = write("pairs.csv", *rows, "grok,B,A,first")

    [one] = witan("tally", path, "--json").json["sessions"]

    assert [(s["candidate"], s["votes"], s["wins"]) for s in one["standings"]] == [
        ("A", 2, 1.5),
        ("B", 2, 0.5),
    ]


def test_votes_are_worth_as_much_as_reviewers(witan, tmp_path):
    """Two judges of three pairs each are worth at most two votes, however many pairs they judge."""
    rows = ["session,reviewer,first,second,outcome"]
    rows += [f"s,{judge},{pair},first" for judge in "uv" for pair in ("A,B", "A,C", "B,C")]
    table, history, plot = (tmp_path / name for name in ("pairs.csv", "h.sqlite", "plot.svg"))
    table.write_text("\n".join(rows), encoding="utf-8")
    witan("import", table, "--history", history)

    shown = witan("show", "last", "--history", history).out
    witan("tally", table, "--plot", plot)

    assert "effective votes 1.8 of 2:" in shown
    assert "6 ballots · worth 1.8 independent reviewers" in plot.read_text(encoding="utf-8")


def test_a_judge_who_repeats_a_pair_in_one_session_counts_by_the_last_row(witan, write):
    """The same question, order and judge is one opinion, in counting and on the leaderboard."""
    rows = ["prompt,model_a,model_b,winner,judge", "Why?,A,B,model_a,gpt", "Why?,A,B,model_b,gpt"]
    path = write("pairs.csv", *rows)

    said = witan("tally", path, "--json")
    lines = witan("leaderboard", path, "--min-sessions", "1", "--json").json["lines"]

    assert led(said.json) == {"B": 1}
    assert "the last row of each" in said.err
    assert {line["model"]: line["wins"] for line in lines} == {"A": 0.0, "B": 1.0}
