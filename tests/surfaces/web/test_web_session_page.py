"""The page of a stored session: all of its data, and its actions."""

import re
from dataclasses import replace
from itertools import product
from urllib.parse import parse_qs, urlsplit

import pytest

from councils import council, member, members
from markup import Element, parsed
from sessions import Story, expense
from witan.core.blinding import Sheet
from witan.core.settings import Settings
from witan.core.tally import tally_sessions
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.procedure import Procedure
from witan.deliberation.session import Session
from witan.service.config.configuration import DEMO
from witan.service.sessions.councils import CouncilProfile
from witan.service.trust import session_trust
from witan.surfaces.report.names import SeatNames, find_seat
from witan.surfaces.report.outcome import agreed_and_contested
from witan.surfaces.report.session import RecountView
from witan.surfaces.web.rendering import Site, render_problem, render_session

SOMEBODY = Seat("eve", "test:eve", "test")

ANSWERS = {"ada": "Ada says.", "bob": "Bob says.", "cyd": "Cyd says."}


def events(**fields) -> Story:
    """Three members of one mind, each with its own text."""
    story = Story("ada", "bob", "cyd", **fields).answers(**ANSWERS)
    story.casts("ada: bob > cyd", positions={"bob": 2, "cyd": 1}, grades={"bob": 8, "cyd": 5})
    return story.casts("bob: ada > cyd").casts("cyd: ada > bob", notes="Ada is *clearer*.")


def closed(**fields) -> Session:
    return Session.of(
        events(**fields)
        .closing("So, by [A].", labels={"A": "bob", "B": "cyd", "C": "ada"})
        .closed()
    )


def page(session: Session, **options) -> Element:
    return parsed(render_session(session, **{"show_names": True, **options})).one("main")


