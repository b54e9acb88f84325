"""How a cohort is dealt out to worker processes."""

from hypothesis import given
from hypothesis import strategies as st

from confide.engine.workers import chunks_of


@given(st.integers(0, 400), st.integers(1, 64), st.integers(1, 16))
def test_chunks_are_the_clients_in_order_and_end_with_single_ones(
    clients: int, workers: int, most: int
) -> None:
    chunks = chunks_of(range(clients), workers, most)
    assert [client for chunk in chunks for client in chunk] == list(range(clients))
    sizes = [len(chunk) for chunk in chunks]
    assert sizes == sorted(sizes, reverse=True)
    assert all(1 <= size <= most for size in sizes)
    assert sizes[-workers:] == [1] * min(workers, len(sizes))
