"""Ballots that come as files and leave as files."""

from witan.adapters.ballots.bounds import Bounds
from witan.adapters.ballots.formats import FORMATS
from witan.adapters.ballots.problems import Problem
from witan.adapters.ballots.reading import read_ballots
from witan.adapters.ballots.writing import write_ballots

__all__ = ["FORMATS", "Bounds", "Problem", "read_ballots", "write_ballots"]
