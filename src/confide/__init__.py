"""Differentially private federated learning that one can check."""

__version__ = "0.1.0.dev0"
