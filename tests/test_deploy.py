"""The folder `deploy`, checked without a container engine."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from pages import ROOT
from processes import run_program, run_witan
from witan.service.config.configuration import load_config

DEPLOY = ROOT / "deploy"

COMPOSE = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")

SERVICE_KEYS = {
    "build", "image", "init", "restart", "stop_grace_period", "env_file", "environment", "ports",
    "volumes", "read_only", "tmpfs", "cap_drop", "security_opt", "depends_on", "healthcheck",
}  # fmt: skip
"""Of the compose specification, those that are used."""

INSTRUCTIONS = {
    "ARG", "FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK",
    "STOPSIGNAL", "ENTRYPOINT", "CMD",
}  # fmt: skip


def instructions():
    """The instructions of the container file, in order: word and rest."""
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]


def seconds(text):
    """A duration as compose writes it."""
    return int(text.removesuffix("s"))


def variables():
    """The variables that the example of an environment names, with what it says of each."""
    text = (DEPLOY / "witan.env.example").read_text(encoding="utf-8")
    return dict(re.findall(r"^#?([A-Z_]+)=(.*)$", text, flags=re.MULTILINE))


class TestContainer:
    """The container file builds a wheel, and runs it as an unprivileged user."""

    def test_the_container_file_has_two_stages_and_an_unprivileged_user(self):
        """Instructions are known, and compilers stay in the first stage."""
        found = instructions()
        words = [word for word, _ in found]

        assert set(words) <= INSTRUCTIONS
        assert words.count("FROM") == 2
        assert words.index("USER") < words.index("ENTRYPOINT")
        [user] = [rest for word, rest in found if word == "USER"]
        assert all(int(number) >= 1000 for number in user.split(":"))
        sources = [rest.split() for word, rest in found if word == "COPY" and "--from" not in rest]
        assert all((ROOT / name).exists() for names in sources for name in names[:-1])

    def test_extras_options_and_health_address_exist(self):
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
        [extras] = re.findall(r"\.whl\)\[([\w,]+)\]", text)
        [command] = [rest for word, rest in instructions() if word == "CMD"]
        [port] = [rest for word, rest in instructions() if word == "EXPOSE"]
        helped = run_witan("serve", "--help", check=True)

        assert set(extras.split(",")) <= set(project["optional-dependencies"])
        assert all(option in helped.stdout for option in re.findall(r"--\w+", command))
        assert f":{port}/healthz" in text
        assert f'"{port}"' in command

    @pytest.mark.parametrize("name", ["Containerfile", "witan.service"])
    def test_seats_of_the_example_environment_are_installed(self, name):
        """Providers that need an extra have it in the image and in the service."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        text = (DEPLOY / name).read_text(encoding="utf-8")
        [extras] = re.findall(r"pip install.*\[([\w,]+)\]", text)
        members = variables()["WITAN_MEMBERS"].split(",")
        providers = {member.partition(":")[0] for member in members}

        assert providers & {*project["optional-dependencies"]} == {"anthropic", "google"}
        assert providers & {*project["optional-dependencies"]} <= set(extras.split(","))

    @pytest.mark.slow
    def test_pip_commands_of_the_container_file_install_a_server(self, tmp_path):
        """They run unchanged in a new environment; the wheel has all assets."""
        if os.environ.get("PIP_NO_INDEX"):
            pytest.skip("no packages can be fetched")
        runs = [rest for word, rest in instructions() if word == "RUN" and "pip" in rest]
        script = " && ".join(runs).replace("/opt/witan", f"{tmp_path}/witan")
        script = script.replace("/wheels", f"{tmp_path}/wheels")
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, tmp_path)
        shutil.copytree(ROOT / "src", tmp_path / "src")
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path}
        environment.pop("PYTHONPATH", None)
        subprocess.run(  # noqa: S603 - our own commands
            ["/bin/sh", "-ec", script], cwd=tmp_path, env=environment, check=True, timeout=900
        )
        installed = run_program(
            tmp_path / "witan/bin/python",
            "-c",
            "import opentelemetry.sdk, psycopg, mcp\nfrom witan.surfaces.http import server\n"
            "from witan.surfaces.web import rendering\nimport witan\nprint(witan.__file__)",
            cwd=tmp_path / "wheels",
            env=environment,
            check=True,
        )

        assert str(tmp_path / "witan") in installed.stdout


