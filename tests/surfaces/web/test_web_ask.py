"""The form that asks a question."""

import httpx2

from markup import parsed
from served import served
from services import write_config
from witan.service.config.configuration import load_config
from witan.service.operations.ask import CouncilRequest, QuestionRequest
from witan.service.parameters import parameters_of
from witan.service.sessions.councils import Councils
from witan.surfaces.web.forms import FilledForm
from witan.surfaces.web.rendering import Choice, render_ask

COUNCILS = [
    Choice("", "ada, bob and cyd"),
    Choice("broken", "two <of> them", "the key OPENAI_API_KEY is not set"),
]


def controls(form):
    """All form controls."""
    return [x for tag in ("textarea", "select", "input") for x in form.all(tag)]


def visible_controls(form):
    """Controls that are visible without opening anything."""
    folded = [x for part in form.all("details") for x in controls(part)]
    return [x for x in controls(form) if x not in folded]


def page(**fields):
    return parsed(render_ask(COUNCILS, demo_question="Which zone?", **fields))


class TestForm:
    def test_a_question_goes_to_a_council(self):
        """Both are labelled fields and need no script."""
        form = page().all("form")[0]

        assert (form.attrs["method"], form.attrs["action"]) == ("post", "/sessions")
        in_sight = [x.attrs["name"] for x in visible_controls(form)]
        assert in_sight == ["question", "profile", "rule", "max_cost_usd"]
        labels = {label.attrs["for"] for label in form.all("label") if "for" in label.attrs}
        assert labels == {x.attrs["id"] for x in controls(form)}

    def test_the_form_has_every_parameter_of_the_request(self):
        """Each once, and no other; what is behind Advanced is grouped as it is declared."""
        seated = [Choice("", "ada and bob", members=(("ada", "ada"),))]
        form = parsed(render_ask(seated, demo_question="Which zone?")).all("form")[0]

        declared = sorted(each.name for each in parameters_of(QuestionRequest))
        assert sorted(x.attrs["name"] for x in controls(form)) == declared
        titles = [group.one("summary").text for group in form.all("details", class_="group")]
        sections = [each.doc.section for each in parameters_of(CouncilRequest)]
        assert titles == ["Question", *dict.fromkeys(sections)]

    def test_a_council_that_cannot_be_seated_says_why(self):
        """It is listed, disabled, with its problem beside it."""
        form = page().all("form")[0]

        [off] = [o for o in form.all("option") if "disabled" in o.attrs]
        assert off.text == "two <of> them"
        assert "OPENAI_API_KEY is not set" in form.text

    def test_the_demonstration_needs_one_click(self):
        """It asks the scripted council its own question."""
        form = page().all("form")[1]
        fields = {i.attrs["name"]: i.attrs["value"] for i in form.all("input")}

        assert fields == {"profile": "demo", "question": "Which zone?"}

    def test_members_of_the_chosen_council_can_be_selected(self):
        """They stand below it by name, its jurors beside them; those of others are hidden."""
        two = [
            Choice(
                name, name, members=(("ada", "ada"), (name, f"{name} (m)")), jury=(("pat", "pat"),)
            )
            for name in ("bob", "cyd")
        ]
        filled = FilledForm({"profile": "cyd", "members": "ada\ncyd", "jury": "ada\npat"})
        root = parsed(render_ask(two, demo_question="Which zone?", form=filled))

        hidden, shown = root.all("fieldset", class_="seat-chips")
        assert ("hidden" in hidden.attrs, "hidden" in shown.attrs) == (True, False)
        assert [label.text for label in shown.all("label")] == ["ada", "cyd (m)"]
        assert shown.one("span", class_="juror").text == "pat judges"
        ticked = [box.attrs["value"] for box in root.all("input", name="members", checked="")]
        assert ticked == ["ada", "cyd"]
        judges = root.one("fieldset", id="jury").all("input")
        assert [box.attrs["value"] for box in judges] == ["ada", "bob", "pat", "ada", "cyd", "pat"]
        assert ["checked" in box.attrs for box in judges] == [1, 0, 1, 0, 0, 0]
        writers = [o.attrs["value"] for o in root.one("select", id="chairman").all("option")]
        assert writers == ["", "ada", "bob", "pat", "cyd"]

    def test_a_refused_form_keeps_its_values(self):
        """The error is shown, and the question is not lost."""
        root = page(form=FilledForm({"question": "Why <so>?", "mode": "best"}, "say who sits"))

        assert root.one(role="alert").text == "say who sits."
        assert root.one("textarea", id="question").text == "Why <so>?"
        modes = root.one("select", id="mode").all("option")
        assert [o.attrs["value"] for o in modes if "selected" in o.attrs] == ["best"]
        assert not [each for each in root.all("details") if "open" in each.attrs]


def test_a_profile_that_cannot_be_seated_is_listed_by_name(tmp_path):
    """Its seats are unknown, and the reason follows the name."""
    file = write_config(
        tmp_path, '[profiles.lost]\nmembers = ["script:no.toml", "script:no.toml"]\n'
    )
    config = load_config({}, tmp_path, file, {}, origin="the test")
    with served(Councils(config, None)) as server:
        root = parsed(httpx2.get(server.url, headers={"Accept": "text/html"}, timeout=60).text)

    [option] = root.all("option", value="lost")
    assert option.text == "lost"
    [why] = [each.text for each in root.all("p", class_="quiet") if "lost" in each.text]
    assert why.startswith("lost: its configuration")
    assert "no.toml" not in why
    assert ": :" not in why
