"""How strongly vectors encode the confounder (the centre), and beside it the label.

rows.py          what is measured: vectors and columns, validated
silhouettes.py   cosine silhouettes of a label, or of the confounder (FM-SI)
quartets.py      two labels under two confounders, all of them
kmeans.py        k-means in no more coordinates than there are vectors
clustering.py    whether k-means finds labels or confounders (PathoROB's clustering score)
probes.py        whether k-NN and a linear classifier can tell them, on other groups
workers.py       threads for scikit-learn that give the same bits and can be stopped
"""
