"""The council from Python: strings, members and models of one's own; scripts and notebooks."""

import inspect
import threading
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from witan.core.interpretation import Counting
from witan.core.rubric import RUBRICS
from witan.core.settings import Settings
from witan.deliberation.ports import Call, Hear, Member, Options, Reply
from witan.deliberation.procedure import Limits, Procedure, ThrottlePolicy
from witan.errors import (
    ConfigError,
    InvalidParameter,
    MissingKey,
    NoCouncil,
    UnknownName,
    WitanError,
)
from witan.service.config.configuration import load_config
from witan.service.council import Council, ask, judge, seat_council
from witan.service.procedure_options import build_procedure

NAMES = {field.name for kind in (Procedure, Limits, Settings, Counting) for field in fields(kind)}
NAMES |= {"rubric_weights", "rule_parameters", "providers"}

SCRIPT = """
[[answer]]
text = "{name} thinks so."

[[synthesis]]
text = "So it is."
"""


class Echo:
    """A model of one's own."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.threads: set[int] = set()

    async def complete(self, _call: Call, hear: Hear, /) -> Reply:
        """Say who speaks."""
        self.threads.add(threading.get_ident())
        hear("I say so.")
        return Reply(f"{self.name} says so.")


@pytest.fixture
def scripts(tmp_path) -> list[str]:
    """Three scripted seats."""
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.toml").write_text(SCRIPT.format(name=name))
    return [f"script:{tmp_path / name}.toml" for name in ("a", "b", "c")]


def names(council: Council) -> list[str]:
    """Who sits."""
    return [member.name for member in council.members]


class TestSeats:
    """Whatever can be seated, in one list."""

    def test_strings_members_and_models_sit_together(self, scripts):
        """Each gets a name of its own, and models of one's own keep theirs."""
        member = Member("mine", Echo())
        council = Council([scripts[0], member, Echo("parrot"), Echo(), Echo()])

        assert names(council) == ["a", "mine", "parrot", "Echo", "Echo (2)"]
        assert council.members[1] is member
        assert [m.simulated for m in council.members] == [True, False, False, False, False]

    def test_a_chairman_that_is_a_member_is_that_member(self, scripts):
        """By name, as written, or as the very object; anyone else has a seat of its own."""
        echo = Echo("parrot")
        council = Council([*scripts[:2], echo], ["b", scripts[0], echo, scripts[2], "parrot"])

        a, b, parrot = council.members
        assert council.chairmen[:3] == (b, a, parrot)
        assert council.chairmen[3].name == "c"
        assert council.chairmen[4] is parrot

    def test_one_chairman_needs_no_list(self, scripts):
        """A string is one chairman."""
        assert [c.name for c in Council(scripts, "c").chairmen] == ["c"]

    @pytest.mark.parametrize(
        ("members", "error", "said"),
        [
            ([], NoCouncil, "at least two members, and there is none"),
            ([Echo()], NoCouncil, "at least two members, and there is one"),
            (["gpt-5", "x"], ConfigError, r"members\[1\] is not a seat: 'gpt-5' names no provider"),
            ("openai:m", InvalidParameter, "'openai:m'; expected a list of seats"),
            ([Echo(), 3], InvalidParameter, r"members\[2\] cannot be 3; expected a seat such"),
            (["openai:m", Echo()], MissingKey, "m needs a key: set the variable OPENAI_API_KEY"),
            ([Member("x", Echo()), Member("x", Echo())], InvalidParameter, "no other seat has"),
        ],
    )
    def test_what_cannot_sit_is_refused_in_a_sentence(self, members, error, said):
        """The error says which seat and what is wrong with it."""
        with pytest.raises(error, match=said):
            Council(members, environment={})

    def test_a_chairman_bears_no_member_s_name(self, scripts):
        """Who has a member's name is that member, or is refused: standings would mix them up."""
        named = [f"ada={scripts[0]}", scripts[1]]
        for other in (f"ada={scripts[2]}", Member("ada", Echo())):
            with pytest.raises(InvalidParameter, match=r"ada.*no other seat has"):
                Council(named, other)

        assert Council(named, f"ada={scripts[0]}").chairmen[0].name == "ada"


