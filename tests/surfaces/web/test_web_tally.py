"""The page that counts posted ballots, over real HTTP."""

import gzip
import json
from collections.abc import Mapping
from types import MappingProxyType

import click
import httpx2
import pytest

from markup import Element, parsed
from witan.service.catalogue import find_operation
from witan.service.parameters import parameters_of
from witan.surfaces.cli.tally import tally_command as tally

HTML = {"Accept": "text/html,application/xhtml+xml"}

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def browser(at_desk):
    """A client that acts like a browser."""
    with httpx2.Client(base_url=at_desk.url, headers=HTML, timeout=60) as opened:
        yield opened


OTHERS = {
    "a column per judge": "item,model,ada,bob,cy\nq,oak,9,8,9\nq,elm,5,4,3\n",
    "a column per model": "item;judge;oak;elm\nq;ada;8,5;4\nq;bob;9;3,5\nq;cy;9;4\n",
    "battles": "question_id,model_a,model_b,winner\n" + "q,oak,elm,model_a\n" * 3,
    "an imported session": json.dumps(
        {
            "witan_imported": 1,
            "session": "q",
            "ballots": [{"reviewer": f"r{n}", "ranking": ["oak", "elm"]} for n in range(3)],
        },
        indent=1,
    ),
}


def ballots(*sessions: str, names: tuple[str, ...] = ("oak", "elm", "ash")) -> str:
    """Three reviewers of one mind in each session, as JSON lines."""
    lines = [
        {"session": session, "reviewer": f"r{number}", "ranking": [*names]}
        for session in sessions
        for number in range(3)
    ]
    return "\n".join(map(json.dumps, lines))


def submit_ballots(
    browser: httpx2.Client,
    text: str = "",
    fields: Mapping[str, str] = MappingProxyType({}),
    *,
    rule: str = "auto",
    status: int = 200,
    **files: bytes,
) -> Element:
    """The page after sending the form like a browser, with an empty file field."""
    sent = [("file", (name, content)) for name, content in files.items()]
    response = browser.post(
        "/tally",
        data={"ballots": text, "rule": rule, **fields},
        files=sent or [("file", ("", b""))],
    )
    assert response.status_code == status, response.text[:400]
    assert "default-src 'self'" in response.headers["content-security-policy"]
    return parsed(response.text)


def rankings(root: Element) -> list[list[str]]:
    """Candidates of each ranking on a page, best first."""
    behind = [each for each in root.all("details", class_="behind") if each.all("table")]
    return [[cell.text for cell in each.all("th", scope="row")] for each in behind]


class TestForm:
    def test_the_navigation_links_to_it(self, browser):
        """And marks it as the current page."""
        link = parsed(browser.get("/").text).one("a", href="/tally")
        root = parsed(browser.get(link.attrs["href"]).text)

        assert link.text == root.one("a", aria_current="page").text == "Count ballots"
        assert root.one(id="ballots").attrs["name"] == "ballots"
        assert {"auto", "borda", "elo"} <= {o.attrs["value"] for o in root.all("option")}


class TestSettings:
    """How ballots are read and counted."""

    def test_the_form_has_every_option_of_the_command(self, browser):
        """Except for files."""
        root = parsed(browser.get("/tally").text)
        tags = ("select", "textarea", "input")
        named = {x.attrs["name"] for tag in tags for x in root.one("main").all(tag)}

        options = {option.name for option in tally.params if isinstance(option, click.Option)}
        # Of files, of this machine, of what is printed, and of what is drawn.
        elsewhere = {"strict", "weights_file", "as_json", "plot", "matchups"}
        elsewhere |= {"require_winner", "limit", "help", "history", "config"}
        assert options - elsewhere <= named
        assert {label.attrs["for"] for label in root.all("label")} == named

    def test_the_detected_scale_of_grades_is_reported(self, browser):
        """Grades within 0 and 1 are read as such, and the page says so."""
        graded = [{"reviewer": f"r{k}", "grades": {"oak": 0.9, "elm": k / 10}} for k in (3, 4)]
        root = submit_ballots(browser, "\n".join(map(json.dumps, graded)))

        assert "grades are read as 0-1" in root.one("main").text

    def test_settings_apply_and_stay_in_the_form(self, browser):
        """Those of reading, counting and intervals."""
        rows = ["session,judge,candidate,rank"]
        rows += [f"{s},{r},{c},{n}" for s in ("q1", "q2") for r in ("ada", "bob")
                 for n, c in enumerate(("oak", "elm"), start=1)]  # fmt: skip
        rows += ["q2,cyd,elm,1", "q2,cyd,oak,2"]
        fields = {
            "format": "csv",
            "columns": "reviewer=judge",
            "sessions": "q2",
            "weights": "cyd=3",
            "level": "0.9",
            "ties": "intervals",
            "rho": "none",
        }
        root = submit_ballots(browser, "\n".join(rows), fields, rule="borda")

        assert rankings(root) == [["elm", "oak"]]
        assert "90% interval" in root.one("table", class_="numbers").text
        _, settings = root.all("details", class_="more")
        assert "open" in settings.attrs
        held = {x.attrs["name"]: x.text for x in root.one("main").all("textarea")}
        held |= {x.attrs["name"]: x.attrs["value"] for x in root.one("main").all("input")
                 if "value" in x.attrs}  # fmt: skip
        held |= {
            x.attrs["name"]: option.attrs["value"]
            for x in root.one("main").all("select")
            for option in x.all("option")
            if "selected" in option.attrs
        }
        assert fields.items() <= held.items()

    @pytest.mark.parametrize(
        ("fields", "said"),
        [
            ({"format": "xml"}, "unknown format"),
            ({"columns": "judge"}, "columns cannot be"),
            ({"sessions": "q9"}, "q9"),
            ({"level": "high"}, "level"),
            ({"level": "2"}, "level"),
            ({"rho": "much"}, "Shared error of reviewers"),
            ({"rubric": "none"}, "unknown rubric"),
            ({"weights": "ada=heavy"}, "Weights of reviewers cannot be"),
            ({"parameters": "variant=roster"}, "a rule to go with it"),
            ({"parameters": "variant=" + "[" * 10_000}, "a rule to go with it"),
            ({"recusal": "never"}, "Recusal"),
        ],
    )
    def test_an_invalid_setting_is_named(self, browser, fields, said):
        """With the valid ones; the form keeps its values."""
        root = submit_ballots(browser, ballots("q1"), fields, status=422)

        assert said in root.one(role="alert").text
        assert root.one(id="ballots").text


