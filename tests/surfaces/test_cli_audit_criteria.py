"""``witan audit``, black box: each reviewer's grades per criterion."""

from dataclasses import replace

import pytest

from postgres import database_of
from stored_ballots import KEEN, alike, ballot, graded, lake_of, store_sessions
from witan.history import SessionImport


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Forty sessions of the council above."""
    return store_sessions(tmp_path_factory.mktemp("kept") / "history.sqlite", graded(40))


@pytest.fixture
def lines(witan, history):
    """Measures in JSON by reviewer and criterion."""
    said = witan("audit", "--history", history, "--json").json
    return {
        line["reviewer"]: {found["criterion"]: found for found in line["criteria"]}
        for line in said["reviewers"]
    }


def test_all_reviewers_have_all_criteria_in_json(lines):
    """Each measure has value, interval and sample size."""
    assert list(lines) == list(KEEN)
    assert all(list(found) == ["accuracy", "clarity"] for found in lines.values())
    mean = lines["ash"]["accuracy"]["mean"]
    assert (mean["value"], mean["n"], mean["of"]) == (pytest.approx(8.0), 80, "grades")
    assert set(mean) >= {"interval", "needed", "unit", "why"}


def test_numbers_match_hand_counts(lines):
    """Means, severity, constant use and halo, each on its criterion."""
    # Of the answers that oak grades, ash and elm grade one each: 8 and 7 on average, oak 3.
    assert lines["oak"]["accuracy"]["severity"]["value"] == pytest.approx(-4.5)
    assert lines["elm"]["clarity"]["flat_rate"]["value"] == 1.0
    assert lines["elm"]["accuracy"]["flat_rate"]["value"] == 0.0
    assert lines["ash"]["accuracy"]["halo"]["value"] == pytest.approx(1.0)
    assert lines["oak"]["accuracy"]["halo"]["value"] == pytest.approx(0.0, abs=1e-9)
    assert lines["elm"]["accuracy"]["halo"]["why"].startswith("undefined")
    assert all(
        fact in lines["oak"]["accuracy"]["self_preference"]["why"]
        for fact in ("0 grades", "30 needed")
    )


def test_one_reviewer_has_a_table_per_criterion(witan, history):
    """Outliers are marked."""
    said = witan("audit", "--history", history, "--reviewer", "elm")

    accuracy, clarity = said.out.split("\nOn ")[1:]
    assert accuracy.startswith("accuracy")
    assert "7.00" in next(line for line in accuracy.splitlines() if line.startswith("mean"))
    [flat] = [line for line in clarity.splitlines() if line.startswith("flat")]
    assert "1.00!" in flat
    assert "40 ballots" in flat


def test_one_criterion_compares_all_reviewers(witan, history, tmp_path):
    """A row per reviewer and nothing else; in JSON and in a chart likewise."""
    chart = tmp_path / "accuracy.svg"
    said = witan("audit", "--history", history, "--criterion", "accuracy", "--plot", chart)
    rows = said.lines

    assert rows[0].startswith("how the reviewers grade accuracy")
    assert "Reliability" not in said.out
    assert "clarity" not in said.out
    assert "How reviewers graded accuracy" in chart.read_text()
    assert [line.split()[:2] for line in rows if line.split()[:1] and line.split()[0] in KEEN] == [
        ["ash", "8.00"], ["elm", "7.00"], ["oak", "3.00"],
    ]  # fmt: skip
    alone = witan("audit", "--history", history, "--criterion", "accuracy", "--json").json
    assert alone["criterion"]["criterion"] == "accuracy"
    assert {each["grading"]["criterion"] for each in alone["criterion"]["graders"]} == {"accuracy"}
    assert alone["criterion"]["panel"]["criterion"] == "accuracy"
    assert alone["reviewers"] == []
    both = witan("audit", "--history", history, "--criterion", "clarity", "--reviewer", "oak")
    assert both.lines[0].startswith("how oak grades clarity")
    assert not {"ash", "accuracy"} & set(both.out.split())


@pytest.mark.parametrize(
    ("criterion", "said"),
    [("acuracy", "'acuracy'; did you mean 'accuracy'? (known: accuracy, clarity)"),
     ("zest", "unknown criterion 'zest' (known: accuracy, clarity)"),
     ("overall", "'overall' is the holistic grade; leave out the criterion to audit it; "
                 "criteria: accuracy, clarity")],
)  # fmt: skip
def test_an_ungraded_criterion_is_refused(witan, history, criterion, said):
    """With the nearest one, and the list."""
    refused = witan("audit", "--history", history, "--criterion", criterion)

    assert (refused.status, refused.out) == (2, "")
    assert said in refused.err


def test_a_reviewer_without_grades_on_a_criterion_is_reported(witan, tmp_path):
    """A person who only ranked, alone and among all people; the exit status is that of no data."""
    vote = ballot("s0", "ines", ("ash", "elm", "oak"), kind="human")
    person = SessionImport("of people", ballots=(replace(vote, session="of people"),))
    place = store_sessions(tmp_path / "h.sqlite", [*graded(12), person])

    for name in ("ines", "people"):
        said = witan("audit", "--history", place, "--criterion", "clarity", "--reviewer", name)
        assert said.status == 3
        assert all(
            fact in said.err
            for fact in (f"{name} gave no grades", "these reviewers did: ash, elm and oak")
        )
    strange = witan("audit", "--history", place, "--criterion", "clarity", "--reviewer", "elk")
    assert strange.status == 2
    assert "unknown reviewer 'elk'" in strange.err


def test_few_grades_state_the_number_needed(witan, tmp_path):
    """Eight grades are eight of the thirty that a mean needs."""
    place = store_sessions(tmp_path / "h.sqlite", graded(4))

    said = witan("audit", "--history", place, "--reviewer", "oak")
    assert "not enough data: 8 grades, 30 needed" in said.out
    assert "(8/30)" in witan("audit", "--history", place, "--criterion", "accuracy").out


@pytest.mark.parametrize("engine", ["duckdb", "postgresql"])
def test_other_engines_give_the_same(witan, history, tmp_path, engine):
    """The lake and PostgreSQL equal SQLite to 1e-9."""
    expected = witan("audit", "--history", history, "--json").json
    if engine == "duckdb":
        found = witan("audit", "--lake", lake_of(history, tmp_path / "lake"), "--json").json
        alike(found["reviewers"], expected["reviewers"])
        return
    for url in database_of():
        store_sessions(url, graded(40))
        found = witan("audit", "--history", url, "--json").json
        alike(found["reviewers"], expected["reviewers"])
