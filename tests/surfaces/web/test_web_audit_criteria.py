"""A reviewer's grades per criterion, on its page and over HTTP."""

import httpx2
import pytest

from desks import write_desk
from markup import parsed
from served import served
from services import councils
from stored_ballots import graded, store_sessions
from witan.history import History


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server whose history has grades per criterion."""
    folder = tmp_path_factory.mktemp("graded")
    place = store_sessions(folder / "history.sqlite", graded(40))
    with (
        History.open(place) as history,
        served(councils(write_desk(folder), history)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        yield opened


def fetch_counted(client, path):
    """The page at a path with its counted report."""
    html = {"Accept": "text/html"}
    waiting = parsed(client.get(path, headers=html).text)
    [on] = waiting.one("noscript").all("meta")
    return parsed(client.get(on.attrs["content"].removeprefix("0; url="), headers=html).text)


def test_a_reviewer_s_page_has_a_table_per_criterion(client):
    """Value, interval and sample size; outliers are marked."""
    root = fetch_counted(client, "/audit?reviewer=elm")

    assert [title.text for title in root.all("h2")] == ["On accuracy", "On clarity"]
    clarity = root.one("section", aria_labelledby="h-criterion-2").all("table")[0]
    rows = {row.one("th").text: row for row in clarity.all("tr")[1:]}
    assert rows["mean"].all("td")[0].text == "8.00"
    flat = rows["flat"].text
    assert "stands out" in flat
    assert "0.94 to 1.00" in flat
    assert "40 ballots" in flat


def test_reviewers_without_enough_data_are_folded(tmp_path):
    """Also where none has enough for any measure of a table."""
    place = store_sessions(tmp_path / "history.sqlite", graded(3))
    with (
        History.open(place) as history,
        served(councils(write_desk(tmp_path), history)) as server,
        httpx2.Client(base_url=server.url, timeout=60) as opened,
    ):
        agree = fetch_counted(opened, "/audit").one("section", aria_labelledby="h-agree")
    folded = [table for fold in agree.all("details") for table in fold.all("table")]

    assert "reviewers without enough data" in agree.all("summary")[0].text
    assert agree.all("table") == folded != []


def test_criteria_are_drawn_without_measures_that_lack_data(client):
    """Answers of unknown length have no axis for it."""
    criteria = fetch_counted(client, "/audit").one("section", aria_labelledby="h-criteria")
    words = [each.text for each in criteria.all("svg")[0].all("text")]

    assert "variance" in words
    assert "length" not in words


def test_the_report_over_http_has_criteria(client):
    """For all reviewers and for one."""
    everybody = client.get("/api/audit").json()
    alone = client.get("/api/audit?reviewer=elm").json()

    for line in (*everybody["reviewers"], *alone["reviewers"]):
        assert [found["criterion"] for found in line["criteria"]] == ["accuracy", "clarity"]
    assert alone["reviewers"][0]["criteria"][1]["flat_rate"]["value"] == 1.0


def test_a_criterion_has_a_page_linked_from_the_audit(client):
    """It compares all reviewers, and each row links to the reviewer's grades."""
    links = [a.attrs["href"] for a in fetch_counted(client, "/audit").all("a")]
    assert "/audit?criterion=clarity" in links
    root = fetch_counted(client, "/audit?criterion=clarity")
    alone = fetch_counted(client, "/audit?criterion=clarity&reviewer=elm")

    assert root.one("h1").text == "How the reviewers grade clarity"
    rows = {row.one("a").text: row for row in root.one("table", class_="audited").all("tr")[1:]}
    assert list(rows) == ["ash", "elm", "oak"]
    assert rows["elm"].one("a").attrs["href"] == "/audit?reviewer=elm&criterion=clarity"
    assert alone.one("h1").text == "How elm grades clarity"
    measured, without_data = alone.all("table")
    assert "mean" in measured.text
    assert "own" in without_data.text


@pytest.mark.parametrize("path", ["/audit", "/audit?criterion=clarity"])
def test_headers_of_the_audit_are_words(client, path):
    """A long header may break at its minus, without an entity in the text."""
    heads = [each.text for each in fetch_counted(client, path).all("th", scope="col")]

    assert any("−" in head for head in heads)
    assert not [head for head in heads if "\\" in head]


def test_one_criterion_can_be_requested_over_http(client):
    """As on the command line; an unknown one is refused, on the page, too."""
    told = client.get("/api/audit?criterion=clarity").json()
    refused = client.get("/api/audit?criterion=clarty")

    alone = client.get("/api/audit?criterion=clarity&reviewer=elm").json()

    assert told["criterion"]["criterion"] == "clarity"
    assert [each["reviewer"] for each in told["criterion"]["graders"]] == ["ash", "elm", "oak"]
    assert alone["criterion"]["graders"] == [told["criterion"]["graders"][1]]
    assert refused.status_code == 422
    assert "did you mean 'clarity'?" in refused.json()["detail"]
    page = client.get("/audit?criterion=clarty&show=whole", headers={"Accept": "text/html"})
    assert page.status_code == 422
    assert "did you mean" in page.text
