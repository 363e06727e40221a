"""No key of the environment stands in a signature, in `help()` or in a repr."""

import os
import sys

import pytest

from processes import run_program

KEY = "sk-3f9d-a-key-that-nobody-may-see"

VARIABLES = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENROUTER_API_KEY", "GEMINI_API_KEY",
    "GOOGLE_API_KEY", "MISTRAL_API_KEY", "DEEPSEEK_API_KEY", "GROQ_API_KEY", "XAI_API_KEY",
    "OWN_SECRET",
)  # fmt: skip

PUBLIC = """
import inspect, pydoc, witan

for name in sorted(witan.__all__):
    value = getattr(witan, name)
    print(name, repr(value), pydoc.plain(pydoc.render_doc(value)))
    if callable(value):
        try:
            print(inspect.signature(value))
        except ValueError:
            pass
"""

MODULES = """
import importlib, pkgutil, pydoc, witan

for found in pkgutil.walk_packages(witan.__path__, "witan."):
    if not found.name.endswith("__main__"):
        try:
            module = importlib.import_module(found.name)
        except ImportError:
            continue
        print(pydoc.plain(pydoc.render_doc(module)))
"""

OBJECTS = """
import collections, os, types, witan

SEATS = ["openai:gpt-5", "anthropic:claude-sonnet-4", "openrouter:a/b", "groq:g", "xai:grok"]

def council():
    seated = []
    for seat in SEATS:
        try:
            witan.Council([seat, "openai:gpt-5"])
        except witan.WitanError as error:  # its client is not installed
            print(error)
        else:
            seated.append(seat)
    return witan.Council(seated)

def within(value):
    if isinstance(value, dict | collections.abc.Mapping):
        yield from value.values()
    elif isinstance(value, list | tuple | set | frozenset):
        yield from value
    yield from getattr(value, "__dict__", {}).values()
    for name in ("__self__", "func", "args", "keywords", *slots(type(value))):
        if hasattr(value, name):
            yield getattr(value, name)

def slots(kind):
    for base in kind.__mro__:
        held = base.__dict__.get("__slots__", ())
        yield from [held] if isinstance(held, str) else held

seen, left, reached = set(), [council()], False
while left:
    value = left.pop()
    if isinstance(value, str):
        reached = reached or value == os.environ["OPENAI_API_KEY"]
    elif id(value) not in seen and not isinstance(value, type | types.ModuleType):
        seen.add(id(value))
        if type(value).__module__.startswith("witan"):
            print(type(value), repr(value))
        left += within(value)
assert reached
"""


@pytest.mark.parametrize(
    "code",
    [PUBLIC, pytest.param(MODULES, marks=pytest.mark.slow), OBJECTS],
    ids=["names", "modules", "objects"],
)
def test_no_key_is_shown(code):
    """Signatures, help and reprs of all there is, and of a council with keys, show none."""
    environment = {**os.environ, **dict.fromkeys(VARIABLES, KEY), "COLUMNS": "200"}

    run = run_program(sys.executable, "-W", "ignore", "-c", code, env=environment)

    assert run.returncode == 0, run.stderr
    assert len(run.stdout) > 1000
    assert KEY not in run.stdout + run.stderr
