"""Every method beside its algorithm done naively; a package, as benchmarks has a `methods` too."""