class TestVerdict:
    """The banner of a session: what it comes to, and how far to trust that."""

    def test_it_stands_between_question_and_answer(self):
        """Question, verdict, answer, ranking, ballots, answers, run."""
        root = page(closed())

        headings = [each.text for tag in ("h1", "h2") for each in root.all(tag)]
        assert headings == [
            "Which?", "Verdict", "Answer", "Ranking", "Ballots", "Answers", "Run"
        ]  # fmt: skip

    def test_it_says_who_leads_and_what_would_change_it(self):
        """In a few words and a sentence."""
        ruling = page(closed()).one(class_="ruling")

        assert ruling.text == (
            "Too close to call. ada leads, 71% likely to be best; one ballot would change it."
        )

    def test_a_label_is_called_an_answer(self):
        """While names are hidden: no letter has been seen yet."""
        ruling = page(closed(), show_names=False).one(class_="ruling")

        assert re.match(r"Too close to call. Answer [ABC] leads, 71% likely", ruling.text)

    def test_its_three_figures_have_a_sentence_each(self):
        """Without votes of people the match with them is unknown."""
        chips = page(closed()).all("details", class_="chip")[:3]

        assert [each.one("summary").text for each in chips] == [
            "2 of 2 first places",
            "unknown match with people",
            "2.4 of 3 effective votes",
        ]
        assert [each.one("p").text for each in chips] == [
            "Ballots that place ada first, of those that rank it.",
            "Unknown until people vote on the same answers.",
            "Models tend to share mistakes: these reviewers are worth as much as this many "
            "independent ones, assuming a shared error of 0.12.",
        ]

    def test_it_says_each_number_once(self):
        """The probability is the headline's alone, and no sentence repeats its figure."""
        banner = page(closed()).one(class_="banner").text

        assert banner.count("71%") == 1
        assert banner.count("2.4") == 1
        assert banner.count("2 of 2") == 1

    def test_a_single_text_has_no_ballots_that_could_agree_on_the_first(self):
        """Its grade is the verdict."""
        story = Story("ada", "bob").answers(ada="A.").casts("bob: ada", grades={"ada": 8})
        chips = page(Session.of(story.closed())).all("details", class_="chip")

        assert all("agreement" not in each.text for each in chips)

    def test_the_rest_of_the_trust_line_is_folded(self):
        """Everything that the command line says is said here, too."""
        session = closed()

        facts = [part.text for part in page(session).one("ul", class_="trust").all("li")]
        assert facts == ["3 of 3 reviewers", "$0.070", "38 s"]
        assert set(facts) < set(session_trust(session).split(" · "))

    def test_what_is_missing_is_one_line_with_its_remedy(self):
        """The reason is folded; it is in red only where there is no outcome."""
        story = Story("ada", "bob", "cyd").answers(**ANSWERS).casts("ada: bob > cyd")
        story.casts("bob: ada > cyd").abstains("cyd", "late").closed("cyd cast no ballot")
        box = page(Session.of(story)).one(class_="shortfall")

        assert box.one("strong").text == "2 of 3 voted"
        assert box.all("button")[0].text == "Retry cyd"
        assert box.one("details").one("ul").text == "cyd cast no ballot"
        assert "fatal" not in box.attrs["class"]

    def test_without_an_outcome_it_is_red(self):
        """Nobody voted."""
        story = Story("ada", "bob").answers(ada="A.", bob="B.").abstains("ada", "late")
        root = page(Session.of(story.abstains("bob", "late").closed("no quorum", status="failed")))

        assert root.one(class_="ruling").one("strong").text == "No outcome."
        assert "fatal" in root.one(class_="shortfall").attrs["class"]

    def test_missing_parts_are_listed_once_above_the_final_answer(self):
        """While names are hidden, no order of seats reveals them."""
        story = Story("ada", "bob", "cyd", "dan").answers(ada="A.", bob="B.")
        story.tell(e.AnswerFailed, seat="cyd", reason="is lost", spent=expense())
        story.tell(e.AnswerFailed, seat="dan", reason="is lost", spent=expense())
        told_of = story.closed("cyd did not answer: is lost", "dan did not answer: is lost")
        root = page(Session.of(told_of), show_names=False)

        box = root.one(class_="shortfall")
        said = [each.text for each in box.all("li")]
        offered = [each.text for each in box.all("label")]
        unanswered = [each.one("h3").text for each in root.all("article", class_="absent")]
        assert len(said) == len(unanswered) == 2
        assert (said, offered, unanswered) == (sorted(said), sorted(offered), sorted(unanswered))

    @pytest.mark.parametrize(
        ("missing", "text"),
        [
            ("there is no verdict", "There is no verdict"),
            ("ada gave no grades", "ada gave no grades"),
        ],
    )
    def test_a_missing_part_begins_like_a_sentence(self, missing, text):
        """A seat's name keeps its letters."""
        box = page(Session.of(events().closed(missing))).one(class_="shortfall")

        assert text in box.text

    def test_a_complete_session_has_no_list_of_missing_parts(self):
        assert page(closed()).all(class_="shortfall") == []

    def test_an_interrupted_session_can_be_resumed(self):
        """Which is no failure: the line has one form, which resumes it."""
        box = page(Session.of(events())).one(class_="shortfall")

        assert box.one("strong").text == "Stopped or interrupted; finished calls are saved"
        assert "fatal" not in box.attrs["class"]
        assert box.one("form").attrs["action"] == "/sessions/s1/resume"

    def test_an_unasked_reviewer_did_not_abstain(self):
        """Only recorded abstentions are shown as such."""
        story = Story("ada", "bob", "cyd", "dan").answers(**ANSWERS, dan="Dan says.")
        story.casts("ada: bob > cyd > dan").abstains("bob", "timed out")
        sheet = Sheet("cyd", ("ada", "bob", "dan"), ("A", "B", "C"), "n")
        root = page(Session.of(story.tell(e.SheetDrawn, sheet=sheet)))

        rows = {row.one("th").text: row for row in root.one(class_="matrix").all("tr")[1:]}
        cells = {name: row.all(class_="abstained") for name, row in rows.items()}
        assert {name: " ".join(cell.text for cell in found) for name, found in cells.items()} == {
            "ada": "",
            "bob": "abstained timed out",
            "cyd": "did not finish",
            "dan": "not asked",
        }
        reviews = {one.one("h3").text: one.one("p").text for one in root.all(class_="review")}
        assert reviews["Review by dan"] == "not asked"

    def test_a_simulated_session_says_so_once(self):
        """On a ribbon above the question."""
        root = page(closed(simulated=True))

        assert root.text.casefold().count("simulated") == 1
        assert root.one("header", class_="ask").all()[0].attrs["class"] == "ribbon"

    def test_where_scripts_play_some_seats_those_are_marked(self):
        """The ribbon says that it is a part."""
        story = Story("ada", "bob")
        seats = (replace(story.seat("ada"), simulated=True), story.seat("bob"))
        story = Story("ada", "bob", seats=seats).answers(ada="A.", bob="B.").casts("ada: bob")
        root = page(Session.of(story.casts("bob: ada").closed()))

        assert root.one(class_="ribbon").text.startswith("Simulated in part")
        cards = {card.one("h3").text: card for card in root.all("article", class_="answer")}
        marks = {name: bool(card.all(class_="mark")) for name, card in cards.items()}
        assert {name.split()[-1]: mark for name, mark in marks.items()} == {
            "ada": True,
            "bob": False,
        }

    def test_a_session_without_an_outcome_says_why(self):
        """Below the quorum there is no ranking and no agreement."""
        story = Story("ada", "bob").answers(ada="A.", bob="B.").abstains("ada", "late")
        root = page(Session.of(story.abstains("bob", "late").closed("no quorum", status="failed")))

        assert all(fact in root.text for fact in ("fewer ballots", "the quorum"))
        assert root.all(class_="chart") == root.all(class_="chip")[:-1] == []


