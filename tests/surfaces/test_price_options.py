"""Prices, ceilings and expected costs, black box."""

from dataclasses import replace

import pytest

import witan as package
from misbehaving import MisbehavingServer
from witan.core.display import dollars
from witan.deliberation.ports import Price
from witan.errors import ConfigError, OverBudget, UnknownName
from witan.service.council import Council

FAR = "http://192.0.2.1/v1"
"""An address that nobody has, and that no plan calls."""

pytestmark = pytest.mark.usefixtures("place")

MEMBERS = [word for n in "abcd" for word in ("--member", f"{n}={FAR}#m-{n}")]


def prices(plan) -> dict[str, float | None]:
    """Seat to the worst cost of its answer."""
    return {x["seat"]: x["worst_usd"] for x in plan.json["lines"] if x["stage"] == "answer"}


class TestPrice:
    """``--price SEAT=IN,OUT`` prices a seat by its name or as it is written."""

    def test_a_seat_is_priced_by_name_or_as_it_is_written(self, witan):
        """What has no price is named, with the option that would give it one."""
        said = witan(
            "plan", "Which?", "--json", *MEMBERS, "--max-tokens", 1000,
            "--price", "a=0,1000", "--price", f"{FAR}#m-b=0,2000", "--price", f"c={FAR}#m-c=0,3000",
        )  # fmt: skip

        assert prices(said) == {"a": 1.0, "b": 2.0, "c": 3.0, "d": None}
        text = " ".join(witan("plan", "Which?", *MEMBERS, "--price", "a=1,1").out.split())
        assert "b, c and d is unknown" in text
        assert "--price b=IN,OUT" in text

    def test_it_wins_over_every_other_price(self, witan, tmp_path):
        """The option over the seat's own, that over the table, the table over the list."""
        seats = ", ".join(f'{{seat = "{FAR}#m", name = "{n}", price = [0, 10]}}' for n in "ab")
        config = tmp_path / "own.toml"
        config.write_text(
            f'members = [{seats}, "{FAR}#c", "openai:gpt-4o"]\n'
            '[price]\na = [0, 20]\nc = [0, 30]\n"openai:gpt-4o" = [0, 40]\n'
        )

        said = witan("plan", "?", "--json", "--config", config, "--max-tokens", 10**6,
                     "--price", "b=0,50")  # fmt: skip

        assert prices(said) == {"a": 10.0, "b": 50.0, "c": 30.0, "gpt-4o": 40.0}

    @pytest.mark.parametrize("text", ["a", "a=1", "a=1,2,3", "a=x,1", "a=-1,2", "=1,2", "a=nan,1"])
    def test_what_is_no_price_is_misuse(self, witan, text):
        """One line says how a price is written."""
        said = witan("plan", "Which?", *MEMBERS, "--price", text)

        assert said.status == 2
        assert "write SEAT=IN,OUT such as critic=3,15" in said.err

    def test_a_price_for_an_unknown_seat_is_misuse(self, witan):
        """A misspelt seat must not remain without its price."""
        said = witan("plan", "Which?", *MEMBERS, "--price", "aa=1,2")

        assert said.status == 2
        assert all(fact in said.err for fact in ("--price", "'aa'", "did you mean 'a'?"))

    def test_an_untrusted_file_may_not_set_a_price(self, witan, tmp_path):
        """It may come from a repository; the error states what it may set."""
        (tmp_path / "witan.toml").write_text("[price]\na = [0, 0]\n")

        said = witan("plan", "Which?", *MEMBERS)

        assert said.status == 2
        assert "price.a sets the price" in said.err

    def test_from_python_it_is_a_mapping(self):
        """Council, from_config and ask take it; an unknown seat is refused."""
        members = [f"a={FAR}#m", f"b={FAR}#m"]

        priced = Council(members, price={"a": (3, 15), f"{FAR}#m": (1, 2)})
        read = Council.from_config(members=members, price={"a": (3, 15)})

        assert [m.price for m in priced.members] == [Price(3, 15), Price(1, 2)]
        assert [m.price for m in read.members] == [Price(3, 15), None]
        with pytest.raises(UnknownName, match="a price 'c'"):
            Council(members, price={"c": (1, 2)})
        with pytest.raises(ConfigError, match="unknown seat 'c'"):
            Council.from_config(members=members, price={"c": (1, 2)})
        with pytest.raises(OverBudget, match="smallest complete session needs"):
            package.ask("?", members, price={f"{FAR}#m": (1, 2)}, max_cost_usd=0.001)