class TestOtherReports:
    """The same ballots under every rule, and step by step."""

    def test_the_session_to_explain_is_a_visible_field(self, browser):
        """It stands beside the ballots."""
        root = parsed(browser.get("/explain").text)
        hidden = {each.attrs["id"] for each in root.one("details", class_="more").all("input")}

        assert root.one("input", id="session")
        assert "session" not in hidden

    @pytest.mark.parametrize("name", ["compare", "calibrate", "explain"])
    def test_the_form_has_every_parameter_of_the_operation(self, browser, name):
        """Each once, with a label."""
        root = parsed(browser.get(f"/{name}").text)
        tags = ("select", "textarea", "input")
        named = [x.attrs["name"] for tag in tags for x in root.one("main").all(tag)]

        parameters = [each.name for each in parameters_of(find_operation(name).parameters)]
        assert sorted(named) == sorted([*parameters, "file"])
        assert {label.attrs["for"] for label in root.all("label")} == {*named}

    @pytest.mark.parametrize(
        ("name", "fields", "said"),
        [
            ("compare", {"rules": "borda, irv"}, "oak leads under every rule, clearly under none."),
            ("explain", {"rule": "borda"}, "1. The ballots as cast"),
        ],
    )
    def test_its_report_stands_below_the_form(self, browser, name, fields, said):
        """In the words of the command."""
        answer = browser.post(f"/{name}", data={"ballots": ballots("q1"), **fields})

        assert answer.status_code == 200
        assert said in parsed(answer.text).one("main").text

    def test_one_of_several_sessions_must_be_selected(self, browser):
        """For an explanation."""
        answer = browser.post("/explain", data={"ballots": ballots("q1", "q2")})

        assert answer.status_code == 422
        assert "session" in parsed(answer.text).one(role="alert").text


