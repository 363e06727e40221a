"""The programs on the page about OpenAI's protocol run and print what it shows."""

import shlex
import shutil

import pytest

from pages import ROOT, blocks, same
from processes import run_program, run_python
from served import serving_process

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "openai.md"
ADDRESS = "http://127.0.0.1:8717"


@pytest.fixture
def address(tmp_path):
    """The address of a demonstration server."""
    with serving_process("--fast-demo", "--no-history", cwd=tmp_path) as (url, _):
        yield url


@pytest.mark.parametrize("name", ["ask.py", "follow.py", "respond.py"])
def test_a_program_prints_the_output_shown(address, name):
    """With the address of this server."""
    found = blocks(PAGE)
    [place] = [i for i, block in enumerate(found) if block.title == name]
    program = found[place].text.replace(ADDRESS, address)
    done = run_python(program)

    assert done.stderr == ""
    assert same(found[place + 1].text, done.stdout), done.stdout


def test_the_command_returns_an_answer(address):
    """As written."""
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    [command] = [block.text for block in blocks(PAGE) if block.language == "sh"]
    done = run_program(
        *shlex.split(command.replace("\\\n", "").replace(ADDRESS, address)), "-sS", check=True
    )

    assert '"chat.completion"' in done.stdout
