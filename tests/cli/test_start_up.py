"""Commands that need no training answer at once, because torch is not loaded for them."""

import os
import subprocess
import sys
import time

import pytest

CALL = "import sys; from confide.cli import main; sys.exit(main(sys.argv[1:]))"
ACCOUNT = [
    "account",
    "--noise",
    "gaussian",
    "--multiplier",
    "4",
    "--rate",
    "0.01",
    "--delta",
    "1e-5",
]


@pytest.mark.parametrize(("words", "bar"), [(["--help"], 0.5), (ACCOUNT, 1.5)])
def test_the_promised_seconds_are_kept(words: list[str], bar: float) -> None:
    """The quickest of a few fresh processes, as other tests share the machine."""
    taken: list[float] = []
    while len(taken) < 6 and min(taken, default=bar) >= bar:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", CALL, *words], check=True, stdout=subprocess.PIPE, env=os.environ
        )
        taken.append(time.perf_counter() - began)
    assert min(taken) < bar, taken


@pytest.mark.parametrize("name", ["accounting", "claims", "ledger", "statements", "published"])
def test_torch_is_not_loaded_by(name: str) -> None:
    code = f"import sys, confide.{name}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_account_loads_no_torch() -> None:
    code = (
        "import sys; from confide.cli import main; "
        "main(sys.argv[1:]); sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, *ACCOUNT], check=True, stdout=subprocess.PIPE)
