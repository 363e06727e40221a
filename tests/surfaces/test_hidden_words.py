"""Which parts of a seat and of a sentence are shown to clients."""

from datetime import UTC, datetime

import pytest

from sessions import Story, expense
from witan.core.ballot import Ballot
from witan.core.session_ballots import AnswerEntry
from witan.deliberation import events as e
from witan.deliberation.ports import Seat
from witan.deliberation.session import Session
from witan.errors import ConfigError, HistoryConflict, HistoryError, MissingKey
from witan.history import SessionImport, SessionSummary
from witan.service.redaction import (
    WordRedactor,
    public_error,
    public_names,
    redact_import,
    redact_refusal,
    redact_session,
    redact_summaries,
    redact_words,
)
from witan.surfaces.web.rendering import render_session


class TestModels:
    """A seat is shown by its model."""

    @pytest.mark.parametrize(
        ("written", "shown"),
        [("cmd:/opt/vault/member --key k", "cmd:member"), ("cmd:'/opt/my vault/m' -x", "cmd:m"),
         ("cmd:ollama run x", "cmd:ollama"), ("script:/srv/vault/ada.toml", "script:ada"),
         (r"script:C:\vault\ada.toml", "script:ada"), ("http://10.0.0.5:8000/v1#qwen", "qwen"),
         ("https://host/v1#/models/q.gguf", "q.gguf"), ("llamacpp:/m/q.gguf", "llamacpp:q.gguf"),
         ("/m/q.gguf", "q.gguf"), ("http://10.0.0.5/v1", "…"), ("m (http://h/v1)", "m (…)")],
    )  # fmt: skip
    def test_addresses_and_options_of_seats_are_hidden(self, written, shown):
        assert public_names([written]) == {written: shown}

    @pytest.mark.parametrize(
        "plain", ["openai:gpt-5", "openrouter:meta-llama/l3", "x", "", "a:b:c"]
    )
    def test_names_of_providers_and_models_are_unchanged(self, plain):
        assert public_names([plain]) == {}

    def test_seats_with_equal_short_names_are_distinguished(self):
        """Each has the same mark in any list, and is unchanged when shown again."""
        here = public_names(["cmd:/a/m --x", "cmd:/b/m --y"])
        there = public_names(["cmd:/b/m --y", "cmd:m"])

        assert len({*here.values()}) == 2
        assert all(name.startswith("cmd:m~") for name in here.values())
        assert there["cmd:/b/m --y"] == here["cmd:/b/m --y"]
        assert public_names(here.values()) == {}

    def test_a_seat_named_after_its_model_is_not_another_model(self):
        """A list of sessions has one leader under both names."""
        line = SessionSummary(
            "q", datetime.now(UTC), "complete", None, False, "Is it so?", "borda",
            "http://10.0.0.5:8000/v1#qwen", 0.0, "council", None, None, "qwen",
        )  # fmt: skip
        [shown] = redact_summaries([line])

        assert (shown.leader, shown.leader_seat) == ("qwen", "qwen")


class TestImports:
    """A session imported as ballots names seats as its file does."""

    def test_where_nothing_is_to_hide_it_is_the_same(self):
        """No copy is made of ballots, however many there are."""
        cast = (Ballot("openai:gpt-5", (("a/b",), ("c",)), reason="either/or", positions={"c": 1}),)
        held = SessionImport("q", ballots=cast, answers={"c": "See /etc/hosts."})

        assert redact_import(held) == (held, {})
        assert redact_import(held)[0] is held

    def test_every_name_is_shown_and_unique(self):
        """They are names on ballots, and everywhere else."""
        one, two = "cmd:/v/m --a", "cmd:/v/m --b"
        ballot = Ballot(
            one, ((one,), (two,)), {two: 8}, candidates=(one, two), authors={one: two},
            positions={one: 1}, notes=f"{two} failed",
        )  # fmt: skip
        held = SessionImport(
            "q", ballots=(ballot,), lengths={one: 3}, models={"seat": one},
            kept={two: (1, 2)}, repaired=(one,),
            took=(AnswerEntry(one, two),),
        )  # fmt: skip
        shown, names = redact_import(held)
        first, second = names[one], names[two]

        assert first != second
        assert "/v/m" not in str(shown)
        assert shown.ballots[0] == Ballot(
            first, ((first,), (second,)), {second: 8}, candidates=(first, second),
            authors={first: second}, positions={first: 1}, notes=f"{second} failed",
        )  # fmt: skip
        assert (shown.lengths, shown.models) == ({first: 3}, {"seat": first})
        assert (shown.kept, shown.repaired) == ({second: (1, 2)}, (first,))
        assert shown.took == (AnswerEntry(first, second),)


