"""How a margin looks: orange below 0, blue above, grey where there is none."""

from bisect import bisect_left

Colour = tuple[int, ...]  # red, green and blue, 0 to 255

FULL = 0.5  # beyond it either way, colours change no more
GREY: Colour = (128, 128, 128)

# Orange of ColorBrewer's PuOr, blue of its RdBu: told apart whatever one's colour vision, and both
# seen on tissue, which is purple and pink.
STOPS: tuple[Colour, ...] = (
    (127, 59, 8), (179, 88, 6), (224, 130, 20), (253, 184, 99), (254, 224, 182),
    (247, 247, 247),
    (209, 229, 240), (146, 197, 222), (67, 147, 195), (33, 102, 172), (5, 48, 97),
)  # fmt: skip


def colour(margin: float) -> Colour:
    """Give the colour of a margin.

    Examples
    --------
    >>> colour(0.0), colour(-0.5), colour(1.0), colour(0.05)
    ((247, 247, 247), (127, 59, 8), (5, 48, 97), (228, 238, 244))
    """
    last = len(STOPS) - 1
    at = (min(1.0, max(-1.0, margin / FULL)) + 1) / 2 * last
    i = min(int(at), last - 1)
    share = at - i
    return tuple(
        round(one + share * (other - one))
        for one, other in zip(STOPS[i], STOPS[i + 1], strict=True)
    )


_UP_TO = (-0.25, 0.0, 0.25)  # a margin of 0 is fragile, as F(0) counts it
_BANDS = (
    ("very fragile (margin <= -0.25)", colour(-0.4)),
    ("fragile (-0.25 < margin <= 0)", colour(-0.15)),
    ("robust (0 < margin <= 0.25)", colour(0.15)),
    ("very robust (margin > 0.25)", colour(0.4)),
)


def band(margin: float) -> tuple[str, Colour]:
    """Give the name that a legend shows, and its colour.

    Examples
    --------
    >>> band(0.0)
    ('fragile (-0.25 < margin <= 0)', (254, 204, 140))
    """
    return _BANDS[bisect_left(_UP_TO, margin)]
