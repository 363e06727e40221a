"""``witan audit``, black box: on the real council, against hand counts, on every engine."""

import json
import re
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from postgres import database_of
from stored_ballots import NOW, alike, ballot, lake_of, store_sessions
from witan import Ballot, write_ballots
from witan.files.imports import read_imports
from witan.history import SessionImport
from witan.surfaces.cli.app import main

PRD = Path(__file__).resolve().parents[3] / "shared" / "data" / "prd_vicuna80"

JUDGES = ("gpt35", "gpt4", "claude", "vicuna-13b", "bard")

FULL = ("ash", "elm", "oak")


def council(n_sessions: int) -> list[SessionImport]:
    """Three models that judge each other, and themselves, as below.

    Each puts the other two in the order of their names. ash puts itself first always, elm puts
    itself last but for every tenth session, where it puts itself first, and oak puts itself first
    in every other session.
    """
    found = []
    for number in range(n_sessions):
        oak = ("oak", "ash", "elm") if number % 2 else ("ash", "elm", "oak")
        elm = ("ash", "oak", "elm") if number % 10 else ("elm", "ash", "oak")
        orders = {"ash": FULL, "elm": elm, "oak": oak}
        name = f"q{number:02}"
        ballots = tuple(
            ballot(
                name, reviewer, order, candidates=FULL,
                grades={model: 9.0 - 2 * place for place, model in enumerate(order)},
            )
            for reviewer, order in orders.items()
        )  # fmt: skip
        found.append(SessionImport(name, NOW, ballots=ballots))
    return found


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """Forty sessions of the council above."""
    return store_sessions(tmp_path_factory.mktemp("kept") / "history.sqlite", council(40))


