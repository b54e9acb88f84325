"""Try to refute what is stated about a method, by attacking the very stages that it runs.

from confide.audit import audit
print(audit(DPFedAvg(), seconds=30).verdict)
"""

from confide.audit.whole import Audit, audit

__all__ = ["Audit", "audit"]
