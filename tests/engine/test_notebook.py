"""A run as a notebook shows it."""

from confide.engine.running import run
from small import Private, federation, mlp


def test_a_run_shows_its_sentence_and_what_is_proved_and_escapes_names() -> None:
    done = run(Private(T=1), federation(), model=mlp(), workers=1)
    shown = done._repr_html_()
    assert f"{done.statement.cell('client', 'world').epsilon:.4g}" in shown
    assert "none is proved" in shown
    assert shown.count("<tr>") == 1 + len(done.statement.cells)
    assert "Private on mnist" in shown
