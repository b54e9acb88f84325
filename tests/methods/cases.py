"""All cases: every file `naive_*.py` beside this one holds those of one paper under `CASES`."""

from importlib import import_module
from pathlib import Path

from methods.world import Case


def collected() -> dict[str, Case]:
    """The cases by the method's name."""
    found: dict[str, Case] = {}
    for path in sorted(Path(__file__).parent.glob("naive_*.py")):
        cases: dict[str, Case] = import_module(f"methods.{path.stem}").CASES
        twice = found.keys() & cases.keys()
        assert not twice, f"{path.stem}: {sorted(twice)} have a case elsewhere"
        found |= cases
    return found


CASES = collected()
