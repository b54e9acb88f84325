"""How property tests search, and which tests need data that a clean clone does not have."""

import os

import pytest
from hypothesis import settings

from scoring import planted, score

# Other work may share the machine, so no example has a deadline.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))

_LEFT_OUT = pytest.StashKey[int]()


def pytest_configure(config):
    config.addinivalue_line("markers", "data: needs the real data sets, found by CONFIDE_DATA")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Leave out what needs data that is not here."""
    if os.environ.get("CONFIDE_DATA"):
        return
    needing = [item for item in items if item.get_closest_marker("data")]
    items[:] = [item for item in items if item not in needing]
    config.hook.pytest_deselected(items=needing)
    config.stash[_LEFT_OUT] = len(needing)
    if hasattr(config, "workeroutput"):
        config.workeroutput["left out"] = len(needing)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Hear from a worker how many tests it left out; all of them leave out the same."""
    left_out = getattr(node, "workeroutput", {}).get("left out", 0)
    node.config.stash[_LEFT_OUT] = max(left_out, node.config.stash.get(_LEFT_OUT, 0))


def pytest_terminal_summary(terminalreporter, config):
    """Say what was left out, and how many planted bugs were found by what."""
    stats = terminalreporter.stats
    if found := planted([*stats.get("passed", []), *stats.get("failed", [])]):
        for line in score(found):
            terminalreporter.write_line(line)
    if left_out := config.stash.get(_LEFT_OUT, 0):
        terminalreporter.write_line(
            f"{left_out} tests of real data left out: CONFIDE_DATA is not set."
        )
