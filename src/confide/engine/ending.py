"""How a run can end without what it was asked for."""


class RunFailed(RuntimeError):
    """The run cannot go on; what was spent stays spent."""


class Diverged(RunFailed):
    """The model is no longer made of numbers."""