class TestRetry:
    """Failed seats."""

    def test_failed_seats_can_be_retried(self):
        """The form lists seats without an answer or a ballot, all selected."""
        story = Story("ada", "bob", "cyd").answers(ada="A.", bob="B.")
        story.tell(e.AnswerFailed, seat="cyd", reason="401 from its provider", spent=expense())
        story.casts("ada: bob").abstains("bob", "late").closed("cyd did not answer")

        root = page(Session.of(story))

        form = root.one("form", action="/sessions/s1/retry")
        boxes = form.all("input", type="checkbox")
        assert [box.attrs["value"] for box in boxes] == ["cyd", "bob"]
        assert all("checked" in box.attrs for box in boxes)
        assert "401 from its provider" in root.one(class_="absent").text

    def test_hidden_seats_have_labels(self):
        """The form shows no names; labels map back to seats."""
        story = Story("ada", "bob", "cyd").answers(ada="A.", bob="B.", cyd="C.")
        story.casts("ada: bob > cyd").abstains("bob", "late").casts("cyd: bob > ada")
        session = Session.of(story.closed("bob cast no ballot"))

        root = page(session, show_names=False)

        [box] = root.one("form", action="/sessions/s1/retry").all("input", type="checkbox")
        assert box.attrs["value"] == f"#{root.one(class_='shortfall').one('label').text}"
        assert find_seat(session, box.attrs["value"]) == "bob"
        assert find_seat(session, "bob") == "bob"
        assert find_seat(session, "#9") == "#9"


class TestFollowUp:
    @pytest.mark.parametrize(
        ("seats", "council"),
        [(("ada", "bob", "cyd"), ["fine"]), (("ada", "bob"), None), ((), None)],
        ids=["the same", "others", "none"],
    )
    def test_the_link_selects_the_council_of_the_session(self, seats, council):
        """If it can be seated, wherever its scripts are now; else the configured one."""
        session = closed(simulated=True)
        here = tuple(Seat(each, f"script:/elsewhere/{each}.toml", "script") for each in seats)
        site = Site(
            councils=(CouncilProfile(DEMO, seats=(SOMEBODY,)), CouncilProfile("fine", seats=here))
        )
        [link] = [a for a in page(session, site=site).all("a") if a.text == "Options and cost"]

        asked = parse_qs(urlsplit(link.attrs["href"]).query)

        assert (asked["parent"], asked.get("profile")) == ([session.id], council)

    def test_of_councils_with_equal_seats_the_same_settings_win(self):
        """They differ in how they deliberate."""
        session = closed()
        seats = session.opening.seats
        site = Site(
            councils=(
                CouncilProfile("other", seats=seats, procedure=Procedure(mode="best")),
                CouncilProfile("same", seats=seats, procedure=session.opening.procedure),
            )
        )

        assert "profile=same" in render_session(session, site=site)


