"""A person votes on the page: by pairs, by keys, without scripts, on a phone."""

import re

import httpx2
import pytest

from browsers import AXE, NEEDS
from witan.core.ballot import Ballot
from witan.history.ballots import prepare_paper
from witan.service.operations.ask import QuestionRequest
from witan.service.operations.voting import NAMED_NOTE

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

expect = sync_api.expect

pytestmark = NEEDS

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def session(at_desk):
    """A finished session of three answers."""
    running = at_desk.server.portal.call(at_desk.server.service.start, QuestionRequest("Is it so?"))
    at_desk.server.portal.call(running.wait_for_session)
    return running.id


def vote_of(at_desk, session, person):
    """The stored ballot of a person."""
    [vote] = [each for each in at_desk.history.ballots(session) if each.reviewer == person]
    return vote


@pytest.fixture(scope="module")
def hanging(at_desk):
    """A session whose reviewers never answer."""
    running = at_desk.server.portal.call(
        at_desk.server.service.start, QuestionRequest("So (hang)?")
    )
    yield running.id
    running.cancel()


def cast_by_pairs(page):
    """Choose the left answer of every pair, and cast the vote."""
    while page.locator(".duel").count():
        page.get_by_role("button", name="is better").first.click()
    page.locator(".ranked").get_by_role("button", name="Cast the vote").click()


def press(page, key):
    """Press a key that leads to another page."""
    with page.expect_navigation():
        page.keyboard.press(key)


class TestPairs:
    """Two blind answers side by side, until the ranking is clear."""

    def test_choices_between_pairs_become_a_ranking_to_look_at(self, window, session, at_desk):
        """Labels alone are shown; the ranking is cast by a button of its own."""
        here = window()
        page = here.open(f"/sessions/{session}/vote?as=zoe")
        expect(page.locator(".duel .answer")).to_have_count(2)
        expect(page.locator("main")).not_to_contain_text(re.compile(r"too close|leads|\bbob\b"))
        here.shoot("vote-pair")
        while page.locator(".duel").count():
            page.get_by_role("button", name="is better").first.click()
        expect(page.locator(".ranked")).to_contain_text("Your choices:")
        here.shoot("vote-ranked")
        page.locator(".ranked").get_by_role("button", name="Cast the vote").click()
        expect(page.locator("main").get_by_role("status")).to_contain_text("Your vote is saved")

        assert [len(group) for group in vote_of(at_desk, session, "zoe").groups] == [1, 1, 1]
        assert vote_of(at_desk, session, "zoe").notes is None

    @pytest.mark.slow
    def test_keys_choose_and_going_back_undoes(self, window, session):
        """Enter says equal, arrows say which is better; Enter on a link follows the link."""
        page = window().open(f"/sessions/{session}/vote?as=kim")
        press(page, "Enter")
        expect(page).to_have_url(re.compile("pair=A%3DB#pair$"))
        page.go_back()
        press(page, "ArrowRight")
        press(page, "ArrowLeft")
        expect(page).to_have_url(re.compile("pair=A%3CB&pair="))
        page.get_by_role("link", name="Undo").focus()
        press(page, "Enter")
        expect(page).to_have_url(re.compile("pair=A%3CB#pair$"))

    @pytest.mark.slow
    def test_a_skipped_pair_decides_nothing(self, window, session):
        """Who skips all of them gives places instead."""
        page = window().open(f"/sessions/{session}/vote?as=kim")
        while page.locator(".duel").count():
            expect(page.get_by_text("0 of 3 pairs decided")).to_be_visible()
            page.get_by_role("button", name="Skip this pair").click()
        expect(page.locator(".ranked")).to_contain_text("skipped every pair")
        expect(page.get_by_label("Rank of A")).to_have_value("")

    @pytest.mark.slow
    def test_pairs_are_a_form_without_scripts(self, window, session, at_desk):
        """Every choice is a button that sends the form, and keys are not promised."""
        page = window(java_script_enabled=False).open(f"/sessions/{session}/vote?as=pen&seen=1")
        expect(page.locator(".choices .key").first).to_be_hidden()
        page.get_by_role("button", name="Equal").click()
        page.get_by_role("button", name="is better").last.click()
        page.locator(".ranked").get_by_role("button", name="Cast the vote").click()
        expect(page.locator("main").get_by_role("status")).to_contain_text("Your vote is saved")

        assert len(vote_of(at_desk, session, "pen").groups) == 2
        assert "after the page of the session was seen" in vote_of(at_desk, session, "pen").notes

    @pytest.mark.slow
    def test_a_phone_shows_both_answers_and_the_choice_at_once(self, window, session):
        """After the first pair without scrolling."""
        here = window(**PHONE)
        page = here.open(f"/sessions/{session}/vote?as=kim")
        page.get_by_role("button", name="Equal").tap()
        expect(page).to_have_url(re.compile("#pair$"))
        for each in [*page.locator(".duel .answer").all(), page.locator(".choices")]:
            expect(each).to_be_in_viewport(ratio=0.95)
        expect(page.locator(".choices .key").first).to_be_hidden()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        here.shoot("vote-pair-phone")

    @pytest.mark.parametrize("pair", ["A>Z", "A", "A>A", "<script>"])
    def test_a_choice_that_is_none_is_refused(self, at_desk, session, pair):
        """With the labels that there are."""
        address = f"{at_desk.url}/sessions/{session}/vote"
        code = prepare_paper(at_desk.history, session, "kim").code
        given = {"as": "kim", "paper": code, "pair": pair}
        reply = httpx2.get(address, params=given, timeout=60)

        assert reply.is_client_error
        assert "two of the labels A, B, C" in reply.text


