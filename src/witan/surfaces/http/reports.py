"""The native API: operations on what is stored, and what there is to choose from."""

from witan.service.operations.audit import audit
from witan.service.operations.leaderboard import leaderboard
from witan.service.operations.profiles import profiles
from witan.service.operations.recount import recount
from witan.service.operations.rubrics import rubrics
from witan.service.operations.rules import rules
from witan.service.operations.session_list import sessions
from witan.service.operations.voting import paper, vote
from witan.surfaces.http.documents import operations
from witan.surfaces.http.generated import add_value_route

router = operations()

for declared in (sessions, recount, paper, vote, leaderboard, audit, rules, rubrics, profiles):
    add_value_route(router, declared)
