# Written by `thalweg gen` from thalweg:conformance@0.1.0. Do not edit.
"""What every language must do alike: each value type there and back, streams, resources, and every way in which a
call can end.
"""

from .aio import AsyncConformance, AsyncCounter, AsyncEven, AsyncOracle
from .client import Conformance, Counter, Even, Oracle
from .types import (
    Color,
    Days,
    Failure,
    FailureAt,
    FailureCode,
    FailureUnknown,
    Fixed,
    Item,
    Keywords,
    Names,
    Nested,
    Point,
    Rights,
    Scalars,
    Shape,
    ShapeCircle,
    ShapeLabel,
    ShapeLine,
    ShapeNothing,
    ShapePolygon,
    ShapeStatic,
    Spot,
    Wide,
)
from .views import ItemView

__all__ = [
    "AsyncConformance",
    "AsyncCounter",
    "AsyncEven",
    "AsyncOracle",
    "Color",
    "Conformance",
    "Counter",
    "Days",
    "Even",
    "Failure",
    "FailureAt",
    "FailureCode",
    "FailureUnknown",
    "Fixed",
    "Item",
    "ItemView",
    "Keywords",
    "Names",
    "Nested",
    "Oracle",
    "Point",
    "Rights",
    "Scalars",
    "Shape",
    "ShapeCircle",
    "ShapeLabel",
    "ShapeLine",
    "ShapeNothing",
    "ShapePolygon",
    "ShapeStatic",
    "Spot",
    "Wide",
]