class TestVeil:
    """Names are hidden until they are revealed."""

    def test_no_name_is_on_the_page(self):
        """Neither in text nor in attributes."""
        names = ("xenon", "yttrium", "zinc")
        story = Story(*names, notes=("zinc is seated twice",))
        story.answers(xenon="One.", yttrium="Two.")
        story.tell(e.AnswerFailed, seat="zinc", reason="zinc timed out", spent=expense())
        story.casts("xenon: yttrium").abstains("yttrium", "yttrium was late")
        story.closing("So.", chairman="xenon", labels={"A": "yttrium", "B": "xenon"})
        session = Session.of(story.closed("zinc did not answer", "yttrium cast no ballot"))

        html = render_session(session, show_names=False).casefold()

        assert not [name for name in names if name in html]
        assert all(name in render_session(session, show_names=True) for name in names)

    def test_labels_match_the_final_answer(self):
        """[A] in the text, on the card, in the ranking and in the matrix is one answer."""
        root = page(closed(), show_names=False)

        cards = {card.one("h3").text: card for card in root.all("article", class_="answer")}
        assert sorted(cards) == ["A", "B", "C"]
        assert "Bob says." in cards["A"].text
        [cite] = [a for a in root.one(id="answer").all("a") if a.text == "[A]"][:1]
        assert cite.attrs["href"] == f"#{cards['A'].attrs['id']}"
        leader = root.one("figure", class_="chart").all("a")[0]
        assert (leader.text, leader.attrs["href"]) == ("C", f"#{cards['C'].attrs['id']}")

    def test_the_order_of_the_seats_is_hidden(self):
        """Cards follow their ranks, rows their labels."""
        root = page(closed(), show_names=False)

        cards = [card.text.split(" ") for card in root.all("article", class_="answer")]
        ranks = [words[words.index("rank") + 1].rstrip(",") for words in cards]
        assert ranks == sorted(ranks)
        rows = [r.one("th").text for r in root.one("table", class_="matrix").one("tbody").all("tr")]
        assert rows == ["A", "B", "C"]

    def test_revealing_is_a_link_after_voting(self):
        """Both work without a script; once revealed, names can be hidden."""
        veil = page(closed(), show_names=False).one(class_="veil")
        links = [a.attrs["href"] for a in veil.all("a")]

        assert links == ["/sessions/s1/vote?seen=1", "/sessions/s1?reveal=1"]
        assert [a.text for a in page(closed()).one(class_="veil").all("a")] == ["Hide them"]

    def test_names_in_answers_are_masked(self):
        """As on a reviewer's sheet."""
        story = Story("ada-4", "bob").answers(**{"ada-4": "I am ada-4, so.", "bob": "No."})
        session = Session.of(story.casts("bob: ada-4").closed())

        assert "ada-4" not in render_session(session, show_names=False)
        assert "I am ada-4" in render_session(session, show_names=True)


class TestRanking:
    """Dots with intervals, in the boxes of their tiers."""

    def test_a_tie_shares_one_box_without_a_clear_leader(self):
        """The box says that its candidates are too close to call."""
        root = page(closed())
        drawn = root.one("figure", class_="chart").one("svg", class_="wide")

        words = [each.text for each in drawn.all("text")]
        assert words.count("too close to call") == len(drawn.all("rect", class_="box")) == 1
        assert "leads clearly" not in words

    def test_a_clear_leader_has_its_own_box(self):
        """The page says that it leads clearly."""
        names = [f"m{k}" for k in range(9)]
        story = Story(*names, "best", "worst")
        story.answers(**{name: f"{name}." for name in (*names, "best", "worst")})
        for name in names:
            rest = " = ".join(n for n in names if n != name)
            story.casts(f"{name}: best > {rest} > worst")
        root = page(Session.of(story.closed()))

        first, *others = root.one("svg", class_="wide").all("g", role="img")
        assert "leads clearly" in first.text
        assert not any("leads clearly" in each.text for each in others)

    def test_a_single_candidate_leads_nobody(self):
        """Without a rival nothing is clear."""
        story = Story("ada", "bob").answers(ada="A.", bob="B.").casts("ada: bob")
        root = page(Session.of(story.abstains("bob", "late").closed("bob cast no ballot")))

        assert "leads clearly" not in root.text

    def test_every_number_of_the_chart_is_accessible(self):
        """Each line is named with score and interval; a table repeats them."""
        root = page(closed())

        drawn = root.one("svg", class_="wide").all("g", role="img")
        table = root.one(id="ranking").one("table", class_="numbers")
        titles = [each.text for each in table.one("thead").all("th")]
        rows = [[cell.text for cell in row.all()] for row in table.all("tr")[1:]]
        assert len(drawn) == len(rows)
        for line, row in zip(drawn, rows, strict=True):
            spoken = line.all("title")[0].text
            assert all(row[titles.index(each)] in spoken for each in ("candidate", "score"))
            assert row[titles.index("95% interval")] in spoken

    def test_heads_of_the_numbers_are_explained_below_them(self):
        """Also under the pointer; the terminal's table has the heads alone."""
        root = page(closed()).one("section", id="ranking")
        heads = {each.text: each.attrs.get("title", "") for each in root.all("th", scope="col")}
        meanings = {each.one("dt").text: each.one("dd").text for each in root.one("dl").all("div")}

        assert {"p_best", "tier", "coverage"} <= meanings.keys()
        assert meanings["p_best"].startswith("Probability that another panel")
        assert {name: heads[name] for name in meanings} == meanings

    def test_a_recount_reports_a_change_of_leader(self):
        """With the former ranks."""
        session = closed()
        again = session.recount(without=["bob", "cyd"])

        root = page(session, recount=RecountView(again, ("bob", "cyd")))

        said = root.one(class_="recounted")
        assert said.text.startswith("Another leader: bob leads")
        assert "ada leads" in said.text
        assert "without bob and cyd" in said.text
        assert "was 2" in [each.text for each in root.one("figure", class_="chart").all("text")]

    def test_a_recount_with_the_same_leader_says_so(self):
        session = closed()
        root = page(session, recount=RecountView(session.recount("schulze")))

        assert root.one(class_="recounted").text.startswith("The same leader: ada leads")

    def test_a_recount_applies_to_the_whole_page(self):
        """Trust, contested pairs, and the notes at each answer."""
        session = closed()
        again = session.recount(without=["bob", "cyd"])
        shown, counted = (
            page(session, recount=RecountView(again, ("bob", "cyd"))),
            page(replace(session, outcome=again)),
        )

        for part in ("ruling", "sides", "answer"):
            one, other = ([*root.all(class_=part)] for root in (shown, counted))
            assert [each.text for each in one] == [each.text for each in other]
        facts = shown.one("ul", class_="trust").text
        assert "counted again by" in facts
        assert "1 of 1 reviewer" in facts

    def test_intervals_are_mentioned_only_where_they_exist(self):
        """Schulze has none, and its caption promises none."""
        session = closed()
        drawn = page(session, recount=RecountView(session.recount("borda")))
        bare = page(session, recount=RecountView(session.recount("schulze")))

        assert "Bars: 95% intervals" in drawn.one("figcaption").text
        assert "There are no intervals" in bare.one("figcaption").text

    def test_the_rule_is_selected_in_a_form(self):
        """Without a script; it keeps excluded reviewers and offers rules for rankings."""
        root = page(closed(), recount=RecountView(closed().recount(without=["bob"]), ("bob",)))
        form = root.one("form", id="recount")

        assert (form.attrs["method"], form.attrs["action"]) == ("get", "/sessions/s1#ranking")
        assert form.one("input", name="reveal").attrs["value"] == "1"
        checks = form.all("input", type="checkbox")
        assert [i.attrs["value"] for i in checks if "checked" in i.attrs] == ["bob"]
        rules = [option.text for option in form.all("option")]
        assert "schulze" in rules
        assert "elo" not in rules
        [chosen] = [o.text for o in form.all("option") if "selected" in o.attrs]
        assert chosen == closed().outcome.rule