class TestCompose:
    """The compose file refers to existing things."""

    def test_keys_of_the_compose_file_are_in_the_specification(self):
        """Everything that they name exists."""
        compose = yaml.safe_load(COMPOSE)

        assert set(compose) == {"name", "services", "volumes"}
        for service in compose["services"].values():
            assert set(service) <= SERVICE_KEYS
            for volume in service["volumes"]:
                assert volume.partition(":")[0] in compose["volumes"]
            for name, how in service.get("depends_on", {}).items():
                assert how == {"condition": "service_healthy"}
                assert "healthcheck" in compose["services"][name]
        build = compose["services"]["witan"]["build"]
        assert (DEPLOY / build["context"] / build["dockerfile"]).exists()

    def test_the_compose_file_has_no_secret(self):
        """A password comes from outside, and is required."""
        compose = yaml.safe_load(COMPOSE)

        for service in compose["services"].values():
            for name, value in service["environment"].items():
                if "PASSWORD" in name:
                    assert re.fullmatch(r"\$\{\w+:\?.+\}", value), name
        assert compose["services"]["witan"]["env_file"] == "witan.env"

    def test_only_the_proxy_reaches_the_server(self):
        """The server may write little, and has longer to stop than its sessions."""
        service = yaml.safe_load(COMPOSE)["services"]["witan"]
        settings = load_config({}, ROOT / "deploy").serve

        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
        assert seconds(service["stop_grace_period"]) > settings.grace_seconds


class TestProxies:
    """Examples of proxies; nginx has tests of its own, in front of a server."""

    def test_the_example_of_caddy_is_valid(self):
        """Every directive is known at its place."""
        caddy = shutil.which("caddy")
        if caddy is None:
            pytest.skip("there is no Caddy")
        done = run_program(caddy, "adapt", "--config", DEPLOY / "Caddyfile")

        assert done.returncode == 0, done.stderr
        assert '"flush_interval":-1' in done.stdout


class TestService:
    """The unit of systemd."""

    def test_the_unit_is_valid(self, tmp_path):
        """Every key and value is known to the installed systemd."""
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("there is no systemd-analyze")
        text = (DEPLOY / "witan.service").read_text(encoding="utf-8")
        unit = tmp_path / "witan.service"
        unit.write_text(text.replace("/opt/witan/bin/witan", sys.executable), encoding="utf-8")
        done = run_program(analyze, "verify", "--man=no", unit)

        assert "witan.service" not in done.stderr, done.stderr
        assert done.returncode == 0

    def test_the_unit_has_a_low_exposure(self):
        """Systemd rates it; 10 is a service without any confinement."""
        analyze = shutil.which("systemd-analyze")
        if analyze is None:
            pytest.skip("there is no systemd-analyze")
        command = [analyze, "security", "--offline=true", "--threshold=15"]
        done = run_program(*command, DEPLOY / "witan.service")
        if "unrecognized option" in done.stderr:
            pytest.skip("this systemd-analyze looks at running services alone")

        assert done.returncode == 0, done.stdout

    def test_the_unit_waits_for_its_sessions_to_end(self):
        """Otherwise they would be killed."""
        text = (DEPLOY / "witan.service").read_text(encoding="utf-8")
        [stop] = re.findall(r"^TimeoutStopSec=(\d+)$", text, flags=re.MULTILINE)

        assert int(stop) > load_config({}, ROOT / "deploy").serve.grace_seconds


class TestEnvironment:
    """The example of environment variables."""

    def test_every_witan_variable_is_a_setting(self):
        """Each value has an effect."""
        ours = {name: text for name, text in variables().items() if name.startswith("WITAN_")}
        given = {name: text or "a-token-of-sixteen-characters" for name, text in ours.items()}
        config = load_config(given, ROOT / "deploy")

        assert len(given) > 8
        assert config.serve.public_url == given["WITAN_SERVE_PUBLIC_URL"]
        assert config.serve.trusted_proxies == ("127.0.0.1",)
        assert "default" in config.serve.tokens

    def test_the_example_has_no_secret(self):
        """Secrets are left empty."""
        for name, text in variables().items():
            if "KEY" in name or "TOKEN" in name or "PASSWORD" in name:
                assert text == "", name
