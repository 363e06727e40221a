"""The council from Python: strings, members and custom models; scripts and notebooks."""

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
    """A custom model."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.threads: set[int] = set()

    async def complete(self, _call: Call, hear: Hear, /) -> Reply:
        """Reply with the name of the seat."""
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
    """Names of the seats."""
    return [member.name for member in council.members]


class TestSeats:
    """Every kind of seat, in one list."""

    def test_strings_members_and_models_can_be_mixed(self, scripts):
        """Each gets its own name, and custom models keep theirs."""
        member = Member("mine", Echo())
        council = Council([scripts[0], member, Echo("parrot"), Echo(), Echo()])

        assert names(council) == ["a", "mine", "parrot", "Echo", "Echo (2)"]
        assert council.members[1] is member
        assert [m.simulated for m in council.members] == [True, False, False, False, False]

    def test_a_chairman_that_is_a_member_is_that_member(self, scripts):
        """It is given by name, as written, or as the object; others have their own seats."""
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
    def test_an_invalid_seat_is_refused(self, members, error, said):
        """The error names the seat and the problem."""
        with pytest.raises(error, match=said):
            Council(members, environment={})

    def test_a_chairman_with_the_name_of_another_member_is_refused(self, scripts):
        """Standings could not tell them apart."""
        named = [f"ada={scripts[0]}", scripts[1]]
        for other in (f"ada={scripts[2]}", Member("ada", Echo())):
            with pytest.raises(InvalidParameter, match=r"ada.*no other seat has"):
                Council(named, other)

        assert Council(named, f"ada={scripts[0]}").chairmen[0].name == "ada"


class TestOptions:
    """Options are keyword arguments."""

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
    def test_a_value_of_the_wrong_type_is_refused(self, options):
        """The error names the option and its type."""
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
    def test_any_value_is_accepted_or_refused_with_a_witan_error(self, name, value):
        """No exception of Python's own is raised."""
        with suppress(WitanError):
            build_procedure({name: value})

    def test_a_setting_of_an_unknown_provider_is_refused(self):
        """The error suggests the nearest."""
        with pytest.raises(UnknownName, match="'concurency'; did you mean 'concurrency'"):
            Council([Echo(), Echo()], providers={"openai": {"concurency": 3}})

    @pytest.mark.parametrize(
        "asked",
        [{"question": 5}, {"question": None}, {"seed": "7"}, {"seed": 7.0}, {"seed": True}],
        ids=str,
    )
    def test_a_question_is_text_and_a_seed_a_whole_number(self, asked):
        """Others are refused by name before the first call."""
        [name] = asked
        with pytest.raises(InvalidParameter, match=name):
            ask(**{"question": "Is it so?", "members": [Echo(), Echo()], **asked})

    def test_a_verdict_needs_a_final_answer(self):
        """It contains the verdict."""
        with pytest.raises(InvalidParameter, match="synthesis cannot be False"):
            Council([Echo(), Echo()], mode="verdict", synthesis=False)

    def test_options_reach_procedure_limits_and_counting(self):
        """Rubric, weights and parameters of the rule do, too."""
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
    def test_an_unknown_option_is_refused_with_the_nearest(self, options, said):
        with pytest.raises(UnknownName) as caught:
            Council([Echo(), Echo()], **options)

        assert said in str(caught.value)

    def test_an_error_in_a_seat_of_a_jury_names_the_jury(self):
        """A jury that judges texts has no members."""
        with pytest.raises(InvalidParameter, match=r"^jury\[2\] cannot be 3; expected a seat such"):
            judge("a text", [Echo(), 3], pass_mark=6)
        with pytest.raises(InvalidParameter, match="'openai:m'; expected a list of seats"):
            judge("a text", "openai:m", pass_mark=6)
        with pytest.raises(ConfigError, match=r"the council: jury\[2\] is not a seat"):
            judge("a text", [Echo(), "openai:"], pass_mark=6)

    def test_a_refused_option_is_called_an_option(self, scripts, tmp_path, monkeypatch):
        """Its error has no name of ours."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigError, match=r"^an option: rule names an unknown rule 'bogus'"):
            Council.from_config(members=scripts, rule="bogus", environment={})

    def test_options_of_the_call_are_suggested(self):
        """So are those of a council."""
        with pytest.raises(UnknownName, match="'passmark'; did you mean 'pass_mark'"):
            judge("a text", [Echo(), Echo()], passmark=6)
        with pytest.raises(UnknownName, match="'catagory'; did you mean 'category'"):
            ask("Is it so?", catagory="coding")


class TestConfiguration:
    """The configured council, as on the command line."""

    def test_a_configured_council_has_its_seats_and_options(self, scripts, tmp_path):
        """Overrides are stronger."""
        path = tmp_path / "council.toml"
        path.write_text(f'members = {scripts}\nchairman = "b"\nrule = "borda"\nquorum = 3')

        council = Council.from_config(path, environment={}, rule="schulze", call_seconds=1)

        assert names(council) == ["a", "b", "c"]
        assert council.chairmen == (council.members[1],)
        assert (council.procedure.counting.rule, council.procedure.quorum) == ("schulze", 3)
        assert council.procedure.limits.call_seconds == 1

    def test_a_single_member_is_traced_to_its_source(self, scripts):
        """The error names the variable that seats too few."""
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
        """It is a member's name, a seat as written, a member, or a list of them."""
        member = Member("mine", Echo("mine"))

        assert ask("Is it so?", None, member, seed=1).synthesis.chairman == "mine"
        council = Council.from_config(chairman=["c", member, f"dee={scripts[0]}"])
        assert [c.name for c in council.chairmen] == ["c", "mine", "dee"]
        assert council.chairmen[0] is council.members[2]
        assert [c.name for c in Council.from_config(chairman="a").chairmen] == ["a"]
        assert [c.name for c in Council.from_config().chairmen] == ["b"]


