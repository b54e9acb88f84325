"""`confide.audit`: of a method, of its name, of a finished run, or of the directory of one."""

from __future__ import annotations

from pathlib import Path
from typing import overload

from confide.audit.of_run import RunAudit, audit_run
from confide.audit.whole import Audit
from confide.audit.whole import audit as audit_method
from confide.engine.rounds import Method, Round
from confide.engine.running import Run
from confide.methods.making import make


@overload
def audit(
    what: Method, *, seconds: float = 40.0, draws: int | None = None, seed: int = 0
) -> Audit: ...


@overload
def audit(
    what: Run | Path, *, seconds: float = 40.0, draws: int | None = None, seed: int = 0
) -> RunAudit: ...


@overload
def audit(
    what: str, *, seconds: float = 40.0, draws: int | None = None, seed: int = 0
) -> Audit | RunAudit: ...


def audit(
    what: Method | Run | Path | str,
    *,
    seconds: float = 40.0,
    draws: int | None = None,
    seed: int = 0,
) -> Audit | RunAudit:
    """Try to refute what is stated; a text is a method's name, FILE.py:NAME or a run's directory.

    About `seconds` are spent on the stages, or so many `draws` of each world are made.
    """
    if isinstance(what, Run | Path) or (isinstance(what, str) and Path(what).is_dir()):
        return audit_run(what, seconds=seconds, draws=draws, seed=seed)
    made = make(what, {}) if isinstance(what, str) else what
    if isinstance(made, Round):
        raise TypeError(
            f"audit: {what!r} is a Round, allowed is a Method, with its number of them."
        )
    return audit_method(made, seconds=seconds, draws=draws, seed=seed)