class TestAgreedAndContested:
    """Agreed and contested pairs."""

    def test_dissent_names_its_reviewer(self):
        """The one who ranks another candidate above the leader."""
        story = Story("ada", "bob", "cyd", "dan")
        story.answers(ada="A.", bob="B.", cyd="C.", dan="D.")
        story.casts("ada: bob > cyd > dan").casts("bob: ada > cyd > dan")
        story.casts("cyd: dan > ada > bob").casts("dan: ada > bob > cyd")
        panel = page(Session.of(story.closed())).one(id="ranking")

        assert "cyd ranks dan above ada" in panel.text
        assert "too close to call" in panel.text

    def test_contested_pairs_exclude_ordered_ones(self):
        """No pair of two tiers is too close to call."""
        orders = ("bacedf", "abcdfe", "acbdfe", "bacfde", "acbdfe", "abcedf")
        story = Story(*"abcdef").answers(**{seat: f"{seat}." for seat in "abcdef"})
        for seat, order in zip("abcdef", orders, strict=True):
            story.casts(f"{seat}: {' > '.join(order.replace(seat, ''))}")
        session = Session.of(story.closed())
        assert session.outcome is not None
        found = agreed_and_contested(session.outcome, SeatNames.of(session, hides_names=False))

        open_pairs = {frozenset(pair) for pair in session.outcome.unresolved}
        tiers = {line.candidate: line.tier for line in session.outcome.standings}
        assert all(len({tiers[name] for name in pair}) == 1 for pair in open_pairs)
        apart = set()
        for said in dict(found.lists)["Agreed"]:
            above, _, below = (
                said.partition(", beyond noise")[0]
                .replace("stands", "stand")
                .partition(" stand above ")
            )
            names = [re.findall(r"\b[a-f]\b", each) for each in (above, below)]
            apart |= {frozenset(pair) for pair in product(*names)}
        assert apart
        assert not apart & open_pairs

    def test_pairs_are_one_map_of_chances(self):
        """The best first, each above those below it; what is too close to call is marked."""
        session = closed()
        ranking = page(session).one(id="ranking")
        table = ranking.one("table", class_="heat")
        first, second, third = (line.candidate for line in session.outcome.standings)

        assert [each.text for each in table.one("thead").all("th")] == [second, third]
        lines = table.one("tbody").all("tr")
        rows = [[each.text for each in (*row.all("th"), *row.all("td"))] for row in lines]
        chance = [round(100 * each) for each in session.outcome.p_beats[0][1:]]
        assert rows[0] == [first, *(f"≈{each}" for each in chance)]
        assert rows[1][:2] == [second, ""]
        assert ("3 of 3 pairs are too close to call: the order may be chance.") in ranking.text
        assert (
            f"Pair by pair, more ballots place {first} above each rival than below it; "
            f"against {second} and {third} that may be chance."
        ) in ranking.text

    def test_the_rule_and_why_it_was_chosen_are_a_sentence(self):
        """Above the chart."""
        ranking = page(closed()).one(id="ranking").text

        assert "The rule borda counted 3 ballots; it was asked for." in ranking


