"""The conversation around a session, on its page and on the form that asks."""

from markup import parsed
from sessions import Story
from witan.deliberation.ports import Message
from witan.deliberation.session import Session
from witan.service.sessions.councils import CouncilProfile
from witan.surfaces.web.rendering import Site, export_html, render_session
from witan.surfaces.web.session_page import FollowUp, question_again

TALK = (
    Message("system", "Be brief."),
    Message("user", "First?"),
    Message("assistant", "**One**, says GPT-4o."),
)


def story(**options) -> Session:
    """A session that ended, perhaps after a conversation."""
    told = Story("gpt-4o", "bob", question="And then?", **options)
    told.answers(**{"gpt-4o": "So.", "bob": "Not so."}).casts("gpt-4o: bob").casts("bob: gpt-4o")
    return Session.of([*told.closing("All told.").closed()])


def page(session: Session, **options):
    return parsed(render_session(session, site=Site(councils=(CouncilProfile(""),)), **options))


class TestBefore:
    """What a question continues stands above it."""

    def test_turns_are_shown_in_order(self):
        """The last question and answer in sight, the rest folded; a saved page has them, too."""
        session = story(conversation=TALK)
        for root in (page(session), parsed(export_html(session))):
            before = root.one(class_="before")
            assert before.one("p", class_="asked").text == "First?"
            assert before.one(class_="prose").one("strong").text == "One"
            assert before.all("details")[0].text.endswith("Instructions: Be brief.")

    def test_no_turns_show_nothing(self):
        assert not page(story()).all(class_="before")

    def test_authors_stay_hidden(self):
        """As everywhere on a page without names."""
        session = story(conversation=TALK)

        assert "GPT-4o" not in page(session).one(class_="before").text
        assert "GPT-4o" in page(session, show_names=True).one(class_="before").text


class TestAfter:
    """Follow-ups stand below the session."""

    def test_each_has_its_question_and_answer(self):
        """Markup in either is text."""
        later = FollowUp("s 2", "Why <b>so</b>?", "under way", "Since **<i>it</i>** is.")
        root = page(story(), follow_ups=[later, FollowUp("s3", "How?", "failed", "")])

        first, second = root.all(class_="follow-up")
        assert first.one("a").attrs["href"] == "/sessions/s%202"
        assert first.one("a").text == "Why <b>so</b>?"
        assert first.one(class_="prose").one("strong").text == "<i>it</i>"
        assert second.one(class_="facts").text == "failed"
        assert not second.all(class_="prose")

    def test_a_saved_page_has_no_form(self):
        assert not parsed(export_html(story())).all("textarea")

    def test_where_no_council_can_be_asked_there_is_no_form(self):
        assert not parsed(render_session(story())).all("textarea")


class TestAgain:
    """The form to edit a question and ask it again."""

    def test_a_follow_up_continues_the_same_session(self):
        session = story(parent="s0", relation="continued", conversation=TALK, category="trees")

        assert question_again(session, ()) == {
            "question": "And then?", "profile": "", "category": "trees", "parent": "s0",
        }  # fmt: skip

    def test_a_conversation_from_elsewhere_is_written_out(self):
        """As the form takes it."""
        values = question_again(story(conversation=TALK), ())

        assert values["conversation"].splitlines()[:2] == ["system: Be brief.", "user: First?"]
