"""One keyed source for every draw of a run, and noises whose law is exact."""

from confide.randomness.streams import Key, Stream

__all__ = ["Key", "Stream"]
