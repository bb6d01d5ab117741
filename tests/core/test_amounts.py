"""Numbers as text: different ones that are told together read differently."""

from hypothesis import given
from hypothesis import strategies as st

from sparcets.core.words import amounts, distinct, percents, seconds, signed
from sparcets.show.phrases import when_phrase

numbers = st.lists(st.floats(allow_nan=False, allow_infinity=False).map(lambda v: v + 0.0), min_size=1, max_size=4)


@given(numbers)
def test_different_numbers_read_differently(values):
    for write in (amounts, signed, distinct, lambda *v: distinct(*v, style=".4g")):
        texts = write(*values)
        assert len(texts) == len(values) and len(set(texts)) == len(set(values))


@given(st.lists(st.floats(0, 1), min_size=2, max_size=3))
def test_different_shares_read_differently(shares):
    apart = {100 * share for share in shares}  # tiny ones may be equal here
    assert len(set(percents(*shares))) >= len(apart)


@given(st.integers(0, 10**7), st.integers(1, 10**6), st.floats(0.01, 1e6))
def test_different_times_read_differently(start, length, rate):
    first, last = seconds(start / rate, (start + length) / rate)
    assert first != last and (float(first) != 0 or start == 0)
    assert when_phrase(start, start + length, rate) == f"from {first} to {last} s"
    assert when_phrase(1, 3, 16_000.0) == "from 0.0001 to 0.0002 s", "no more digits than needed"
