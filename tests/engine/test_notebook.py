"""A run as a notebook shows it, and as one line."""

from dataclasses import replace

from confide.engine.running import run
from confide.report import digits
from small import Private, federation, mlp


def test_a_run_shows_its_verdict_and_every_row_and_escapes_names() -> None:
    held = federation()
    named = replace(held, data=replace(held.data, name="<b>mnist</b>"))
    done = run(Private(T=1), named, model=mlp(), workers=1)
    shown = done._repr_html_()  # pyright: ignore[reportPrivateUsage]
    epsilon = digits.epsilon_is(done.statement.cell("client", "world").epsilon)
    assert f"one whole client is protected moderately ({epsilon})" in shown
    assert "Against the server, nothing is protected: nothing has been done to hide it." in shown
    assert shown.count("<tr>") == 1 + len(done.statement.cells)
    assert "<strong>private</strong> on &lt;b&gt;mnist&lt;/b&gt;, Sequential" in shown
    assert "<b>mnist" not in shown


def test_the_line_rounds_no_bound_down() -> None:
    done = run(Private(T=1), federation(), model=mlp(), workers=1)
    cell = done.statement.cell("client", "world")
    told = str(done).partition("client to world ε ≤ ")[2].split()[0].rstrip(",;")
    assert cell.epsilon <= float(told) <= 1.01 * cell.epsilon
    assert "after 1 round," in str(done)
