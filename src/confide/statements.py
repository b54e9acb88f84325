"""The statement: what is proved for each unit and observer, as data and in words.

The items follow what NIST SP 800-226 asks of a differential-privacy claim: the unit, the
neighbouring relation, the trust model (who sees what), epsilon and delta, how they were computed,
and what they rest on. Beside the proved cells stands the published claim, never mixed with them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confide.accounting.relations import Refused
from confide.cells import Cell, arguments, best, cell_by, default_delta
from confide.published.value import Published

if TYPE_CHECKING:
    from confide.engine.rounds import Round, Sizes


@dataclass(frozen=True)
class Statement:
    """All rows of a run or a plan, and what was published about it."""

    cells: tuple[Cell, ...]
    rounds: int
    sizes: Sizes
    noise: tuple[str, ...]
    published: Published | None = None

    def cell(self, unit: str, observer: str, of: str = "update") -> Cell:
        """One row; the worst group where clients differ."""
        found = [c for c in self.cells if (c.unit, c.observer, c.of) == (unit, observer, of)]
        if not found:
            raise KeyError(f"no row for {unit}, {observer}, {of}")
        return max(found, key=lambda c: c.epsilon)

    def rows(self) -> list[dict[str, Any]]:
        """The `statement` field of the JSON contract."""
        return [cell.row() for cell in self.cells]

    def words(self) -> str:
        """The whole statement in sentences."""
        lines = [
            f"{self.rounds} rounds, {self.sizes.clients} clients with at least "
            f"{self.sizes.records} records each, {self.sizes.dim} parameters. These numbers are "
            "public: rates and divisors that follow them are the same with and without a unit.",
            *self.noise,
            *(cell.words() for cell in self.cells),
            "Settings chosen by looking at several runs or at held-out accuracy are not covered.",
        ]
        if self.published is not None:
            lines.append(f"Published, not proved here: {self.published}.")
        return "\n".join(lines)


def state(
    rounds: Iterable[tuple[Round, int]],
    sizes: Sizes,
    *,
    delta: float | None = None,
    published: Published | None = None,
    key: str | None = None,
) -> Statement:
    """The statement of a run of these rounds, each with how often it happens in a row.

    The rounds must have been planned before anything was released, but for the scale of clip and
    noise together: a run that chose its multipliers, its sampling or its length from what it saw is
    stated by the cap of its filter instead (docs/proofs/filters.md).

    `delta`: for every row; by default 1 / (10 x units), with as many units as there can be.
    `key`: where the noise's key comes from.
    """
    plan = [(r, n) for r, n in rounds if n > 0]
    if not plan:
        raise Refused("rounds: there are none, so nothing is released and nothing can be stated.")
    cells: list[Cell] = []
    for group, client in groups(plan, sizes):
        lived = [(r if client is None else r.for_client(client), n) for r, n in plan]
        cells += cells_of(lived, sizes, delta, group)
    total = sum(n for _, n in plan)
    return Statement(tuple(cells), total, sizes, noise_words(plan, key), published)


def groups(plan: list[tuple[Round, int]], sizes: Sizes) -> list[tuple[str, int | None]]:
    """Clients with equal numbers in every column: a name and a member of each group."""
    members = alike(plan, sizes)
    return [(f"{len(m)} clients like client {m[0]}", m[0]) for m in members] or [("", None)]


def alike(plan: list[tuple[Round, int]], sizes: Sizes) -> list[tuple[int, ...]]:
    """The members of every such group; none where no round has a column."""
    columns = [column for r, _ in plan for column in r.columns()]
    for column in columns:
        if len(column) != sizes.clients:
            raise Refused(
                f"a per-client column has {len(column)} numbers, allowed is one for each of the "
                f"{sizes.clients} clients"
            )
    members: dict[tuple[float, ...], list[int]] = {}
    for client in range(sizes.clients):
        members.setdefault(tuple(c[client] for c in columns), []).append(client)
    return [tuple(m) for m in members.values()] if columns else []


def cells_of(
    plan: list[tuple[Round, int]], sizes: Sizes, delta: float | None, group: str
) -> list[Cell]:
    """Every row for one group of clients."""
    from confide.derive import derive  # stages load torch; who reads a statement has no need of it

    derived = [(derive(r, sizes), n) for r, n in plan]
    keys = list(derived[0][0])
    if any(list(ways) != keys for ways, _ in derived):
        raise Refused("rounds: their uploads have different names, so rows do not add up.")
    cells: list[Cell] = []
    for key in keys:
        at = default_delta(key[0], sizes) if delta is None else delta
        cells.append(best([cell_by(key, ways, at, group) for ways in arguments(key, derived)]))
    return cells


def noise_words(plan: list[tuple[Round, int]], key: str | None) -> tuple[str, ...]:
    """Which key and which grid the noise has."""
    source = {
        None: "No noise is drawn in a plan; a run says where its key comes from.",
        "public seed": "The noise key is a public seed: whoever knows it can undo the noise.",
        "operating system": "The noise key is the operating system's and is erased at the end.",
    }[key]
    grids: dict[str, None] = {}
    for r, _ in plan:
        for _, _, stage in r.stages():
            grid = getattr(stage, "grid_words", None)
            if grid is not None:
                grids[f"{type(stage).__name__}: {grid}."] = None
    return (source, *grids)
