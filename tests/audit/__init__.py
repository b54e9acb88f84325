"""The audit of right releases and of broken ones; a package, as benchmarks has an `audit` too."""
