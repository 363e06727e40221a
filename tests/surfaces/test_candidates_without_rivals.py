"""A candidate without a rival in a session has no score there."""

import json

import pytest

COMPARING = ("borda", "mean_rank", "normalized_scores", "calibrated", "hybrid", "irv", "kemeny")


@pytest.fixture
def half(tmp_path):
    """Twelve sessions in which ``solo`` always has 9; its rival, with 5, is missing in six."""
    rows = ["session,judge,model,grade"]
    for n in range(12):
        for judge in "xyz":
            rows.append(f"s{n},{judge},solo,9")
            rows += [f"s{n},{judge},rival,5"] if n < 6 else []
    path = tmp_path / "half.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def lines(witan, path, *options):
    """The lines of a leaderboard by model."""
    said = witan("leaderboard", path, "--min-sessions", "1", *options, "--json")
    assert said.status == 0
    return {line["model"]: line for line in said.json["lines"]}


@pytest.mark.parametrize("rule", COMPARING)
def test_sessions_without_a_rival_are_left_out_of_the_mean(witan, half, tmp_path, rule):
    """Scores come from the six sessions with both."""
    both = tmp_path / "both.csv"
    text = half.read_text(encoding="utf-8").splitlines()
    together = [row for row in text if row.partition(",")[0] not in {f"s{n}" for n in range(6, 12)}]
    both.write_text("\n".join(together), encoding="utf-8")

    found, expected = (lines(witan, path, "--rule", rule) for path in (half, both))

    for model in ("solo", "rival"):
        assert found[model]["sessions"] == expected[model]["sessions"] == 6
        for field in ("score", "wins", "z"):
            assert found[model][field] == expected[model][field]


def test_a_rule_without_comparisons_scores_every_session(witan, half):
    """A mean grade needs no rival."""
    found = lines(witan, half, "--rule", "range")

    assert (found["solo"]["score"], found["solo"]["sessions"]) == (9.0, 12)
    assert (found["rival"]["score"], found["rival"]["sessions"]) == (5.0, 6)


def test_a_model_without_a_scored_session_has_no_coverage(witan, half):
    """However many ballots grade it alone, there is no score that they could cover."""
    alone = "".join(f"\ns{n},{judge},lone,9" for n in range(20, 40) for judge in "xyz")
    half.write_text(half.read_text(encoding="utf-8") + alone, encoding="utf-8")

    said = witan("leaderboard", half, "--min-sessions", "1")
    [line] = [line for line in said.out.splitlines() if " lone " in line]

    assert line.split()[-4:] == ["0", "60", "0", "–"]


@pytest.mark.parametrize("command", ["tally", "import", "leaderboard"])
def test_an_error_of_a_rival_is_no_win(witan, tmp_path, command):
    """Failed results of promptfoo are named, and the other model is not ranked lower."""
    path = tmp_path / "results.json"
    results = [
        {"testIdx": n, "promptIdx": 0, "provider": {"id": name}, "score": score}
        | ({"error": "500 Server Error", "failureReason": 2} if name == "b" and n < 8 else {})
        for n in range(12)
        for name, score in (("a", 0.9), ("b", 0.4))
    ]
    path.write_text(json.dumps({"evalId": "e", "results": {"results": results}}), encoding="utf-8")
    history = ["--history", tmp_path / "history.sqlite"] if command == "import" else []

    said = witan(command, path, *history)

    assert said.status == 0
    assert all(fact in said.err for fact in ("8 results", "results/1, results/2, results/3"))
    found = lines(witan, path)
    assert (found["a"]["score"], found["a"]["sessions"], found["a"]["wins"]) == (1.0, 4, 4.0)