class TestAsking:
    """The blocking function works anywhere."""

    def test_ask_waits_for_the_session(self, scripts):
        """A script gets the whole result."""
        session = ask("Is it so?", scripts, "c", seed=1)

        assert list(session.answers) == ["a", "b", "c"]
        assert session.text == "So it is."
        assert session.is_simulated

    @pytest.mark.parametrize("backend", ["asyncio", "trio"])
    def test_ask_works_inside_an_event_loop(self, scripts, backend):
        """In a notebook the council runs in its own thread."""
        echo = Echo("parrot")

        async def cell() -> str | None:
            return ask("Is it so?", [*scripts, echo], "c", seed=1).text

        assert anyio.run(cell, backend=backend) == "So it is."
        assert echo.threads.isdisjoint({threading.get_ident()})

    def test_the_same_seed_draws_the_same_sheets(self, scripts):
        """Question, council and seed determine all sheets."""

        def sheets(seed: int) -> list[object]:
            session = ask("Is it so?", scripts, seed=seed)
            return [e.sheet for e in session.events if e.kind == "sheet_drawn"]

        assert sheets(7) == sheets(7)

    def test_witan_errors_are_not_wrapped(self, scripts):
        """An empty question raises its own class."""
        with pytest.raises(InvalidParameter, match="the question is empty") as caught:
            ask("  ", scripts)

        assert caught.value.__context__ is None  # nor does its traceback begin with another

    def test_ask_has_the_options_of_a_council(self):
        asked = set(inspect.signature(Council.ask).parameters) - {"self"}

        assert asked <= set(inspect.signature(ask).parameters)


class TestMisuse:
    """Invalid arguments are refused in one sentence."""

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
    def test_options_for_providers_are_checked(self, given):
        """The error names the option and what it accepts."""
        [name] = given
        with pytest.raises(InvalidParameter, match=f"{name} cannot be"):
            Options(**given)

    @pytest.mark.parametrize("seat", [Echo, Member("m", Echo), Member("m", object())])
    def test_a_class_is_not_a_model(self, scripts, seat):
        """Only an instance can complete a call."""
        with pytest.raises(InvalidParameter, match=r"members\[4\] cannot be"):
            Council([*scripts, seat])

    def test_an_unknown_chairman_is_refused_with_the_members(self, scripts):
        """The message is that of the command line."""
        with pytest.raises(ConfigError) as caught:
            Council(scripts, "zed")

        expected = "is neither a seat nor a name: unknown member 'zed'; known: a, b, c"
        assert caught.value.problem == expected

    @pytest.mark.parametrize(
        ("name", "value"),
        [("files", ["a.txt"]), ("files", {"a": 3}), ("conversation", ["hi"])],
    )
    def test_files_are_texts_by_name(self, scripts, name, value):
        """Asking and planning refuse anything else by name."""
        with pytest.raises(InvalidParameter, match=f"{name} cannot be"):
            ask("Why?", scripts, **{name: value})
        with pytest.raises(InvalidParameter, match=f"{name} cannot be"):
            Council(scripts).plan("Why?", **{name: value})

    def test_a_reference_that_is_not_text_is_refused(self, scripts):
        """The error does not call it the file that the jury gets."""
        with pytest.raises(InvalidParameter, match="reference cannot be 5; expected some text"):
            judge("a text", scripts, reference=5)

    @pytest.mark.parametrize("more", [{}, {"alpha": 0.3}])
    def test_parameters_of_a_rule_are_a_table(self, scripts, tmp_path, monkeypatch, more):
        """A number is refused by name, with or without a parameter."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(ConfigError, match="rule_parameters should be a table"):
            Council.from_config(
                members=scripts, rule="hybrid", rule_parameters=3, environment={}, **more
            )


class TestTracing:
    """An error about a configured value names its source."""

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
    def test_an_error_of_the_council_names_file_and_key(self, scripts, tmp_path, text, said):
        path = tmp_path / "named.toml"
        path.write_text(f"members = {scripts}\n{text}")
        config = load_config({"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path, path)

        with pytest.raises(ConfigError) as caught:
            seat_council(config, {})

        assert str(caught.value).startswith(f"{path}: {said}")


class TestIndependence:
    """Seats of one model do not judge independently."""

    URL = "http://127.0.0.1:9/v1#m"

    def test_one_model_in_several_seats_is_noted(self):
        """The note names the seats; seats with different options are exempt."""
        council = Council([self.URL, "other=http://127.0.0.1:9/v1#n", self.URL])

        [note] = council.notes
        assert all(fact in note for fact in ("m and m (2)", f"{self.URL}", "not independent"))

    def test_the_note_appears_once_for_a_configured_council(self, tmp_path):
        path = tmp_path / "named.toml"
        path.write_text(f"members = {[self.URL] * 3}")
        config = load_config({"XDG_CONFIG_HOME": str(tmp_path)}, tmp_path, path)

        [note] = seat_council(config, {}).notes

        assert note.startswith("all seats are held")

    def test_a_script_in_several_seats_is_noted(self, scripts):
        """Different names do not make its seats independent."""
        [note] = Council([f"x={scripts[0]}", f"y={scripts[0]}", scripts[1]]).notes

        assert note.startswith(f"x and y are held by one script, {scripts[0]}")