class TestCounting:
    def test_each_session_has_its_ranking(self, browser):
        """Under the selected rule; the form keeps its values."""
        text = ballots("q1", "q2")
        root = submit_ballots(browser, text, rule="schulze")

        assert rankings(root) == [["oak", "elm", "ash"]] * 2
        assert {h.text for h in root.all("h2")} == {"q1", "q2"}
        assert "The rule schulze counted" in root.one("main").text
        assert root.one(id="ballots").text == " ".join(text.split())
        chosen = root.one(id="rule").all("option")
        assert [o.text for o in chosen if "selected" in o.attrs] == ["schulze"]

    def test_negative_numbers_have_a_typographic_minus(self, browser):
        """A grade below the mean is drawn below it and printed so in the table."""
        grades = "item,model,ada,bob,cy\nq,oak,9,8,9\nq,elm,5,4,3\n"
        root = submit_ballots(browser, grades, rule="calibrated")

        [table] = root.all("table", class_="numbers")
        assert table.all("tr")[2].all("td")[1].text.startswith("−")

    def test_ids_are_unique_over_several_sessions(self, browser):
        """And no link leads to a missing answer."""
        root = submit_ballots(browser, ballots("q1", "q2"))
        ids = [each.attrs["id"] for each in root.all() if "id" in each.attrs]

        assert len(ids) == len(set(ids))
        assert not [a for a in root.one("main").all("a") if a.attrs["href"].startswith("#")]

    @pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
    def test_a_file_is_counted_in_any_format(self, browser, packed):
        """CSV here, compressed or not."""
        rows = ["session,reviewer,candidate,rank", "q1,ada,oak,1", "q1,ada,elm,2"]
        root = submit_ballots(browser, **{"b.csv": packed("\n".join(rows).encode())})

        assert rankings(root) == [["oak", "elm"]]

    @pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
    def test_every_import_format_is_counted(self, browser, text):
        """On the page and over HTTP as by the command: a wide table or battles."""
        assert rankings(submit_ballots(browser, text)) == [["oak", "elm"]]

        sent = browser.post("/api/tally", content=text.encode(), headers={"Accept": "*/*"})
        [session] = sent.json()["sessions"]
        assert session["leaders"] == ["oak"]

    def test_an_unknown_table_gets_a_remedy(self, browser):
        """In terms of the form's fields, not of options."""
        text = "q,who,left,right,better\n1,gpt,x,y,x\n"
        sent = browser.post("/api/tally", content=text.encode(), headers={"Accept": "*/*"})

        assert sent.status_code == 422
        told = sent.json()["detail"]
        assert "columns reviewer=HEADER, outcome=HEADER, session=HEADER" in told
        assert "--" not in told

    def test_many_sessions_give_a_list_of_leaders(self, browser):
        """One line each, in place of rankings."""
        root = submit_ballots(browser, ballots(*(f"q{number:02}" for number in range(11))))
        rows = root.all("table", class_="numbers")[0].one("tbody").all("tr")

        assert not rankings(root)
        assert root.one("h1").text.startswith("11 sessions: ")
        assert [row.one("th").text for row in rows] == [f"q{number:02}" for number in range(11)]
        assert all(row.all("td")[0].text == "oak" for row in rows)

    def test_text_may_be_as_long_as_a_request(self, browser):
        """More than a megabyte here."""
        root = submit_ballots(browser, "\n".join([ballots("q1"), " " * 1_100_000, ballots("q2")]))

        assert len(rankings(root)) == 2

    def test_unreadable_lines_are_listed(self, browser):
        """The rest is counted."""
        root = submit_ballots(browser, f"{ballots('q1')}\nnonsense\n")

        assert rankings(root) == [["oak", "elm", "ash"]]
        [line] = root.one(aria_labelledby="h-not-read").all("li")
        assert line.text.startswith("line 4: is not JSON")

    def test_a_session_unfit_for_the_rule_is_named(self, browser):
        """With the reason and the remedy."""
        root = submit_ballots(browser, ballots("q1"), rule="range")

        assert root.one("h1").text == "Nothing counted."
        said = root.one(aria_labelledby="h-not-counted").text
        assert "needs grades" in said
        assert "'borda'" in said

    def test_names_are_escaped(self, browser):
        """Of candidates, reviewers and sessions."""
        text = ballots(HOSTILE, names=(HOSTILE, f"</textarea>{HOSTILE}"))
        for sent in (text, f"{text}\n{HOSTILE}", HOSTILE):
            body = browser.post("/tally", data={"ballots": sent}).text
            assert "<script>alert" not in body
            assert not parsed(body).all("img")
            assert HOSTILE in parsed(body).one("main").text


class TestErrors:
    """Ballots that cannot be counted at all."""

    @pytest.mark.parametrize(
        ("text", "rule", "status", "said"),
        [
            ("", "auto", 409, "no ballot was sent"),
            (" \n ", "auto", 409, "no ballot was sent"),
            ("hello there\n", "auto", 422, "not recognised as ballots"),
            (ballots("q1"), "loudest", 422, "unknown rule"),
            ("a\0b", "auto", 422, "NUL"),
        ],
        ids=["nothing", "blank", "no ballots", "rule", "nul"],
    )
    def test_an_error_is_shown_above_the_form(self, browser, text, rule, status, said):
        """The text is kept where possible."""
        root = submit_ballots(browser, text, rule=rule, status=status)

        assert said.casefold() in root.one(role="alert").text.casefold()
        if "\0" not in text:
            assert root.one(id="ballots").text == " ".join(text.split())

    def test_a_text_and_a_file_are_refused_together(self, browser):
        """One of them must be removed."""
        root = submit_ballots(
            browser, ballots("q1"), status=422, **{"b.jsonl": ballots("q2").encode()}
        )

        assert "in a file" in root.one(role="alert").text

    def test_a_file_without_ballots_is_refused(self, browser):
        """A picture, and an empty file."""
        assert (
            submit_ballots(browser, status=422, **{"a.png": b"\x89PNG\xff\0"})
            .one(role="alert")
            .text
        )
        said = submit_ballots(browser, status=409, **{"a.csv": b""}).one(role="alert").text
        assert said == "no ballot was sent."

    def test_another_origin_is_refused(self, browser):
        """As with every form."""
        sent = browser.post(
            "/tally", data={"ballots": "x"}, headers={"Origin": "https://evil.example"}
        )

        assert sent.status_code == 403
