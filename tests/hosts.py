"""Hosts of a test: Linux namespaces with an address each, on a switch that leads nowhere else.

A host has its own network, mounts, name and processes. Its files are in memory, under `FOLDER`,
which is its home as well; whatever else is on the disk, such as Python, it shares with the machine.
Its processes end with its first one, and that ends with the test, however the test ends. Nothing of
a host is on the machine: no file, no name of a network, no address.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

FOLDER = Path("/srv")
"""Where a host has its own files."""

NETWORK = "10.77.0"

PROGRAMS = ("ip", "unshare", "nsenter", "setpriv")

_START = f"""
set -e
mount -t tmpfs -o mode=755 none {FOLDER}
mkdir -m 777 {FOLDER}/scratch
hostname "$1"
printf '127.0.0.1 localhost\\n127.0.1.1 %s\\n' "$1" >{FOLDER}/hosts
mount --bind {FOLDER}/hosts /etc/hosts
ip link set lo up
echo ready
sleep infinity &
wait
"""


class Host:
    """A host, until it is closed.

    Parameters
    ----------
    name
        Its name on the switch.
    hostname
        What it calls itself; another host may do the same.
    """

    def __init__(self, name: str, number: int, hostname: str) -> None:
        self.name = name
        self.address = f"{NETWORK}.{number}"
        kill_with_parent = ["setpriv", "--pdeathsig", "KILL"]
        spaces = ["--net", "--mount", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            [*kill_with_parent, "unshare", *spaces, "sh", "-c", _START, "sh", hostname],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._process.stdout is not None
        if (line := self._process.stdout.readline()) != "ready\n":
            self._process.wait()
            pytest.skip(f"no host can be made in namespaces of Linux: {line.strip()}")
        [self.first] = children(self._process.pid)
        self._started: list[subprocess.Popen[str]] = []

    @property
    def folder(self) -> Path:
        """Its own files, as the test reaches them."""
        return Path(f"/proc/{self.first}/root{FOLDER}")

    def start(
        self, *command: object, variables: Mapping[str, str] | None = None, output: str = ""
    ) -> subprocess.Popen[str]:
        """Start a program in its folder.

        Parameters
        ----------
        output
            A file there that takes what the program writes; none: the caller reads it.
        """
        home = {"HOME": str(FOLDER), "TMPDIR": f"{FOLDER}/scratch"}
        with ExitStack() as files:
            out = err = subprocess.PIPE
            if output:
                out = err = files.enter_context((self.folder / output).open("ab"))
            enter = ["nsenter", "--all", f"--target={self.first}", f"--wd={self.folder}", "--"]
            process = subprocess.Popen(  # noqa: S603 - programs of the test
                [*enter, *map(str, command)],
                env={**os.environ, **home, **(variables or {})},
                stdout=out,
                stderr=err,
                text=True,
            )
        self._started.append(process)
        return process

    def run(self, *command: object, variables: Mapping[str, str] | None = None) -> str:
        """Run a program there; return its output."""
        with self.start(*command, variables=variables) as process:
            out, err = process.communicate()
        if process.returncode:
            pytest.fail(f"{' '.join(map(str, command))} on {self.name}: {out}{err}")
        return out

    def fetch(self, url: str) -> str:
        """Get a page as this host sees it."""
        get = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())"
        return self.run(sys.executable, "-c", get, url)

    def find(self, words: str) -> list[int]:
        """Find its processes whose command has these words."""
        own, found = Path(f"/proc/{self.first}/ns/pid").readlink(), []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(FileNotFoundError):  # it ended meanwhile
                if (
                    words in read_if_alive(folder / "cmdline")
                    and own == (folder / "ns/pid").readlink()
                ):
                    found.append(int(folder.name))
        return found

    def close(self) -> None:
        """End all its processes."""
        self._process.kill()
        self._process.communicate()
        for process in self._started:
            process.communicate()
        deadline = time.monotonic() + 30
        while Path(f"/proc/{self.first}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)


class Switch(Host):
    """What connects the others, each by a cable of its own."""

    def __init__(self) -> None:
        super().__init__("switch", 254, "switch")
        self.run("ip", "link", "add", "bridge", "type", "bridge")
        self.run("ip", "link", "set", "bridge", "up")

    def connect(self, host: Host) -> None:
        """Give a host its address."""
        cable = ["ip", "link", "add", host.name, "type", "veth", "peer", "name", "eth0"]
        # Said from outside, where the host's first process has the number that we know.
        enter = ["nsenter", f"--net=/proc/{self.first}/ns/net"]
        subprocess.run([*enter, *cable, "netns", str(host.first)], check=True)  # noqa: S603 - ours
        self.run("ip", "link", "set", host.name, "master", "bridge", "up")
        host.run("ip", "address", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")

    def unplug(self, host: Host) -> None:
        """Lose all packets to and from a host, which notices nothing else."""
        self.run("ip", "link", "set", host.name, "nomaster")

    def plug(self, host: Host) -> None:
        """Pass its packets on again."""
        self.run("ip", "link", "set", host.name, "master", "bridge")


@contextmanager
def network(*names: str, namesakes: Sequence[str] = ()) -> Iterator[tuple[Switch, list[Host]]]:
    """Make hosts on one switch; skip where that is not possible.

    Parameters
    ----------
    namesakes
        Hosts that call themselves the same, as copies of one machine do.
    """
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("hosts are namespaces, which only root makes, on Linux")
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip(f"hosts are namespaces, and {', '.join(missing)} is not installed")
    with ExitStack() as stack:
        switch = Switch()
        stack.callback(switch.close)
        hosts = []
        for number, name in enumerate(names, start=1):
            hosts.append(Host(name, number, "localhost" if name in namesakes else name))
            stack.callback(hosts[-1].close)
            switch.connect(hosts[-1])
        yield switch, hosts


def children(number: int) -> list[int]:
    """The processes that a process started."""
    lists = (read_if_alive(each) for each in Path(f"/proc/{number}/task").glob("*/children"))
    return [int(child) for text in lists for child in text.split()]


def descendants(number: int) -> list[int]:
    """All processes that a process started, and theirs."""
    return [each for child in children(number) for each in (child, *descendants(child))]


def read_if_alive(path: Path) -> str:
    """Read a file of a process, which may have ended meanwhile."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def kill_all(number: int) -> None:
    """Kill all processes that a process started, the last first."""
    for each in reversed(descendants(number)):
        try:
            os.kill(each, signal.SIGKILL)
        except ProcessLookupError:
            continue