class TestOptions:
    """Options by name, flat."""

    @pytest.mark.parametrize(
        "options",
        [
            {"providers": {"openai": {"concurrency": "3"}}},
            {"providers": {"openai": 3}},
            {"providers": 3},
            {"call_seconds": "60"},
            {"quorum": "2"},
            {"quorum": True},
            {"max_cost_usd": "1"},
            {"rubric": None},
            {"rubric": 3},
            {"rule": None},
            {"rule": []},
            {"mode": None},
            {"rubric_weights": {"accuracy": "x"}},
            {"rubric_weights": 3},
            {"rule_parameters": 3},
            {"weights": {"a": "x"}},
            {"weights": 3},
            {"reliability": {3: 1.0}},
            {"mirrored": "yes"},
            {"flips": 1},
            {"enough": 2.5},
            {"review_rounds": 1.0},
            {"tie_break": 3},
            {"gates": {"s": 3}},
            {"safety_cap": "x"},
            {"level": None},
        ],
        ids=str,
    )
    def test_a_value_of_another_type_is_refused_by_name(self, options):
        """Nothing of a wrong type is taken, and the error says which option and what it takes."""
        [name] = options

        with pytest.raises(InvalidParameter) as caught:
            Council([Echo(), Echo(), Echo()], **options)

        given = options[name]
        inner = given["openai"] if name == "providers" and isinstance(given, dict) else {}
        assert (next(iter(inner)) if isinstance(inner, dict) and inner else name) in str(
            caught.value
        )
        assert "expected" in str(caught.value)

    @given(
        st.sampled_from(sorted(NAMES)),
        st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3),
                  st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=2),
                  st.integers(), max_size=2), st.binary(max_size=2)),
    )  # fmt: skip
    def test_any_value_is_taken_or_refused_by_an_error_of_ours(self, name, value):
        """No option lets an exception of Python's own out, whatever it is given."""
        with suppress(WitanError):
            build_procedure({name: value})

    def test_a_setting_of_a_provider_that_does_not_exist_is_named(self):
        """The nearest one is suggested."""
        with pytest.raises(UnknownName, match="'concurency'; did you mean 'concurrency'"):
            Council([Echo(), Echo()], providers={"openai": {"concurency": 3}})

    @pytest.mark.parametrize(
        "asked",
        [{"question": 5}, {"question": None}, {"seed": "7"}, {"seed": 7.0}, {"seed": True}],
        ids=str,
    )
    def test_a_question_is_text_and_a_seed_a_whole_number(self, asked):
        """Both are refused by name before anybody is asked."""
        [name] = asked
        with pytest.raises(InvalidParameter, match=name):
            ask(**{"question": "Is it so?", "members": [Echo(), Echo()], **asked})

    def test_a_verdict_needs_a_closing_text(self):
        """The final answer is what approves, so it cannot be left out."""
        with pytest.raises(InvalidParameter, match="synthesis cannot be False"):
            Council([Echo(), Echo()], mode="verdict", synthesis=False)

    def test_every_kind_of_option_finds_its_place(self):
        """Procedure, limits, counting, rubric, weights and parameters of the rule."""
        council = Council(
            [Echo(), Echo()],
            mode="verdict", call_seconds=5, level=0.9, recusal="off", rule="hybrid", alpha=0.3,
            rubric="coding", providers={"python": {"concurrency": 2}},
        )  # fmt: skip

        procedure = council.procedure
        assert (procedure.mode, procedure.limits.call_seconds) == ("verdict", 5)
        assert (procedure.counting.level, procedure.counting.counting.recusal) == (0.9, "off")
        assert procedure.counting.parameters == {"alpha": 0.3}
        assert procedure.rubric is RUBRICS["coding"]
        assert procedure.limits.providers["python"].concurrency == 2

    def test_a_rubric_may_be_an_object(self):
        """A rubric of one's own is taken as it is."""
        assert (
            Council([Echo(), Echo()], rubric=RUBRICS["factual"]).procedure.rubric.name == "factual"
        )

    def test_a_whole_procedure_stands_in_for_options(self):
        """It is taken as it is, and not mixed with options."""
        procedure = Procedure(limits=Limits(attempts=1))

        assert Council([Echo(), Echo()], procedure=procedure).procedure is procedure
        with pytest.raises(InvalidParameter, match="either it or a procedure"):
            Council([Echo(), Echo()], procedure=procedure, mode="best")

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({"mirored": True}, "unknown option 'mirored'; did you mean 'mirrored'?"),
            ({"rule": "bordaa"}, "unknown rule 'bordaa'; did you mean 'borda'?"),
            ({"rubric": "codding"}, "unknown rubric 'codding'; did you mean 'coding'?"),
            ({"rule": "borda", "alpha": 1}, "unknown option 'alpha'"),
            ({"rule": "hybrid", "rule_parameters": {"alfa": 1}}, "unknown parameter of hybrid"),
        ],
    )
    def test_what_does_not_exist_is_named_with_the_nearest(self, options, said):
        """A misspelt option never passes in silence."""
        with pytest.raises(UnknownName) as caught:
            Council([Echo(), Echo()], **options)

        assert said in str(caught.value)

    def test_an_option_of_the_call_is_suggested_too(self):
        """Beside those of a council, whoever sits in it."""
        with pytest.raises(UnknownName, match="'passmark'; did you mean 'pass_mark'"):
            judge("a text", [Echo(), Echo()], passmark=6)
        with pytest.raises(UnknownName, match="'catagory'; did you mean 'category'"):
            ask("Is it so?", catagory="coding")