class TestComparison:
    """The person's ranking beside the panel's, after the vote."""

    @pytest.mark.slow
    def test_it_says_where_the_two_differ_and_what_was_clear(self, window, session, at_desk):
        """In pairs, whose authors are named now."""
        here = window()
        code = prepare_paper(at_desk.history, session, "max").code
        page = here.open(f"/sessions/{session}/vote?as=max&paper={code}&all=1&pair=A>B")
        places = {}
        for label in "ABC":
            card = page.locator(".answer", has=page.get_by_label(f"Rank of {label}"))
            name = re.search("ada|bob|cyd", card.locator(".prose").inner_text().lower()).group()
            places[name] = label
        for place, name in enumerate(["cyd", "ada", "bob"], start=1):
            page.get_by_label(f"Rank of {places[name]}").select_option(str(place))
        page.locator(".ballot").get_by_role("button", name="Cast the vote").click()

        here.shoot("you-and-the-panel")
        expect(page.locator("main").get_by_role("status")).to_contain_text("on 0 of 3 pairs")
        section = page.locator("section", has=page.get_by_role("heading", name="You and the panel"))
        expect(section).to_contain_text(re.compile("clear to the panel|too close to call"))
        expect(section.locator("tbody tr").first).to_contain_text("cyd")
        differ = page.locator("section", has=page.get_by_role("heading", name="Where you differ"))
        expect(differ.get_by_role("listitem")).to_have_count(3)
        expect(differ).to_contain_text("You place cyd above bob, the panel bob above")


class TestWhileBallotsArrive:
    """A vote while the council reviews, and what follows at its end."""

    def test_a_reader_of_the_live_page_votes_blind(self, window, at_desk, hanging):
        """The way there appears with the answers; the panel stays out of sight until the end."""
        here = window()
        page = here.open(f"/sessions/{hanging}")
        here.shoot("live-blind")
        page.get_by_role("link", name="Vote blind while the council reviews").click()
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("button", name="Show the answers").click()
        cast_by_pairs(page)

        expect(page.locator("main").get_by_role("status")).to_contain_text("is still running")
        expect(page.locator("main")).not_to_contain_text("The panel (")
        here.shoot("vote-kept-open")
        assert vote_of(at_desk, hanging, "ann").notes is None
        page.get_by_role("link", name="Watch the council").click()
        expect(page.locator("#ballots")).to_be_visible()

    @pytest.mark.slow
    def test_the_vote_is_compared_once_the_session_ends(self, window, at_desk):
        """The page that waits follows by itself."""
        here = window()
        portal, service = at_desk.server.portal, at_desk.server.service
        running = portal.call(service.start, QuestionRequest("Is it (slowly)?"))
        page = here.open(f"/sessions/{running.id}")
        page.get_by_role("link", name=re.compile("^Vote ")).click()
        page.get_by_label("Your name").fill("ann")
        page.get_by_role("button", name="Show the answers").click()
        expect(page.locator(".duel")).to_be_visible()
        cast_by_pairs(page)
        expect(page.get_by_role("heading", name="You and the panel")).to_be_visible()

        assert len(vote_of(at_desk, running.id, "ann").groups) == 3

    @pytest.mark.slow
    def test_who_is_early_waits_for_the_answers(self, window, at_desk):
        """Without a script, too."""
        portal, service = at_desk.server.portal, at_desk.server.service
        running = portal.call(service.start, QuestionRequest("Is it so (slowly)?"))
        page = window(java_script_enabled=False).open(f"/sessions/{running.id}/vote?as=kim")
        expect(page.locator("main")).to_contain_text("of 3 answers so far")
        expect(page.locator(".duel")).to_be_visible()

    @pytest.mark.slow
    def test_ballots_that_were_seen_are_noted(self, window, at_desk):
        """The link of the live page says so once the first has arrived."""
        portal, service = at_desk.server.portal, at_desk.server.service
        running = portal.call(service.start, QuestionRequest("Is it then (open)?"))
        page = window().open(f"/sessions/{running.id}")
        page.locator("#blind a[href*=seen]").click()
        page.get_by_label("Your name").fill("joy")
        page.get_by_role("button", name="Show the answers").click()
        expect(page.locator("main")).to_contain_text("You have seen ballots of the panel")
        cast_by_pairs(page)
        expect(page.locator("main").get_by_role("status")).to_contain_text("Your vote is saved")

        assert "ballots of the panel were seen" in vote_of(at_desk, running.id, "joy").notes
        running.cancel()


