"""Try to refute what is stated about a method or a run, by attacking what it does.

import confide as cf
print(cf.audit(cf.methods.DPFedAvg(), seconds=30).verdict)
print(cf.audit("runs/mine").verdict)
"""

import sys
from types import ModuleType
from typing import Any

from confide.audit.anything import audit
from confide.audit.of_run import RunAudit, audit_run
from confide.audit.whole import Audit

__all__ = ["Audit", "RunAudit", "audit", "audit_run"]


class Callable(ModuleType):
    """This package has the name of the function that people call, so it is one."""

    def __call__(self, *given: Any, **options: Any) -> Audit | RunAudit:
        """See `confide.audit.anything.audit`."""
        return audit(*given, **options)


sys.modules[__name__].__class__ = Callable
