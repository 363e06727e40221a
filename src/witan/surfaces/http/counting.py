"""The native API: ballots that a client sends, counted and forgotten."""

from witan.service.operations.compare import compare
from witan.service.operations.explain import explain
from witan.service.operations.tally import tally
from witan.surfaces.http.documents import operations
from witan.surfaces.http.generated import add_value_route

router = operations()

for _operation in (tally, compare, explain):
    add_value_route(router, _operation)
