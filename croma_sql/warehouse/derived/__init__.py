"""Encoders made from others.

harmonise.py     an encoder without a confounder; harmonised_vectors.py writes it, harmonised.py
                 knows what it was made from, and whether that is still so
pool.py          one vector per slide or other group; groups.py says who is in which,
                 pooled_vectors.py adds up, pooled.py knows what it was made from
"""