class TestMatrix:
    """Reviewer by candidate."""

    def test_it_promises_what_its_reviews_have(self):
        """Grades and reasons where there are any; without a ballot nothing."""
        story = Story("ada", "bob", "cyd").answers(**ANSWERS)
        bare = story.casts("ada: bob > cyd").casts("bob: ada > cyd").closed()
        texts = [
            page(each).one("section", id="ballots").text for each in (closed(), Session.of(bare))
        ]

        assert "opens the review, with its grades and its reasons." in texts[0]
        assert "opens the review." in texts[1]

    def test_a_cell_has_rank_grade_and_position(self):
        """Visible and as text for screen readers; one's own answer is hatched."""
        [ada, *_] = page(closed()).one("table", class_="matrix").one("tbody").all("tr")
        own, bob, cyd = ada.all("td")[:3]

        assert own.attrs["class"] == "own"
        assert own.one(class_="hear").text == "its own answer"
        assert "rank 1, grade 8.0, place 2" in bob.one(class_="hear").text
        assert "rank 2, grade 5.0, place 1" in cyd.one(class_="hear").text

    def test_an_abstention_has_its_reason(self):
        """In a row without a ballot."""
        story = Story("ada", "bob", "cyd").answers(**ANSWERS).casts("ada: bob > cyd")
        story.casts("bob: ada > cyd").abstains("cyd", "call timeout").closed("cyd")
        row = page(Session.of(story)).one(id="ballot-2")

        assert row.one(class_="abstained").text == "abstained call timeout"

    def test_a_click_opens_the_review_without_a_script(self):
        """Cells and reviewers are buttons for the sheet with notes, reading and raw reply."""
        root = page(closed())

        opens = {b.attrs["popovertarget"] for b in root.one("table", class_="matrix").all("button")}
        assert opens == {"review-0", "review-1", "review-2"}
        sheet = root.one(id="review-2")
        assert "popover" in sheet.attrs
        assert sheet.one("em").text == "clearer"
        assert "matches the schema" in sheet.text
        assert sheet.one("pre").text == "{}"
        assert [each.text for each in sheet.one("ol").all("li")] == [
            "A was ada",
            "B was bob",
            "C was cyd",
        ]

    def test_a_ballot_that_is_left_out_is_marked(self):
        """In its row, and by the switch of the form that leaves ballots out."""
        root = page(closed(), recount=RecountView(closed().recount(without=["bob"]), ("bob",)))
        rows = [root.one(id=f"ballot-{at}").one("th").text for at in range(3)]

        assert rows == ["ada", "bob left out", "cyd"]
        boxes = root.one(id="recount").all("input", type="checkbox")
        assert [(box.attrs["value"], "checked" in box.attrs) for box in boxes] == [
            ("ada", False),
            ("bob", True),
            ("cyd", False),
        ]

    def test_its_columns_are_sorted_by_rank(self):
        """In a cell stands the rank alone, the rest beside it for whoever points at it."""
        session = closed()
        table = page(session).one("table", class_="matrix")
        lines = session.outcome.standings

        assert [each.text for each in table.one("thead").all("th")] == [x.candidate for x in lines]
        own, bob, cyd = (page(session).one(id="ballot-0").all("td")[at] for at in (0, 1, 2))
        shown = [[part.text for part in cell.all("b")] for cell in (own, bob, cyd)]
        assert shown == [[], ["1"], ["2"]]
        assert bob.one("span", class_="rest").text == "place 2, grade 8.0"

    def test_a_review_is_a_heat_table_of_its_grades(self):
        """Answers by criteria in the page's labels, reasons below, the reply folded."""
        story = Story("ada", "bob", "cyd").answers(**ANSWERS)
        grades = {"bob": {"accuracy": 9, "clarity": 4}, "cyd": {"accuracy": 3, "clarity": 10}}
        story.casts("ada: bob > cyd", grades=grades, notes="[bob] is right, [cyd] is clear.")
        sheet = page(Session.of(story.closed())).one(id="review-0")

        table = sheet.one("table", class_="heat")
        rows = [[each.text for each in row.children] for row in table.all("tr")]
        assert rows[0] == ["answer", "accuracy", "clarity", "overall"]
        assert [row[:3] for row in rows[1:]] == [["bob", "9", "4"], ["cyd", "3", "10"]]
        shades = [
            [cell.attrs["class"][-1] for cell in row.all("td")[:2]] for row in table.all("tr")
        ]
        assert shades[1:] == [["5", "2"], ["2", "5"]]
        assert sheet.one(class_="prose").text == "[bob] is right, [cyd] is clear."
        assert sheet.one("details").one("pre").text == "{}"

    def test_a_repaired_review_shows_both_replies(self):
        """The unreadable one beside the repaired one."""
        story = Story("ada", "bob", "cyd").answers(**ANSWERS)
        story.tell(e.BallotRepaired, seat="ada", problem="it ranks nobody", reply="Hmm.")
        sheet = page(Session.of(story.casts("ada: bob > cyd").closed())).one(id="review-0")

        assert "asked again: it ranks nobody" in sheet.text
        assert [pre.text for pre in sheet.all("pre")] == ["Hmm.", "{}"]