@pytest.fixture(scope="module")
def vicuna(tmp_path_factory):
    """The real council, with the lengths of its answers."""
    if not PRD.is_dir():
        pytest.skip("the folder of real ballots is not here")
    held = read_imports(
        PRD / "pairwise.csv", answers=[PRD / "responses.jsonl"], at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    return store_sessions(tmp_path_factory.mktemp("vicuna") / "history.sqlite", held)


@pytest.fixture(scope="module")
def audit_json(vicuna):
    """The audit of the real council, in JSON."""
    out = StringIO()
    with redirect_stdout(out):
        assert main(["audit", "--history", vicuna, "--json"]) == 0
    return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def lines(audit_json):
    """Reviewers of the real council, by name."""
    return {line["reviewer"]: line for line in audit_json["reviewers"]}


def reviewers(said):
    """Reviewers in JSON, by name."""
    return {line["reviewer"]: line for line in said.json["reviewers"]}


def concerns(said, reviewer):
    """The measures of a reviewer that are marked."""
    return {concern["measure"] for concern in said["concerns"].get(reviewer, ())}


class TestRealCouncil:
    """The audit reproduces the figures of ``data/README.md`` for the forty questions."""

    def test_figures_match_the_data(self, audit_json, lines):
        """Own answers, order, first position, length and effective votes, all computed in SQL."""

        def values(measure):
            return {name: line[measure]["value"] for name, line in lines.items() if name in JUDGES}

        assert values("self_preference") == pytest.approx(
            dict(zip(JUDGES, (-0.06, 0.13, -0.01, 0.05, 0.07), strict=True)), abs=0.02
        )
        assert values("order_consistency") == pytest.approx(
            dict(zip(JUDGES, (0.70, 0.66, 0.56, 0.36, 0.36), strict=True)), abs=0.006
        )
        assert values("first_shown") == pytest.approx(
            dict(zip(JUDGES, (0.50, 0.63, 0.38, 0.44, 0.80), strict=True)), abs=0.04
        )
        assert audit_json["panel"]["effective_votes"]["value"] == pytest.approx(1.9, abs=0.15)
        longer = audit_json["people"]["length"]["longer_wins"]
        assert (longer["n"], longer["value"]) == (795, pytest.approx(0.74, abs=0.005))

    def test_the_self_preference_of_gpt4_is_marked(self, audit_json):
        """Its interval is above 0; that of claude is not."""
        assert "self_preference" in concerns(audit_json, "gpt4")
        assert "self_preference" not in concerns(audit_json, "claude")

    def test_inconsistent_judges_are_marked(self, audit_json, lines):
        """Those that keep fewer than half of their votes in the reversed order."""
        turning = {name for name, line in lines.items() if line["order_consistency"]["value"] < 0.5}

        assert turning == {"vicuna-13b", "bard"}
        assert turning == {
            name for name in lines if "order_consistency" in concerns(audit_json, name)
        }

    def test_every_marked_reviewer_has_a_row(self, witan, vicuna):
        """Names above the tables are in them, people included."""
        said = witan("audit", "--history", vicuna)
        above, tables = said.out.split("Based on 95% intervals.")
        rows = {line.split()[0] for line in tables.splitlines() if line.strip()}
        marked = [line[2:].partition(":")[0] for line in above.splitlines() if line[:2] == "! "]

        assert "human" in marked
        assert {*marked, "people"} <= rows

    def test_all_people_together_are_one_reviewer(self, witan, vicuna, audit_json):
        """Under the name of their row, in text and in JSON."""
        said = witan("audit", "--reviewer", "people", "--history", vicuna)
        line = witan("audit", "--reviewer", "people", "--json", "--history", vicuna).json["people"]

        assert said.lines[0].startswith("how people judge")
        assert line == audit_json["people"]

    def test_agreement_predicts_reliability(self, audit_json):
        """The more the panel agrees on a pair, the more often it sides with people."""
        blocks = audit_json["calibration"]["blocks"]
        known = [b["reliability"]["value"] for b in blocks if b["reliability"]["value"] is not None]

        assert known == sorted(known)
        assert known[-1] > 0.85


class TestNumbers:
    """Printed numbers match hand counts."""

    def test_self_preference(self, witan, history):
        """What ash gives itself, 1, the others give it too; elm gives itself .4 less than they do.

        Without itself on its ballot, elm places ash above oak, and oak places ash above elm. Itself
        elm places last, which is 0, in nine sessions of ten, a mean of .1; ash places it above oak,
        1, and oak places it below ash, 0.
        """
        said = witan("audit", "--history", history, "--json")

        ash = reviewers(said)["ash"]["self_preference"]
        assert ash["n"] == 40
        assert ash["value"] == pytest.approx(0.0, abs=1e-12)
        elm = reviewers(said)["elm"]["self_preference"]
        assert elm["value"] == pytest.approx(-0.4)
        assert "self_preference" in concerns(said.json, "elm")

    def test_one_reviewer_in_full(self, witan, history):
        """Every measure with its sample size."""
        said = witan("audit", "--history", history, "--reviewer", "elm")

        assert said.status == 0
        assert all(fact in said.out for fact in ("how elm judges", "40 ballots, 0 abstentions"))
        assert "its own answers lower" in said.out
        assert re.search(
            r"Order consistency +– +– +not enough data: 0 pairs seen in both orders", said.out
        )
        alone = witan("audit", "--history", history, "--reviewer", "elm", "--json")
        assert [line["reviewer"] for line in alone.json["reviewers"]] == ["elm"]

    def test_an_unknown_reviewer_gets_the_nearest_name(self, witan, history):
        """In one line."""
        said = witan("audit", "--history", history, "--reviewer", "elmo")

        assert (said.status, said.out) == (2, "")
        assert "did you mean 'elm'?" in said.err

    def test_a_reviewer_is_found_by_a_shortened_name(self, witan, tmp_path):
        """By the last part of its address or around an ellipsis, if only one has it."""
        file = tmp_path / "grades.csv"
        names = ("http://localhost:8080/v1#qwen3", "google:gemini", "router:google/gemini")
        lines = [f"{s},{r},{c},{len(r + c)}" for s in range(3) for r in names for c in "abc"]
        file.write_text("\n".join(["session,reviewer,candidate,grade", *lines]), encoding="utf-8")
        found = [
            witan("audit", file, "--reviewer", short, "--json")
            for short in ("qwen3", "v1#qwen3", "http…en3")
        ]
        several = witan("audit", file, "--reviewer", "gemini")

        assert [one.json["only"] for one in found] == [names[0]] * 3
        assert (several.status, several.out) == (2, "")
        assert "'gemini' may be google:gemini and router:google/gemini; name one" in several.err

    def test_too_few_data_state_the_number_needed(self, witan, tmp_path):
        """Seven ballots are seven of the twenty that a rate needs."""
        place = store_sessions(tmp_path / "h.sqlite", council(7))
        said = witan("audit", "--history", place)

        assert said.status == 0
        assert "(7/20)" in said.out
        assert all(fact in said.out for fact in ("0 pairs", "50 needed"))

    def test_families_of_the_configuration(self, witan, history, tmp_path):
        """Where ash and elm are one family, oak alone is outside: too few to compare with."""
        config = tmp_path / "witan.toml"
        config.write_text('[families]\ntrees = ["ash", "elm"]\n', encoding="utf-8")
        said = witan("audit", "--history", history, "--config", config, "--json")

        family = reviewers(said)["ash"]["family_preference"]
        assert family["n"] == 40
        assert "1 other reviewer with" in family["why"]

    def test_a_model_in_two_families_is_refused(self, witan, history, tmp_path):
        """It is named with both."""
        config = tmp_path / "witan.toml"
        config.write_text('[families]\ntrees = ["ash"]\nwoods = ["ash"]\n', encoding="utf-8")
        said = witan("audit", "--history", history, "--config", config)

        assert (said.status, said.out) == (2, "")
        assert "in trees and in woods" in said.err

    def test_an_alias_joins_two_reviewers(self, witan, history, tmp_path):
        """What was oak is now called ash, and ash has the ballots of both."""
        config = tmp_path / "witan.toml"
        config.write_text('[aliases]\noak = "ash"\n', encoding="utf-8")
        said = witan("audit", "--history", history, "--config", config, "--json")

        assert {name: line["ballots"] for name, line in reviewers(said).items()} == {
            "ash": 80, "elm": 40,
        }  # fmt: skip

    def test_a_reviewer_is_found_by_its_old_name(self, witan, history, tmp_path):
        """A request for oak shows ash, its new name."""
        config = tmp_path / "witan.toml"
        config.write_text('[aliases]\noak = "ash"\n', encoding="utf-8")
        asked = ("audit", "--history", history, "--config", config, "--json", "--reviewer")

        assert witan(*asked, "oak").json == witan(*asked, "ash").json

    def test_an_unknown_criterion_is_refused(self, witan, history):
        """The error says that there are none."""
        said = witan("audit", "--history", history, "--criterion", "clarity")

        assert (said.status, said.out) == (2, "")
        assert "unknown criterion 'clarity': no reviewer graded by criteria" in said.err

    def test_the_chart_has_a_row_per_reviewer(self, witan, history, tmp_path):
        """With names of reviewers and measures."""
        path = tmp_path / "audit.svg"
        said = witan("audit", "--history", history, "--plot", path)

        assert said.status == 0
        drawn = path.read_text(encoding="utf-8")
        assert all(word in drawn for word in ("ash", "elm", "oak", "own answers", "severity"))


class TestConstantReviewer:
    """A reviewer with constant grades has no measurable preference."""

    PREFERENCES = ("self_preference", "position_effect")

    @pytest.fixture
    def votes(self, tmp_path):
        """Forty sessions of six answers on one sheet, the best of them first.

        Three reviewers agree but for noise, and yew, whose own answer is fifth, gives all a 5.
        """
        draw = np.random.default_rng(1)
        names = ("birch", "ash", "oak", "elm", "yew", "cedar")
        places = {name: place for place, name in enumerate(names, 1)}
        path = tmp_path / "votes.jsonl"
        with path.open("w") as file:
            for number in range(40):
                for reviewer in ("fir", "lime", "pine", "yew"):
                    grades = {name: 9 - place + int(draw.integers(-1, 2)) for name, place in
                              places.items()}  # fmt: skip
                    ballot = {
                        "session": f"q{number}",
                        "reviewer": reviewer,
                        "positions": places,
                        "grades": dict.fromkeys(places, 5) if reviewer == "yew" else grades,
                    }
                    file.write(f"{json.dumps(ballot)}\n")
        return str(path)

    def test_it_has_no_preference(self, witan, votes):
        """Neither value nor mark, with the reason; only the constant grade is marked."""
        said = witan("audit", votes, "--json")

        yew = reviewers(said)["yew"]
        for name in self.PREFERENCES:
            assert (yew[name]["value"], yew[name]["interval"]) == (None, None)
            assert "no preference can be measured" in yew[name]["why"]
        assert {"constant", "flat_rate"} <= concerns(said.json, "yew")
        assert not concerns(said.json, "yew") & {*self.PREFERENCES, "first_shown"}
        text = witan("audit", votes, "--reviewer", "yew").out
        assert re.search(r"Self preference .*no preference can be measured", text)
        assert re.search(r"Position effect .*no preference can be measured", text)

    def test_other_reviewers_are_not_marked(self, witan, votes):
        """Three agree on the first answer, so none has a position bias."""
        said = witan("audit", votes, "--json")

        for name in ("fir", "lime", "pine"):
            assert reviewers(said)[name]["position_effect"]["n"] == 40
            assert "position_effect" not in concerns(said.json, name)


def test_the_plot_draws_every_measure_that_stands_out(witan, tmp_path):
    """Three reviewers grade alike, and one at random: only its slope marks it."""
    rng = np.random.default_rng(2)
    ballots = []
    for number in range(40):
        quality = rng.normal(5.5, 1.5, 4)
        graders = {name: quality + rng.normal(0, 0.5, 4) for name in ("fir", "lime", "yew")}
        graders["dice"] = rng.normal(5.5, 1.5, 4)
        ballots += [
            Ballot(
                name, grades=dict(zip("abcd", grades.tolist(), strict=True)), session=f"q{number}"
            )
            for name, grades in graders.items()
        ]
    path, plot = tmp_path / "ballots.jsonl", tmp_path / "audit.svg"
    write_ballots(ballots, path)

    said = witan("audit", path, "--scale", "1-10", "--plot", plot)

    assert "! dice: is not shown to separate answers by its grades" in said.out
    drawn = plot.read_text(encoding="utf-8")
    assert "Something stands out in dice" in drawn
    assert "dice, slope: " in drawn


class TestEngines:
    """One definition, four engines."""

    def test_postgresql_gives_the_same(self, witan, history):
        """Counts are identical, sums equal to 1e-9."""
        for url in database_of():
            store_sessions(url, council(40))
            here = witan("audit", "--history", history, "--json").json
            alike(here, witan("audit", "--history", url, "--json").json)

    def test_a_lake_gives_the_same(self, witan, vicuna, tmp_path):
        """The real council, read by DuckDB."""
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
        lake = lake_of(vicuna, tmp_path / "lake")
        here = witan("audit", "--history", vicuna, "--json").json
        alike(here, witan("audit", "--lake", lake, "--json").json)
