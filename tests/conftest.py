"""How property tests search: the same examples every time, unless one asks for new ones."""

import os

from hypothesis import settings

# Other work may share the machine, so no example has a deadline.
settings.register_profile("same", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
