"""Silhouettes of many samples, without a pair of them.

silhouettes.py    of every sample of a scope
cluster_means.py  compiled: sums over clusters, and how far a vector lies from the members of each
"""