class TestConfiguration:
    """The configured council, as the command line seats it."""

    def test_it_is_seated_with_its_options(self, scripts, tmp_path):
        """Members, chairmen and procedure are those of the file; overrides are stronger."""
        path = tmp_path / "council.toml"
        path.write_text(f'members = {scripts}\nchairman = "b"\nrule = "borda"\nquorum = 3')

        council = Council.from_config(path, environment={}, rule="schulze", call_seconds=1)

        assert names(council) == ["a", "b", "c"]
        assert council.chairmen == (council.members[1],)
        assert (council.procedure.counting.rule, council.procedure.quorum) == ("schulze", 3)
        assert council.procedure.limits.call_seconds == 1

    def test_a_single_member_is_traced_to_its_source(self, scripts):
        """The sentence names the variable that seats too few."""
        environment = {"WITAN_MEMBERS": scripts[0]}
        config = load_config(environment, Path.cwd())

        with pytest.raises(NoCouncil, match="WITAN_MEMBERS names one"):
            seat_council(config, environment)

    @pytest.fixture
    def configured(self, scripts, tmp_path, monkeypatch):
        """A project in which three scripts are configured."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
        (tmp_path / "witan.toml").write_text(f'members = {scripts}\nchairman = "b"')

    @pytest.mark.usefixtures("configured")
    def test_options_are_those_of_a_council(self):
        """Parameters of the rule and providers' limits override as they do in `Council`."""
        council = Council.from_config(
            rule="hybrid", alpha=0.3, providers={"openai": {"concurrency": 2},
                                                 "xai": ThrottlePolicy(per_minute=6)}
        )  # fmt: skip

        assert council.procedure.counting.parameters == {"alpha": 0.3}
        assert council.procedure.limits.providers["openai"] == ThrottlePolicy(concurrency=2)
        assert council.procedure.limits.providers["xai"] == ThrottlePolicy(per_minute=6)
        with pytest.raises(ConfigError, match="unknown parameter of borda 'alpha'"):
            Council.from_config(rule="borda", alpha=0.3)

    @pytest.mark.usefixtures("configured")
    def test_a_whole_procedure_stands_in_for_the_configured_one(self):
        """It is taken as it is, and not mixed with options."""
        procedure = Procedure(mode="best")

        session = ask("Is it so?", procedure=procedure, seed=1)

        assert session.opening.procedure == procedure
        with pytest.raises(InvalidParameter, match="either it or a procedure"):
            Council.from_config(procedure=procedure, rule="borda")

    @pytest.mark.usefixtures("configured")
    def test_any_seat_may_chair_the_configured_council(self, scripts):
        """A member's name, a seat as it is written, a member, or a list of them."""
        member = Member("mine", Echo("mine"))

        assert ask("Is it so?", None, member, seed=1).synthesis.chairman == "mine"
        council = Council.from_config(chairman=["c", member, f"dee={scripts[0]}"])
        assert [c.name for c in council.chairmen] == ["c", "mine", "dee"]
        assert council.chairmen[0] is council.members[2]
        assert [c.name for c in Council.from_config(chairman="a").chairmen] == ["a"]
        assert [c.name for c in Council.from_config().chairmen] == ["b"]


class TestAsking:
    """The blocking form works wherever it is called."""

    def test_it_waits_for_the_session(self, scripts):
        """From a script, everything the question produced comes back."""
        session = ask("Is it so?", scripts, "c", seed=1)

        assert list(session.answers) == ["a", "b", "c"]
        assert session.text == "So it is."
        assert session.is_simulated

    @pytest.mark.parametrize("backend", ["asyncio", "trio"])
    def test_it_works_where_an_event_loop_runs(self, scripts, backend):
        """From a notebook, the council deliberates in a thread of its own."""
        echo = Echo("parrot")

        async def cell() -> str | None:
            return ask("Is it so?", [*scripts, echo], "c", seed=1).text

        assert anyio.run(cell, backend=backend) == "So it is."
        assert echo.threads.isdisjoint({threading.get_ident()})

    def test_the_same_seed_draws_the_same_sheets(self, scripts):
        """Question, council and seed decide who sees what in which order."""

        def sheets(seed: int) -> list[object]:
            session = ask("Is it so?", scripts, seed=seed)
            return [e.sheet for e in session.events if e.kind == "sheet_drawn"]

        assert sheets(7) == sheets(7)

    def test_an_error_of_ours_comes_out_as_it_is(self, scripts):
        """An empty question is refused by the error that can be caught by its name."""
        with pytest.raises(InvalidParameter, match="the question is empty") as caught:
            ask("  ", scripts)

        assert caught.value.__context__ is None  # nor does its traceback begin with another

    def test_its_options_are_those_of_the_council(self):
        """What can be asked of a council can be asked in the blocking form."""
        asked = set(inspect.signature(Council.ask).parameters) - {"self"}

        assert asked <= set(inspect.signature(ask).parameters)


