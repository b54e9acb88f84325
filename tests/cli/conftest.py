"""A directory with a small data set and a run file in it."""

from pathlib import Path

import numpy as np
import pytest

RUN_FILE = """
methods = ["dp-fedavg-c", "fedavg"]
seeds = [0, 1]
[data]
name = "tiny.npz"
clients = 6
[model]
name = "tabular"
[run]
workers = 1
[method.dp-fedavg-c]
T = 4
q = 0.5
E = 1
[method.fedavg]
T = 3
m = 3
E = 1
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory of the command."""
    draw = np.random.default_rng(0)
    y = draw.integers(0, 3, 120)
    x = (draw.normal(size=(120, 8)) + 3 * np.eye(3, 8)[y]).astype(np.float32)
    np.savez(tmp_path / "tiny.npz", x_train=x, y_train=y, x_test=x[:30], y_test=y[:30])
    (tmp_path / "a.toml").write_text(RUN_FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path
