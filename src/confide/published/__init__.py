"""What the papers print, computed as they print it: one module per paper.

Nothing in here is a guarantee. Each function carries the number of the paper's equation and
returns a `Published`, which no proof accepts; docs/published.md says what is wrong with which
formula, and by how much.
"""

from confide.published import dp_fedags, dp_fedsam, fed_cdp, girgis, nbafl, udp_crd, udp_fl
from confide.published.value import Published

__all__ = [
    "Published",
    "dp_fedags",
    "dp_fedsam",
    "fed_cdp",
    "girgis",
    "nbafl",
    "udp_crd",
    "udp_fl",
]
