"""The memory that the bundled MNIST takes once it is dealt to some clients.

`python benchmarks/peers/held_once.py CLIENTS`
"""

from __future__ import annotations

import json
import os
import sys

from protocol import peak

from confide.data import federate, load

if __name__ == "__main__":
    held = federate(load("mnist"), int(sys.argv[1]), {"kind": "iid"}, 0)
    print(json.dumps({"workload": held.partition, "peak_mib": peak(os.getpid())}))