class TestSentences:
    """A sentence says what befell a seat, and not where."""

    @pytest.mark.parametrize(
        ("said", "shown"),
        [("the program '/opt/my vault/m' failed", "the program '…' failed"),
         ("cannot reach http://10.0.0.5:8000/v1: refused", "cannot reach …: refused"),
         (r"no such file: C:\vault\x.txt", "no such file: …"),
         ("see ~/.pgpass, then /etc/witan/witan.toml.", "see …, then …"),
         ("postgresql://me:pw@h/db is away", "… is away"),
         ("either/or, 3/4, meta-llama/l3 and A/B", "either/or, 3/4, meta-llama/l3 and A/B"),
         ("GET /api/profiles lists them", "GET /api/profiles lists them")],
    )  # fmt: skip
    def test_paths_and_addresses_are_left_out(self, said, shown):
        """What is none stays."""
        assert redact_words(said) == shown

    def test_errors_hide_locations(self):
        """They keep the problem and the remedy."""
        away = HistoryError("/srv/h.sqlite", "cannot be read", "look at /srv")
        taken = HistoryConflict("/srv/h.sqlite", "the session s1 is under way", "let it end")

        assert all(fact in public_error(away) for fact in ("cannot be read", "…"))
        assert "s1 is under way" in public_error(taken)
        assert (
            public_error(ConfigError("/etc/w.toml", "level", "is no number"))
            == "level is no number"
        )

    def test_an_error_about_a_seat_names_what_is_missing(self):
        """It names the variable of a key, but only the setting of a file."""
        assert "OPENAI_API_KEY" in redact_refusal(MissingKey("ada", "OPENAI_API_KEY"))
        told = redact_refusal(
            ConfigError("/etc/w.toml", "members[1]", "is not a seat: 'cmd:x --key k'")
        )
        assert told.startswith("members[1]")
        assert "--key" not in told


def test_a_session_with_nothing_to_hide_is_shown_as_it_is():
    """It is the very same."""
    seats = tuple(Seat(name, f"openai:{name}", "openai") for name in ("ada", "bob"))
    told = Story("ada", "bob", seats=seats, chairmen=())
    story = told.answers(ada="So.", bob="At /srv/x.").closed()
    session = Session.of(story)
    assert redact_session(session) is session


class TestNamesOfSeats:
    """Clients are told what seats are called, whatever that looks like."""

    TOLD = ("dan <b>x</b> did not answer: no /srv/x", "/models/qwen cast no ballot: down")

    def test_names_of_seats_are_shown_whole(self):
        """Paths and addresses next to them are hidden."""
        words = WordRedactor(
            {"cmd:/opt/ada-one --k": "cmd:ada-one"},
            names=("dan <b>x</b>", "/models/qwen", "ada-one"),
        )

        assert [*map(words, self.TOLD)] == ["dan <b>x</b> did not answer: no …", self.TOLD[1]]
        assert words("ada-one: /opt/ada-one --k") == "ada-one: …"
        assert words("/srv/models/qwen/x") == "…"

    def test_give_way_to_labels_before_the_reveal(self):
        """On the page, in its trust line, and in what a session is short of."""
        odd = ("dan <b>x</b>", "/models/qwen", "ada", "bob")
        story = Story(*odd).answers(**dict.fromkeys(odd[1:], "So."))
        story.tell(e.AnswerFailed, seat=odd[0], reason="no /srv/x", spent=expense())
        story.casts("ada: bob > /models/qwen")
        story.casts("bob: ada > /models/qwen").abstains(odd[1], "down").closed(*self.TOLD)
        page = render_session(redact_session(Session.of(story)))

        assert "did not answer: no …" in page
        assert "cast no ballot: down" in page
        assert not any(part in page for part in ("dan", "qwen", "/srv", "‹"))