class TestLoopback:
    """A server on this machine costs nothing unless it is said to."""

    def test_a_ceiling_does_not_keep_it_from_being_called(self, witan):
        """The session is complete and free under a ceiling of a cent."""
        with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 6, "dan": 4}) as server:
            members = [w for n in server.worth for w in ("--member", f"{n}={server.url}#{n}")]
            said = witan("ask", "Which?", *members, "--max-cost", 0.01, "--json")

        assert (said.status, said.json["status"]) == (0, "complete")
        assert said.json["cost"]["total_usd"] == 0.0


class Billing(MisbehavingServer):
    """A server that says what each of its calls costs.

    Parameters
    ----------
    usd
        US dollars of one call; any JSON value.
    """

    def __init__(self, usd: object, seats: str = "abcd") -> None:
        super().__init__({seat: 9 - place for place, seat in enumerate(seats)})
        self.usd = usd

    def _manner(self, request):
        manner = super()._manner(request)
        return replace(manner, usage={**(manner.usage or {}), "cost": self.usd})

    @property
    def members(self) -> list[str]:
        return [w for seat in self.worth for w in ("--member", f"{seat}={self.url}#{seat}")]


class TestBillsFromLoopback:
    """A server on this machine that bills its calls is believed, and no longer free."""

    def test_the_bill_counts_and_the_ceiling_holds(self, witan):
        """Four answers are billed before anybody knows; no further call is made."""
        with Billing(1.2) as server:
            said = witan("ask", "Which?", *server.members, "--max-cost", 0.01, "--json")
            calls = len(server.calls())

        assert calls == 4
        assert said.status != 0
        assert said.json["cost"]["total_usd"] == pytest.approx(4.8)
        [note] = [n for n in said.json["notes"] if n.startswith("a: ")]
        assert "its price is unknown" in note

    @pytest.mark.parametrize("kind", ["empty", "null"])
    @pytest.mark.parametrize("prices", [[], ["--price", "a=1,2"]], ids=["free", "priced"])
    def test_an_empty_reply_costs_what_its_server_bills(self, witan, kind, prices):
        """Each attempt counts in full, though it brought no answer."""
        with Billing(0.5) as server:
            server.fault("a", kind, stage="answer")
            asked = ["ask", "Which?", *server.members, *prices, "--attempts", 2, "--json"]
            said = witan(*asked)

        [failed] = [x for x in said.json["events"] if x["event"] == "answer_failed"]
        assert failed["spent"]["calls"] == 2
        assert failed["spent"]["cost_usd"] == pytest.approx(1.0)

    def test_a_free_seat_that_bills_empty_replies_is_not_called_again(self, witan):
        """Under a ceiling its first bill ends its calls."""
        with Billing(1.2) as server:
            server.fault("a", "empty", stage="answer")
            said = witan("ask", "Which?", *server.members, "--max-cost", 0.01, "--json")
            calls = len(server.calls("a"))

        [failed] = [x for x in said.json["events"] if x["event"] == "answer_failed"]
        assert calls == 1
        assert "contradict its price" in failed["reason"]

    @pytest.mark.parametrize("usd", [900.0, -2, 10**400])
    def test_an_impossible_bill_leaves_the_cost_unknown(self, witan, usd):
        """It is not taken at the price of the tokens, and a ceiling ends the calls there."""
        with Billing(usd) as server:
            said = witan("ask", "Which?", *server.members, "--max-cost", 0.01, "--json")
            calls = len(server.calls())

        assert calls == 4
        assert said.json["cost"]["total_usd"] is None

    def test_an_impossible_bill_of_a_priced_seat_leaves_its_cost_unknown(self, witan):
        """The tokens at the price say nothing where the server says something else."""
        with Billing(900.0) as server:
            priced = [w for seat in server.worth for w in ("--price", f"{seat}=1,2")]
            said = witan("ask", "Which?", *server.members, *priced, "--json")

        assert (said.status, said.json["status"]) == (0, "complete")
        assert said.json["cost"]["total_usd"] is None

    def test_a_bill_of_nothing_is_free(self, witan):
        """A server that says 0 stays free under any ceiling."""
        with Billing(0) as server:
            said = witan("ask", "Which?", *server.members, "--max-cost", 0.0001, "--json")

        assert (said.status, said.json["cost"]["total_usd"]) == (0, 0.0)


