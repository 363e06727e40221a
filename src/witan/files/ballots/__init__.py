"""Ballots in files, read and written."""

from witan.files.ballots.formats import FORMATS
from witan.files.ballots.opening import Bounds
from witan.files.ballots.problems import LineProblem
from witan.files.ballots.reading import read_ballots
from witan.files.ballots.writing import write_ballots

__all__ = ["FORMATS", "Bounds", "LineProblem", "read_ballots", "write_ballots"]