class TestAnswers:
    def test_they_stand_in_the_order_of_their_ranks(self):
        """Under the labels and anchors that they had before."""
        root = page(closed(), show_names=False)

        shown = root.all("article", class_="answer")
        ranked = [a.text for a in root.one("figure", class_="chart").all("svg")[0].all("a")]
        assert [card.one("h3").text for card in shown] == ranked
        assert shown[0].attrs["id"] == "answer-2"

    def test_who_wrote_the_final_answer_stands_above_it(self):
        """So that it is read first, and nothing jumps when the text is whole."""
        answer = page(closed()).one(id="answer").text

        assert answer.index("written by") < answer.index("[A]")

    def test_a_citation_opens_the_answer(self):
        """Every label of the final answer links to a card on the page."""
        root = page(closed())
        ids = {each.attrs.get("id") for each in root.all("article")}

        targets = [a.attrs["href"] for a in root.all("a", class_="cite")]
        assert targets
        assert {target.removeprefix("#") for target in targets} <= ids

    def test_a_final_answer_says_that_nobody_judged_it(self):
        """The ballots are on the answers it is written from; a verdict is its chairman's own."""
        bylines = [
            page(Session.of(told_of)).one(class_="byline").text
            for told_of in (
                events().closing("So.").closed(),
                events().closing("No.", mode="verdict", approved=False).closed(),
            )
        ]

        judged = "from the answers; the reviewers judged those, not this text"
        assert [judged in each for each in bylines] == [True, False]

    def test_a_single_answer_stands_for_the_final_answer(self):
        """There is nothing to rank."""
        story = Story("ada").answers(ada="Only this.")
        root = page(Session.of(story.closed("one answer alone")))

        assert "Only this." in root.one(id="answer").text
        assert root.all(class_="veil") == []

    def test_a_verdict_stands_once_above_its_reasons(self):
        """In the mode verdict, approved or rejected is the headline of the page."""
        told_of = events().closing("No.", mode="verdict", approved=False).closed()
        root = page(Session.of(told_of))

        assert root.one(class_="ruling").one("strong").text == "Rejected."
        assert "ejected" not in root.one(id="answer").text

    def test_a_card_names_the_answers_it_is_too_close_to(self):
        """The rank alone would claim too much."""
        cards = page(closed()).all("article", class_="answer")

        assert [card.one(class_="facts").all("span")[0].text for card in cards] == [
            "rank 1, too close to call against bob and cyd",
            "rank 2, too close to call against ada and cyd",
            "rank 3, too close to call against ada and bob",
        ]

    def test_a_rank_without_ties_has_no_addition(self):
        seats = "abcdefgh"
        alone = Procedure(counting=Settings(prior="none", rho="none"))
        story = Story(*seats, procedure=alone).answers(**{seat: f"{seat}." for seat in seats})
        for seat in seats:
            story.casts(f"{seat}: {' > '.join(seats.replace(seat, ''))}")
        first = page(Session.of(story.closed())).all("article", class_="answer")[0]

        assert first.one(class_="facts").all("span")[0].text == "rank 1"

    def test_a_long_answer_can_be_expanded(self):
        """And collapsed again; without a script, its length decides."""
        story = Story("ada", "bob").answers(ada="So. " * 200, bob="So.")
        long, short = page(Session.of(story.closed())).all("article", class_="answer")

        assert [a.attrs["href"] for a in long.all("a", class_="whole")] == ["#answer-0", "#answers"]
        assert not long.all("p", class_="likely-whole")
        assert short.one("p", class_="likely-whole")