class TestExpected:
    """A plan says what a session is expected to cost, beside what it costs at most."""

    def test_it_rests_on_published_lengths_without_a_history(self, witan):
        """Far below the bound, it is the same in text and JSON."""
        priced = ["--price", "a=1,2", "--price", "b=1,2", "--price", "c=1,2", "--price", "d=1,2"]
        plan = witan("plan", "Which?", *MEMBERS, *priced, "--json").json
        text = witan("plan", "Which?", *MEMBERS, *priced).out

        assert 0 < plan["expected_usd"] < plan["worst_usd"] / 5
        assert plan["expected_from"] == 0
        expected = dollars(plan["expected_usd"])
        assert f"Expected if nothing fails: {expected}, based on published lengths." in text

    def test_it_follows_the_lengths_of_the_history(self, witan):
        """After a session of short replies it expects short replies, and says from how many."""
        with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 6, "dan": 4}) as server:
            members = [w for n in server.worth for w in ("--member", f"{n}={server.url}#{n}")]
            priced = [w for n in server.worth for w in ("--price", f"{n}=1,2")]
            before = witan("plan", "Which?", *members, *priced, "--json").json
            asked = witan("ask", "Which?", *members, *priced, "--json").json
            after = witan("plan", "Which?", *members, *priced, "--json").json
            text = witan("plan", "Which?", *members, *priced).out

        assert (before["expected_from"], after["expected_from"]) == (0, 1)
        assert after["expected_usd"] < before["expected_usd"]
        assert after["expected_usd"] == pytest.approx(asked["cost"]["total_usd"], rel=0.8)
        assert "1 earlier session" in text

    def test_a_history_counts_single_calls(self, witan):
        """Two orders of a sheet are two reviews, so the cost is not doubled a second time."""
        with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 6, "dan": 4}) as server:
            members = [w for n in server.worth for w in ("--member", f"{n}={server.url}#{n}")]
            priced = [w for n in server.worth for w in ("--price", f"{n}=0,1000000")]
            witan("ask", "Which?", "--mirrored", *members, *priced)
            plan = witan("plan", "Which?", "--mirrored", *members, *priced, "--json").json

        reviews = [x for x in plan["lines"] if x["stage"] == "review"]
        assert [(x["calls"], x["expected_usd"]) for x in reviews] == [(2, 40.0)] * 4

    def test_python_plans_by_the_history_too(self, tmp_path):
        """A council with a history plans by it, one without it by published lengths."""
        place = tmp_path / "own.db"
        with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 6, "dan": 4}) as server:
            seats = [f"{n}={server.url}#{n}" for n in server.worth]
            council = Council(seats, history=place)
            before = council.plan("Which?")
            package.ask("Which?", seats, history=place, files={"a.txt": 'x\0"seats":"spent":'})
            after = council.plan("Which?")

        assert (before.expected_from, after.expected_from) == (0, 1)
        assert Council(seats).plan("Which?").expected_from == 0


class TestUnpricedUnderACeiling:
    """Members without a price leave a council that can sit, or the question is refused."""

    def test_ask_refuses_before_any_call_and_keeps_nothing(self, witan):
        """The line names the members and both ways to set a price; no session is stored."""
        said = witan("ask", "Which?", *MEMBERS, "--max-cost", 1)
        kept = witan("sessions", "--json")

        assert said.status == 4
        assert all(fact in said.err for fact in ("$1.00", "a, b, c, d are"))
        assert "--price a=IN,OUT" in said.err
        assert "price = [IN, OUT]" in said.err
        assert "there is no history yet" in kept.err

    def test_one_price_is_too_few(self, witan):
        """Two answers are the fewest; the plan says the same beforehand."""
        given = (*MEMBERS, "--max-cost", 1, "--price", "a=1,2")
        said, planned = witan("ask", "Which?", *given), witan("plan", "Which?", *given)

        assert said.status == 4
        assert "fewer than two members" in said.err
        assert all(fact in planned.out for fact in ("would be refused", "fewer than two members"))

    def test_doctor_says_so(self, witan, tmp_path):
        """A configured ceiling that no council can keep is a problem, and the exit status 2."""
        members = ", ".join(f'"{n}={FAR}#m-{n}"' for n in "abcd")
        (tmp_path / "witan.toml").write_text(f"members = [{members}]\n[limits]\nmax_cost_usd = 1\n")

        said = witan("doctor", "--offline")

        assert said.status == 2
        assert "under the ceiling" in " ".join(said.out.split())

    def test_members_without_a_price_are_skipped_if_enough_others_are_priced(self, witan):
        """The output says so before the first call."""
        with MisbehavingServer({"ada": 9, "bob": 8, "cyd": 6}) as server:
            members = [w for n in server.worth for w in ("--member", f"{n}={server.url}#{n}")]
            far = ("--member", f"far={FAR}#m")
            said = witan("ask", "Which?", *members, *far, "--max-cost", 1, "--max-tokens", 1000)

        assert said.status == 0, said.err
        assert all(fact in said.err for fact in ("price unknown (ceiling $1.00)", ": far"))
