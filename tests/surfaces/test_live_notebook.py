"""A session and a batch under way are one output of a notebook's cell, drawn over."""

import re

import pytest

from notebooks import execute, notebook_of
from processes import run_python
from witan.surfaces.notebook import draw_picture
from witan.surfaces.terminal import style_line

SEATS = """
import anyio, witan
from witan import batches
from witan.models import Line, ScriptedModel

def seat(name):
    answer = Line(text=f"{name} says <b>so</b>.", seconds=0.4)
    return ScriptedModel(name, answers=[answer], reviews=[Line(prefers=["ada", "b<i>b", "cyd"])])

seats = [seat(name) for name in ("ada", "b<i>b", "cyd")]
"""

ASK = "witan.ask('Which?', seats, mode='best');"

AWAIT = """
async with witan.Council(seats, mode="best") as council:
    await council.ask("Which?")
"""

QUIET = "witan.ask('Which?', seats, mode='best', progress=False);"

JUDGE = "witan.judge('So.', seats, question='Why?');"

OWN = "witan.ask('Which?', seats, mode='best', listener=lambda event: None);"

BATCH = """
rows = [batches.BatchRow(n, question=f"Why {n}?") for n in range(1, 4)]
with witan.History.open("history.sqlite") as history:
    async with witan.Council(seats, mode="best") as council:
        batch = batches.Batch(council, history, rows, batches.BatchOptions())
        report = await batch.run(lambda row: None)
"""


@pytest.fixture(scope="module")
def execution(tmp_path_factory):
    return execute(
        notebook_of([SEATS, ASK, AWAIT, QUIET, OWN, BATCH, JUDGE]),
        tmp_path_factory.mktemp("notebook"),
    )


@pytest.mark.parametrize("cell", [1, 2], ids=["ask", "await"])
def test_a_session_is_one_output_that_ends_as_it_ended(execution, cell):
    """Its panel is drawn over; the last one says how the session ended, and who leads."""
    [output] = execution.outputs[cell]

    text = output["data"]["text/plain"]
    assert text.startswith("simulated · witan · complete · ")
    assert len(re.findall("✓ .* voted ", text)) == 3
    assert "ranking by " in text


def test_a_text_judged_alone_is_not_ranked(execution):
    """Its panel ends with the jurors."""
    [output] = execution.outputs[6]

    text = output["data"]["text/plain"]
    assert len(re.findall("✓ .* voted ", text)) == 3
    assert "ranking by " not in text


def test_the_panel_is_drawn_while_the_session_runs(execution):
    """One message opens a display, and updates of the same display follow."""
    [first, *_] = execution.displays("display_data")
    drawn = [
        each["data"]["text/plain"]
        for each in execution.displays("update_display_data")
        if each["transient"] == first["transient"]
    ]

    assert any("answers: 0 of 3" in text and "answering" in text for text in drawn)
    assert "complete" in drawn[-1]


def test_names_are_text_in_html(execution):
    """A name with markup is shown as it is written."""
    html = execution.outputs[1][0]["data"]["text/html"]

    assert "b&lt;i&gt;b" in html
    assert "<i>" not in html


def test_nothing_is_shown_where_it_is_turned_off(execution):
    """With `progress=False`, or with a listener that shows the session itself."""
    assert execution.outputs[3] == execution.outputs[4] == []


def test_a_batch_shows_a_line_and_no_panels(execution):
    """The line says at the end that all rows are done."""
    [output] = execution.outputs[5]

    assert "3 of 3 rows" in output["data"]["text/plain"]
    assert "\n" not in output["data"]["text/plain"].strip()


def test_hostile_text_steers_no_notebook():
    """Control characters and direction marks are escaped in both forms, markup in HTML."""
    bundle = draw_picture(style_line("\x1b[2J\u202e<script>alert(1)</script>", "bold"))

    assert "<script" not in bundle["text/html"]
    for shown in bundle.values():
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_a_script_loads_nothing_of_a_notebook():
    """Outside a notebook neither IPython nor the panel is imported."""
    code = (
        "import sys, witan; from witan.models import ScriptedModel;"
        "seats = [ScriptedModel(n, answers=['yes']) for n in ('a', 'b')];"
        "witan.ask('Which?', seats, mode='best');"
        "print({'IPython', 'rich', 'witan.surfaces.notebook'} & {*sys.modules})"
    )
    said = run_python(code, check=True)

    assert said.stdout.strip() == "set()"
