"""A user's home and a project, in which a configuration is written and read."""

from pathlib import Path
from typing import NamedTuple

import pytest

from witan.errors import ConfigError
from witan.service.config.configuration import Config, load_config
from witan.service.procedure_options import procedure_of


class Place(NamedTuple):
    """A user's home and a project, and what is set in its variables."""

    project: Path
    own: Path

    def write(self, text: str) -> str:
        """Write the project's file; return its path."""
        path = self.project / "witan.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    def write_own(self, text: str) -> str:
        """Write the user's file; return its path."""
        self.own.parent.mkdir(parents=True, exist_ok=True)
        self.own.write_text(text, encoding="utf-8")
        return str(self.own)

    def load(self, path=None, overrides=None, directory=None, **variables: str) -> Config:
        """Read the configuration under these variables."""
        environment = {"XDG_CONFIG_HOME": str(self.own.parents[1]), **variables}
        return load_config(environment, directory or self.project, path, overrides or {})

    def refuse(self, **given) -> str:
        """The one sentence with which the configuration is refused."""
        with pytest.raises(ConfigError) as caught:
            procedure_of(self.load(**given))
        assert "\n" not in str(caught.value)
        return str(caught.value)
