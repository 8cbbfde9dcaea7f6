"""The version, for scores' fingerprints and the package alike."""

__version__ = "0.1.0"
