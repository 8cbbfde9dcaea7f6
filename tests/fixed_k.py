"""What the tests of fixed-k metrics share."""

import croma_sql

KS = [1, 2, 3, 5, 8, 13, 21, 34]
DEPTH = max(KS)
SELECT = "SELECT sample_id, label, confounder, group_id FROM samples"


def warehouse(root, cohorts, select=SELECT, k=DEPTH):
    """Encoders of one benchmark, one per cohort: vectors differ, rows are the same."""
    for name, cohort in cohorts.items():
        tiles = cohort.frame()
        croma_sql.import_embeddings(root, tiles, encoder=name, dataset="d", samples=tiles)
    croma_sql.add_benchmark(root, "b", select)
    croma_sql.score(root, k=k, first_ranks=True, on_undefined="null")
    return croma_sql.connect(root)


def points(con, k):
    """Ask for one k; returns the relation."""
    point = "SELECT 'b' AS benchmark, 'e' AS encoder, $k AS k"
    con.execute(f"CREATE OR REPLACE TEMP TABLE points AS {point}", {"k": k})
    return "fixed_k_summary_of('points')"
