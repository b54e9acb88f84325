"""The records are held once: by all clients and by all worker processes together."""

import subprocess
import sys
from pathlib import Path

import pytest

import small

PROGRAM = """
import os, sys
sys.path.insert(0, {tests!r})
from confide.data import federate, load
from confide.engine.rounds import Local
from confide.engine.running import run
from confide.engine import workers
from confide.cohorts import Epoch, Fixed
from confide.local import SGD
from small import Anything, mlp, plain

def proportional(process):
    "Megabytes of a process, where what several share counts for each in part."
    with open(f"/proc/{{process}}/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024

class Watch:
    stopping = False
    most = 0.0
    def round_done(self, *_):
        import multiprocessing
        family = [os.getpid(), *(p.pid for p in multiprocessing.active_children())]
        assert len(family) == 3
        self.most = max(self.most, sum(map(proportional, family)))
    def evaluated(self, row):
        pass

data = load("mnist")
small_one = run(Anything(plain(Local(SGD(0.1)), Fixed(20)), 1), federate(data, 20, None, 0),
                model=mlp(), workers=1)
before = proportional(os.getpid())
federation = federate(data, 10_000, None, 0)
assert len(federation.clients) == 10_000 and federation.data is data
watch = Watch()
run(Anything(plain(Local(SGD(0.1), 1, Epoch(10, True)), Fixed(1000)), 2), federation,
    model=mlp(), workers=2, watch=watch)
held = sum(getattr(data, n).nbytes for n in ("x_train", "y_train", "x_test", "y_test")) / 2**20
print(before, watch.most, held)
"""


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="no such file here")
def test_ten_thousand_clients_of_mnist_hold_one_copy(tmp_path: Path) -> None:
    text = PROGRAM.format(tests=str(Path(small.__file__).parent))
    out = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=300)
    assert out.returncode == 0, out.stderr
    before, most, held = map(float, out.stdout.split())
    print(f"{before:.0f} MB before, {most:.0f} MB with two workers, {held:.0f} MB of records")
    # A second copy of the records, anywhere, would be more than what is allowed here.
    assert held > 200
    assert most - before < 0.6 * held