class TestStructure:
    def test_scrolling_boxes_are_keyboard_accessible(self):
        """Each is a named region with focus."""
        boxes = page(closed()).all(class_="matrix-box")

        assert boxes
        assert {(x.attrs["role"], x.attrs["tabindex"]) for x in boxes} == {("region", "0")}
        assert all(x.attrs["aria-label"] for x in boxes)

    def test_a_session_without_answers_has_no_empty_parts(self):
        """No table without a column, no numbers without a ranking."""
        story = Story("ada", "bob")
        for seat in story.seats:
            story.tell(e.AnswerFailed, seat=seat, reason="is lost", spent=expense())
        root = page(Session.of(story.closed("all", status="failed")))

        assert root.all("dl", class_="figures") == []
        assert root.all("table", class_="standings") == root.all("table", class_="matrix") == []
        assert "no answer to judge" in root.one(id="ballots").text

    def test_ids_are_unique_and_references_resolve(self):
        """Labels, popovers and anchors lead to elements of the page."""
        root = parsed(render_session(closed()))
        ids = [x.attrs["id"] for x in root.all() if "id" in x.attrs]

        assert len(ids) == len(set(ids))
        for element in root.all():
            for key in ("aria-labelledby", "popovertarget", "for"):
                assert element.attrs.get(key, ids[0]) in ids
            if element.attrs.get("href", "").startswith("#"):
                assert element.attrs["href"][1:] in ids

    def test_the_page_has_one_h1_and_landmarks(self):
        """The question is the h1; there are header, navigation, main and footer."""
        root = parsed(render_session(closed()))

        assert root.one("h1").text == "Which?"
        for landmark in ("header", "nav", "main", "footer"):
            assert root.all(landmark)

    def test_a_problem_has_a_page(self):
        """With the error and its remedy, all escaped."""
        root = parsed(render_problem("No such session", "there is no session <b>", status=404))

        assert root.one(role="alert").text == "there is no session <b>."

    def test_names_in_addresses_are_encoded(self):
        """A session may have any name."""
        story = Story("ada", "bob", session="a/b?c #d").answers(ada="A.", bob="B.")
        root = page(Session.of(story), show_names=False)

        assert root.one(class_="veil").all("a")[-1].attrs["href"] == (
            "/sessions/a%2Fb%3Fc%20%23d?reveal=1"
        )


class TestRealSessions:
    """Sessions of a council."""

    @pytest.mark.anyio
    async def test_a_mirrored_session_shows_both_orders(self):
        """Both replies, and how many pairs the reviewer reversed."""
        seated = [*members("abc", "cab"), member("d", "abc")]
        async with council(seated, [member("chair")], mirrored=True) as sitting:
            session = await sitting.ask("Which sea?")

        root = page(session)

        sheet = root.one(id="review-0")
        assert len(sheet.all("pre")) == 2
        assert "differently on the mirrored sheet" in sheet.text

    @pytest.mark.anyio
    async def test_labels_are_stable_before_the_final_answer(self):
        """Label A during the ballots is label A in the final answer."""
        async with council(members("abcde", "cabde"), [member("chair")]) as sitting:
            session = await sitting.ask("Which sea?")
        before = [x for x in session.events if not isinstance(x, e.SynthesisDone | e.SessionClosed)]

        def cards(of: Session) -> list[str]:
            return [card.text[:20] for card in page(of, show_names=False).all(class_="answer")]

        assert cards(Session.of(before)) == cards(session)

    def test_people_who_voted_are_not_seats(self):
        """A recount with a person's ballot shows the panel's rows alone."""
        session = closed()
        [outcome] = tally_sessions(session.ballots, Settings.of("borda"))

        assert page(session, recount=RecountView(outcome)).all("tr", id="ballot-2")

    @pytest.mark.parametrize(
        ("juries", "simulated", "offered"),
        [
            (("", "fine", "demo"), False, ["", "fine"]),
            (("", "demo"), True, ["", "demo"]),
            (("demo",), False, []),
            ((), True, []),
        ],
    )
    def test_juries_of_scripts_are_offered_only_for_scripted_answers(
        self, juries, simulated, offered
    ):
        """Without a jury to select there is no form."""
        root = page(
            closed(simulated=simulated), site=Site(councils=tuple(map(CouncilProfile, juries)))
        )
        forms = [f for f in root.all("form") if f.attrs["action"].endswith("/rejudge")]

        assert [o.attrs["value"] for f in forms for o in f.all("option")] == offered
        assert bool(forms) == bool(offered)