class TestMisuse:
    """What cannot be meant is refused in one sentence of ours."""

    @pytest.mark.parametrize(
        "given",
        [
            {"temperature": -9},
            {"temperature": float("nan")},
            {"temperature": True},
            {"max_tokens": 0},
            {"max_tokens": 1.5},
            {"reasoning_effort": "zzz"},
            {"system": 3},
        ],
    )
    def test_options_hold_what_a_provider_could_take(self, given):
        """The option is named, with what it accepts."""
        [name] = given
        with pytest.raises(InvalidParameter, match=f"{name} cannot be"):
            Options(**given)

    @pytest.mark.parametrize("seat", [Echo, Member("m", Echo), Member("m", object())])
    def test_a_class_is_no_model(self, scripts, seat):
        """Only an instance can complete a call."""
        with pytest.raises(InvalidParameter, match=r"members\[4\] cannot be"):
            Council([*scripts, seat])

    def test_a_chairman_who_is_no_member_is_told_who_there_is(self, scripts):
        """The sentence is that of the command line."""
        with pytest.raises(ConfigError) as caught:
            Council(scripts, "zed")

        expected = "is neither a seat nor a name: unknown member 'zed'; known: a, b, c"
        assert caught.value.problem == expected

    @pytest.mark.parametrize(
        ("name", "value"),
        [("files", ["a.txt"]), ("files", {"a": 3}), ("conversation", ["hi"])],
    )
    def test_material_is_text_under_names(self, scripts, name, value):
        """Asking and planning alike refuse anything else by name."""
        with pytest.raises(InvalidParameter, match=f"{name} cannot be"):
            ask("Why?", scripts, **{name: value})
        with pytest.raises(InvalidParameter, match=f"{name} cannot be"):
            Council(scripts).plan("Why?", **{name: value})

    def test_a_reference_that_is_no_text_is_named(self, scripts):
        """Not as the file by which the jury gets it."""
        with pytest.raises(InvalidParameter, match="reference cannot be 5; expected some text"):
            judge("a text", scripts, reference=5)

    @pytest.mark.parametrize("more", [{}, {"alpha": 0.3}])
    def test_parameters_of_a_rule_are_a_table(self, scripts, tmp_path, monkeypatch, more):
        """A number in its place is refused by name, with a parameter beside it or without."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigError, match="rule_parameters should be a table"):
            Council.from_config(
                members=scripts, rule="hybrid", rule_parameters=3, environment={}, **more
            )


class TestTracing:
    """What the council refuses of a configuration is named with its source."""

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("quorum = 9", "quorum cannot be 9"),
            ("enough = 9", "enough cannot be 9"),
            ('rule = "elo"', "rule cannot be 'elo'"),
            ('rule = "calibrated"\nrubric_scoring = false', "rule cannot be 'calibrated'"),
            ('rule = "hybrid"\nrule_parameters = {alpha = 7}', "rule_parameters.alpha cannot be"),
        ],
    )
    def test_the_file_and_the_key(self, scripts, tmp_path, text, said):
        """As for a value that is refused on reading."""
        path = tmp_path / "named.toml"
        path.write_text(f"members = {scripts}\n{text}")
        config = load_config({"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path, path)

        with pytest.raises(ConfigError) as caught:
            seat_council(config, {})

        assert str(caught.value).startswith(f"{path}: {said}")


class TestIndependence:
    """Seats of one model, called alike, do not judge independently."""

    URL = "http://127.0.0.1:9/v1#m"

    def test_one_model_in_several_seats_is_noted(self):
        """The seats are named; with options of its own a seat is another matter."""
        council = Council([self.URL, "other=http://127.0.0.1:9/v1#n", self.URL])

        [note] = council.notes
        assert all(fact in note for fact in ("m and m (2)", f"{self.URL}", "not independent"))

    def test_it_is_noted_once_of_a_configured_council(self, tmp_path):
        """Reading it from a file says it no more often."""
        path = tmp_path / "named.toml"
        path.write_text(f"members = {[self.URL] * 3}")
        config = load_config({"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path, path)

        [note] = seat_council(config, {}).notes

        assert note.startswith("all seats are held")

    def test_a_script_in_several_seats_is_noted(self, scripts):
        """Names of their own do not make its seats independent."""
        [note] = Council([f"x={scripts[0]}", f"y={scripts[0]}", scripts[1]]).notes

        assert note.startswith(f"x and y are held by one script, {scripts[0]}")
