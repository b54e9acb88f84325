"""The report of one or several runs: one HTML file that needs nothing else."""

from confide.report.fields import NotARun
from confide.report.page import write_report
from confide.report.record import RunRecord, read_run, record_of

__all__ = ["NotARun", "RunRecord", "read_run", "record_of", "write_report"]
