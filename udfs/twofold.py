"""Numbers of twice the precision of float64: pairs (high, low), whose sum is the value.

The last bit of every result depends neither on the processor nor on the order of the operands.

References
----------
D. E. Knuth, The Art of Computer Programming 2, 4.2.2 (the error of a sum); T. J. Dekker, "A
floating-point technique for extending the available precision", 1971; J.-M. Muller et al.,
Handbook of Floating-Point Arithmetic, 2018, 5.1 (the error of a product by a fused multiply-add).
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from croma_sql.udfs.compiled import kernel


@intrinsic  # type: ignore[untyped-decorator]
def fma(typing_context: Any, x: Any, y: Any, z: Any) -> Any:
    """``x y + z``, rounded once; in compiled code only."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@kernel()
def sum_of(x, y):
    """``x + y`` of two float64, exactly."""
    high = x + y
    of_y = high - x
    return high, (x - (high - of_y)) + (y - of_y)


@kernel()
def product_of(x, y):
    """``x y`` of two float64, exactly unless it underflows."""
    high = x * y
    return high, fma(x, y, -high)


@kernel()
def add(x, y):
    """``x + y``."""
    high, low = sum_of(x[0], y[0])
    return sum_of(high, low + (x[1] + y[1]))


@kernel()
def subtract(x, y):
    """``x - y``."""
    return add(x, (-y[0], -y[1]))


@kernel()
def multiply(x, y):
    """``x y``."""
    high, low = product_of(x[0], y[0])
    return sum_of(high, low + (x[0] * y[1] + x[1] * y[0]))


@kernel()
def divide(x, y):
    """``x / y``."""
    high = x[0] / y[0]
    rest = fma(-high, y[0], x[0]) + (x[1] - high * y[1])
    return sum_of(high, rest / y[0])


@kernel()
def root(x):
    """Square root of a positive number."""
    high = np.sqrt(x[0])
    return sum_of(high, (fma(-high, high, x[0]) + x[1]) / (2.0 * high))
