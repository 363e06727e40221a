"""The container image: built, run as its user, called and stopped.

The image that the container file begins with comes from a registry. In its place stands a Debian
with the same Python, made of Debian's packages.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from pages import ROOT
from processes import run_program
from served import free_port

pytestmark = pytest.mark.slow

SUITES = {"3.11": "bookworm", "3.13": "trixie"}
"""Python to the Debian that has it."""

PACKAGES = "python3,python3-venv,python3-pip,ca-certificates,netbase,tzdata"

MIRROR = "http://deb.debian.org/debian"

TOKEN = "a-token-of-sixteen-characters"  # noqa: S105 - of a server of this test

USER = 10001

CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


class Builder:
    """What builds and runs images without an engine, in a store of its own."""

    def __init__(self, command: str, folder: Path) -> None:
        store = ["--root", folder / "store", "--runroot", folder / "run"]
        self._command = [command, *map(str, store), "--storage-driver", "vfs"]

    def command(self, verb: str, *arguments: object) -> list[str]:
        isolated = ["--isolation", "chroot"] if verb in ("bud", "run") else []
        return [*self._command, verb, *isolated, *map(str, arguments)]

    def __call__(self, verb: str, *arguments: object, seconds: float = 300) -> str:
        done = run_program(*self.command(verb, *arguments), timeout=seconds, cwd=ROOT)
        assert done.returncode == 0, f"{verb}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout.strip()


def began_with() -> tuple[str, str]:
    """The image that the container file begins with, and its Python."""
    text = (ROOT / "deploy/Containerfile").read_text(encoding="utf-8")
    [python] = re.findall(r"^ARG PYTHON=(\S+)$", text, flags=re.MULTILINE)
    [image, *others] = re.findall(r"^FROM (\S+)", text, flags=re.MULTILINE)
    assert others == [image]
    return image.replace("${PYTHON}", python), python


def debian(folder: Path, suite: str) -> None:
    """Fill a folder with a Debian that has Python, or skip."""
    if command := shutil.which("mmdebstrap"):
        making = [command, "--quiet", "--variant=minbase", f"--include={PACKAGES}"]
    elif command := shutil.which("debootstrap"):
        making = [command, "--variant=minbase", f"--include={PACKAGES}"]
    else:
        pytest.skip("there is neither mmdebstrap nor debootstrap to make a Debian")
    done = run_program(*making, suite, folder, MIRROR, timeout=600)
    if done.returncode:
        pytest.skip(f"no Debian could be made: {(done.stderr or done.stdout)[-300:]}")
    # As the image in whose place it stands calls it.
    (folder / "usr/local/bin/python").symlink_to("/usr/bin/python3")


@pytest.fixture(scope="module")
def builder(tmp_path_factory) -> Iterator[Builder]:
    """A builder that holds the stand-in, and the image that was built on it."""
    command = shutil.which("buildah")
    if not os.environ.get("TEST_IMAGE"):
        pytest.skip("TEST_IMAGE=1 builds the image, which takes minutes and gigabytes")
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("only root can build an image without an engine, on Linux")
    if command is None:
        pytest.skip("there is no buildah")
    if os.environ.get("PIP_NO_INDEX"):
        pytest.skip("no packages can be fetched")
    image, python = began_with()
    folder = tmp_path_factory.mktemp("image")
    try:
        debian(folder / "debian", SUITES[python])
        build = Builder(command, folder)
        stand_in = build("from", "scratch")
        build("add", "--quiet", stand_in, folder / "debian", "/")
        build("commit", "--quiet", "--rm", stand_in, image)
        # Where connections are looked into, their certificates are known to this machine alone.
        known = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"] if CERTIFICATES.exists() else []
        given = ["--format", "docker", "--pull-never", "--tag", "witan", *known]
        build("bud", *given, "--file", "deploy/Containerfile", ".", seconds=900)
        yield build
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def container(builder) -> str:
    """A container of the image: one for all, as each is a copy of all that the image holds."""
    return builder("from", "--pull-never", "localhost/witan")


@pytest.fixture(scope="module")
def configured(builder) -> dict[str, object]:
    """What the image says of itself."""
    held = json.loads(builder("inspect", "--type", "image", "localhost/witan"))
    return held["Docker"]["config"]


def lowest(process: int) -> tuple[int, int]:
    """The process that a builder started in the end, and its user."""
    parents, users = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            said = (folder / "status").read_text(encoding="utf-8")
            parents[int(folder.name)] = int(re.findall(r"^PPid:\t(\d+)$", said, re.MULTILINE)[0])
            users[int(folder.name)] = int(re.findall(r"^Uid:\t(\d+)", said, re.MULTILINE)[0])
    below = process
    while children := [each for each, parent in parents.items() if parent == below]:
        [below] = children
    return below, users.get(below, 0)


def ask(port: int, path: str, body: object = None) -> tuple[int, str]:
    """Ask the server, past every proxy of this machine."""
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"http://127.0.0.1:{port}{path}", data, headers)
    with build_opener(ProxyHandler({})).open(request, timeout=60) as answer:
        return answer.status, answer.read().decode()


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run it, and end it and all that it started if nobody else has."""
    with subprocess.Popen(  # noqa: S603 - our own image
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.kill(lowest(process.pid)[0], signal.SIGKILL)
                process.kill()


def await_health(port: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with suppress(URLError, ConnectionError):
            if ask(port, "/healthz")[0] == 200:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not start")


def run_of(configured: dict[str, object], port: int) -> Sequence[str]:
    """What the image runs when nothing else is said, at another port."""
    entry, given = configured["Entrypoint"], configured["Cmd"]
    return [text.replace("8717", str(port)) for text in (*entry, *given)]


def test_an_unprivileged_user_runs_and_stops_the_server(builder, container, configured):
    """The server answers, is healthy, writes only to its folder, and ends with 0."""
    port = free_port()
    began = time.time()
    command = builder.command("run", "--env", f"WITAN_TOKEN={TOKEN}", container, "--")
    with running([*command, *run_of(configured, port), "--fast-demo"]) as process:
        await_health(port, process)
        server, user = lowest(process.pid)
        question = {"question": "Are times best saved in UTC?", "profile": "demo"}
        status, record = ask(port, "/api/sessions?wait=60", question)
        page = ask(port, "/")
        health = [text.replace("8717", str(port)) for text in configured["Healthcheck"]["Test"][1:]]
        builder("run", container, "--", *health)
        kept = builder("run", container, "--", "witan", "sessions", "--json")
        os.kill(server, signal.SIGTERM)
        _, said = process.communicate(timeout=60)

    assert configured["User"] == f"{USER}:{USER}"
    assert user == USER
    assert configured["StopSignal"] == "SIGTERM"
    assert (status, page[0]) == (200, 200)
    assert json.loads(record)["simulated"]
    assert "saved in UTC?" in kept
    assert process.returncode == 0, said
    assert not {*written(Path(builder("mount", container)), began)}


def written(root: Path, since: float) -> Iterator[str]:
    """Files outside of where it may write that are newer than that."""
    for path in root.rglob("*"):
        place = path.relative_to(root)
        if place.parts[:1] in (("tmp",), ("proc",), ("sys",), ("dev",), ("run",)):
            continue
        if place.parts[:3] == ("var", "lib", "witan") or not path.is_file() or path.is_symlink():
            continue
        if path.stat().st_mtime > since:
            yield str(place)


def test_the_image_does_not_start_without_a_token(builder, container, configured):
    """Clients of a container are not on its machine."""
    done = run_program(*builder.command("run", container, "--"), *run_of(configured, free_port()))

    assert done.returncode == 2
    assert "set a token in WITAN_TOKEN" in done.stderr


def test_the_stand_in_has_the_python_of_the_base_image(builder, container):
    """Otherwise another Python would be tested."""
    said = builder("run", container, "--", "python", "--version")

    assert said.startswith(f"Python {began_with()[1]}.")