class TestRecord:
    """A person's votes beside the panels, over time."""

    @pytest.fixture(scope="class")
    def voted(self, at_desk):
        """Votes of one person on ten sessions, and one that is not blind."""
        for number in range(11):
            session = f"held{number:02}"
            order = at_desk.history.session(session).outcome.ranking
            groups = order if number % 3 else order[::-1]
            note = NAMED_NOTE if number == 10 else None
            vote = Ballot("una", groups, session=session, kind="human", notes=note)
            at_desk.history.vote(session, [vote])

    @pytest.mark.slow
    @pytest.mark.usefixtures("voted")
    def test_it_says_how_often_person_and_panel_agree_and_on_what_that_rests(self, window):
        """With intervals, over time, and what was left out."""
        here = window()
        page = here.open("/votes?as=una")
        here.shoot("votes")
        expect(page.locator("h1")).to_contain_text(
            re.compile(r"una and the panels agree on \d+% of")
        )
        expect(page.locator("main")).to_contain_text("1 vote not known to be blind: not compared")
        expect(page.locator(".measures tbody tr")).to_have_count(4)
        expect(page.locator("figure svg:visible")).to_have_count(1)
        section = page.locator("section", has=page.get_by_role("heading", name="Latest votes"))
        expect(section.locator("tbody tr")).to_have_count(10)
        section.get_by_role("link").first.click()
        expect(page).to_have_url(re.compile("/sessions/held00$"))

    @pytest.mark.slow
    @pytest.mark.usefixtures("voted")
    def test_a_phone_needs_no_sideways_scrolling(self, window):
        """Nor a script."""
        page = window(**PHONE, java_script_enabled=False).open("/votes?as=una&show=whole")
        expect(page.locator(".measures tbody tr")).to_have_count(4)
        here = window(**PHONE)
        page = here.open("/votes?as=una")
        here.shoot("votes-phone")
        latest = page.get_by_role("region", name="Latest votes, scrollable")
        expect(latest.get_by_role("rowheader").first).to_have_text("Which of the five?")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert latest.evaluate("box => box.scrollWidth <= box.clientWidth")

    @pytest.mark.slow
    def test_the_way_there_is_on_the_history_and_after_a_vote(self, window, session):
        """Who has no name yet is asked for one; who has no vote is told so."""
        page = window().open("/history")
        page.get_by_role("link", name="Compare your votes with the panels’").click()
        page.get_by_label("Your name").fill("nobody at all")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("main")).to_contain_text("no vote by nobody at all")
        page = window().open(f"/sessions/{session}/vote?as=lea")
        cast_by_pairs(page)
        page.get_by_role("link", name="Your votes over time").click()
        expect(page.locator("main")).to_contain_text("1 vote on simulated sessions: not compared")


@pytest.mark.slow
@pytest.mark.skipif(not AXE, reason="TEST_AXE names no axe.min.js")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_every_state_of_a_vote_is_accessible(window, session, hanging, theme, width):
    """Pairs, ranking, comparison, a vote that waits, and the record of votes."""
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": theme}
    here = window(**options, bypass_csp=True)
    person = f"axe-{theme}-{width}"
    found = {}
    for name in (session, hanging):
        page = here.open(f"/sessions/{name}/vote?as={person}&seen=1")
        found["pair", name] = here.violations()
        while page.locator(".duel").count():
            page.get_by_role("button", name="is better").first.click()
        found["ranked", name] = here.violations()
        page.locator(".ranked").get_by_role("button", name="Cast the vote").click()
        page.get_by_role("status").first.wait_for()
        found["cast", name] = here.violations()
    here.open("/votes?as=una")
    found["record"] = here.violations()
    here.open("/votes")
    found["name"] = here.violations()

    assert {state: problems for state, problems in found.items() if problems} == {}
