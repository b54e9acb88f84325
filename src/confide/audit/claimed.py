"""Which rows of a run's statement canaries can test, and what such a row claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from confide import cells
from confide.accounting import account, gdp
from confide.accounting.events import (
    OPEN,
    DpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from confide.accounting.relations import Refused, Relation
from confide.audit.bounds import Curve
from confide.audit.ceilings import ceiling
from confide.cells import Cell, arguments, best, cell_by, default_delta
from confide.cohorts import Poisson
from confide.derive import Release, derive
from confide.engine.adapting import Account
from confide.engine.rounds import Round, Sizes
from confide.engine.sightings import Odds, main
from confide.engine.spending import Plan
from confide.stages import Assume, Rotate
from confide.statements import groups

VIEWS = ("world", "server")


@dataclass(frozen=True)
class Row:
    """One row, with the releases that it composes; none where only its two numbers are known."""

    cell: Cell
    way: str
    ways: tuple[tuple[Release, int], ...] = ()

    @property
    def relation(self) -> Relation:
        """Which two worlds it compares."""
        return Relation(self.cell.relation)

    @property
    def odds(self) -> Odds | None:
        """What it says of the first round, if that is a Gaussian release behind a coin."""
        if not self.ways:
            return None
        first = self.ways[0][0]
        event, rate = first.event, first.chance
        match event:
            case PoissonSampledDpEvent():
                event, rate = event.event, rate * float(event.sampling_probability)
            case SampledWithoutReplacementDpEvent():
                event, rate = event.event, rate * event.sample_size / event.source_dataset_size
            case _:
                pass
        shift = gdp.ratio(event)
        return Odds(rate, shift) if shift and rate < 1 else None

    def at(self, participations: int) -> Row:
        """The same for units that took part at most so often, where their turns are in sight."""
        if not self.ways or not 0 < participations < self.cell.participations:
            return self
        first = self.ways[0][0]
        if first.rounds != "participations" or first.chance < 1 or not self.plain:
            return self
        event = SelfComposedDpEvent(first.event, participations)
        epsilon = account.epsilon(event, self.cell.delta, first.relation).epsilon
        cell = replace(self.cell, epsilon=epsilon, participations=participations)
        return Row(cell, self.way, ((replace(first, rounds="all"), participations),))

    @property
    def plain(self) -> bool:
        """Whether the row is the composition of its releases and nothing else."""
        return all(
            way.hops == 1 and not way.fails and way.event == self.ways[0][0].event
            for way, _ in self.ways
        )

    def curve(self) -> Curve:
        """The least error that it leaves to an attacker."""
        event: DpEvent | None = None
        if self.ways and all(way.hops == 1 and not way.fails for way, _ in self.ways):
            found, _ = cells.over_rounds(list(self.ways))
            event = None if found == OPEN else found
        return ceiling(event, self.relation, self.cell.epsilon, self.cell.delta)


def rows(
    plan: Plan, sizes: Sizes, delta: float | None, held: Sequence[Account] | None = None
) -> list[Row]:
    """Every row about the update to the world and the server; the worst group of clients."""
    found: dict[tuple[str, str], list[Row]] = {}
    if held is not None:
        for one in held:
            if one.cell.of == "update":
                found.setdefault(one.key[:2], []).append(Row(one.cell, one.way))
    else:
        members = groups(plan, sizes)
        for group, client in members:
            lived = [(r if client is None else r.for_client(client), n) for r, n in plan]
            derived = [(derive(r, sizes), n) for r, n in lived]
            for unit in ("client", "record"):
                at = default_delta(unit, sizes) if delta is None else delta
                for view in VIEWS:
                    options = arguments((unit, view, "update"), derived)
                    row = proved((unit, view, "update"), options, at, group)
                    alone = row if len(members) == 1 else replace(row, ways=())
                    found.setdefault((unit, view), []).append(alone)
    wanted = [(unit, view) for unit in ("client", "record") for view in VIEWS]
    return [max(found[key], key=lambda row: row.cell.epsilon) for key in wanted if key in found]


def proved(
    key: tuple[str, str, str], options: list[list[tuple[Release, int]]], delta: float, group: str
) -> Row:
    """The argument that the statement rests on."""
    cells = [cell_by(key, ways, delta, group) for ways in options]
    cell = best(cells)
    ways = next((w for w, c in zip(options, cells, strict=True) if c == cell), [])
    return Row(cell, ways[0][0].way if ways else "", tuple(ways))


def testable(row: Row, plan: Plan) -> str:
    """Why canaries cannot test this row, if so: what they are must be a case of what it claims."""
    cell, rounds = row.cell, [r for r, _ in plan]
    if cell.epsilon == inf:
        return f"nothing is claimed of it ({cell.reason})"
    if any(isinstance(stage, Assume) for r in rounds for _, _, stage in r.stages()):
        return "it rests on an assumption about the data, which a canary need not keep"
    if cell.unit == "client" and row.way.startswith("local steps"):
        return "it rests on noise in the local steps, and a canary client takes none"
    if any(r.uploads[main(r)].value is not None for r in rounds):
        return f"{main(rounds[0])!r} is a value of the method's own, which no canary goes into"
    if row.relation is Relation.ADD_REMOVE and not all(hides(r, cell.unit) for r in rounds):
        return "add-remove needs Poisson sampling"
    turned = any(isinstance(s, Rotate) for r in rounds for s in r.uploads[main(r)].stages)
    if cell.observer == "server" and turned:
        return "what the server sees of it is rotated"
    return ""


def hides(r: Round, unit: str) -> bool:
    """Whether the unit's own coin lets it be absent."""
    return isinstance(r.cohort if unit == "client" else r.local.sampler, Poisson)


def design(found: Sequence[Row], plan: Plan, unit: str | None, view: str | None) -> Row:
    """The row whose relation the canaries follow: of those they can test, the smallest epsilon."""
    wanted = [
        row for row in found if unit in (None, row.cell.unit) and view in (None, row.cell.observer)
    ]
    fitting = [row for row in wanted if not testable(row, plan)]
    if not fitting:
        reasons = "; ".join(
            f"{row.cell.unit} to the {row.cell.observer}: {testable(row, plan)}" for row in wanted
        )
        raise Refused(f"audit: canaries can test no row of the statement ({reasons}).")
    return min(fitting, key=lambda row: row.cell.epsilon)


def tested(found: Sequence[Row], plan: Plan, unit: str, relation: Relation) -> list[Row]:
    """The rows that canaries of this unit and relation are a case of."""
    speaks = {relation}
    if relation is Relation.ZERO_OUT:
        speaks.add(Relation.REPLACE_ONE)  # what is proved for any two inputs
    return [
        row
        for row in found
        if row.cell.unit == unit and row.relation in speaks and not testable(row, plan)
    ]
