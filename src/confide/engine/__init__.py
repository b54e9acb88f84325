"""One round as a method writes it, what a method may look at, and what a method is."""

from confide.engine.rounds import Local, Method, Past, Released, Round, Sizes, Upload

__all__ = ["Local", "Method", "Past", "Released", "Round", "Sizes", "Upload"]
