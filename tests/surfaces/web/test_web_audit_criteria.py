"""How a reviewer grades on each criterion: on its page, and over HTTP."""

import httpx2
import pytest

from chambers import seatings
from desks import write_desk
from kept_ballots import graded, kept
from markup import parsed
from served import served
from witan.adapters.history import History


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client of a server whose history has grades on criteria."""
    folder = tmp_path_factory.mktemp("graded")
    place = kept(folder / "history.sqlite", graded(40))
    with (
        History.open(place) as history,
        served(seatings(write_desk(folder), history)) as server,
        httpx2.Client(base_url=server.url, timeout=20) as opened,
    ):
        yield opened


def test_the_page_of_a_reviewer_has_a_table_for_each_criterion(client):
    """Value, interval and what it rests on; what stands out is marked."""
    html = {"Accept": "text/html"}
    waiting = parsed(client.get("/audit?reviewer=elm", headers=html).text)
    [on] = waiting.one("noscript").all("meta")
    counted = on.attrs["content"].removeprefix("0; url=")
    root = parsed(client.get(counted, headers=html).text)

    assert [title.text for title in root.all("h2")] == ["On accuracy", "On clarity"]
    clarity = root.all("table", class_="measures")[-1]
    rows = {row.one("th").text: row for row in clarity.all("tr")[1:]}
    assert rows["mean"].all("td")[0].text == "8.00"
    flat = rows["flat"].text
    assert "stands out" in flat
    assert "0.94 to 1.00" in flat
    assert "40 ballots with two grades or more" in flat


def test_criteria_are_in_the_report_over_http(client):
    """For every reviewer, and for one alone."""
    everybody = client.get("/api/audit").json()
    alone = client.get("/api/audit?reviewer=elm").json()

    for line in (*everybody["reviewers"], *alone["reviewers"]):
        assert [found["criterion"] for found in line["criteria"]] == ["accuracy", "clarity"]
    assert alone["reviewers"][0]["criteria"][1]["flat_rate"]["value"] == 1.0
