"""Values that round-trip, and values that are refused."""

import math

import pytest
import thalweg
from thalweg import Err, Ok, Some
from thalweg_conformance import Conformance
from thalweg_conformance.types import (
    Color,
    Days,
    Failure,
    FailureCode,
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
    Wide,
)

POINT = Point(-1, 2)
SHAPES: list[Shape] = [
    ShapeCircle(0.5),
    ShapeLine((POINT, Point(3, 4))),
    ShapeLabel("ünïcödé \0 \U0001f600"),
    ShapePolygon([POINT, POINT]),
    ShapeNothing(),
    ShapeStatic(255),
]
NESTED = Nested(
    text="text",
    bytes=bytes(range(256)),
    names=["", "a", "b" * 1000],
    grid=[[], [1, -2], [2**31 - 1]],
    maybe=None,
    twice=Some(None),
    outcomes=[Ok(POINT), Err("no")],
    pairs=[("a", None), ("b", b"c")],
    shapes=SHAPES,
    color=Color.BOOL,
    rights=Rights.READ | Rights.RECORD,
    aliased=["x"],
)
SCALARS = Scalars(
    a_bool=True,
    a_u64=2**64 - 1,
    a_u8=255,
    a_u16=65535,
    a_s8=-128,
    a_u32=2**32 - 1,
    a_s16=-32768,
    a_f64=-0.1,
    a_char="\U0010ffff",
    a_s64=-(2**63),
    a_f32=0.5,
    a_s32=-(2**31),
)


def test_records_round_trip(service: Conformance) -> None:
    assert service.echo_scalars(SCALARS) == SCALARS
    assert service.echo_nested(NESTED) == NESTED
    assert service.echo_points([POINT] * 3) == [POINT] * 3


def test_variants_enums_and_flags_round_trip(service: Conformance) -> None:
    assert service.echo_shapes(SHAPES) == SHAPES
    assert [service.echo_color(color) for color in Color] == list(Color)
    every = Days(2**9 - 1)
    assert service.echo_days(every) == every
    assert service.echo_days(Days(0)) == Days(0)
    assert service.echo_wide(Wide.B0 | Wide.B31) == Wide.B0 | Wide.B31


def test_error_type_round_trips_as_value(service: Conformance) -> None:
    failure: Failure = FailureCode(9)
    assert service.echo_failure(failure) == failure
    assert service.echo_failure(failure) != FailureCode(8)


def test_nested_options_round_trip(service: Conformance) -> None:
    for value in (None, Some(None), Some(3)):
        assert service.echo_option_twice(value) == value
    with pytest.raises(TypeError, match=r"thalweg\.Some"):
        service.echo_option_twice(3)  # type: ignore[arg-type]


def test_results_inside_values_round_trip(service: Conformance) -> None:
    assert service.echo_result((Ok(1),)) == (Ok(1),)
    assert service.echo_result((Err("e"),)) == (Err("e"),)
    assert service.echo_result_ok([Ok(1), Err(None)]) == [Ok(1), Err(None)]
    assert service.echo_result_bare([Ok(None), Err(None)]) == [Ok(None), Err(None)]


def test_any_buffer_and_sequence_is_accepted(service: Conformance) -> None:
    assert service.echo_bytes(bytearray(b"ab")) == b"ab"
    assert service.echo_bytes(memoryview(b"abcd")[::2]) == b"ac"
    assert service.echo_numbers(range(3)) == [0, 1, 2]
    assert service.echo_strings(("a", "b")) == ["a", "b"]


def test_non_finite_numbers_round_trip(service: Conformance) -> None:
    assert math.isnan(service.echo_f64(math.nan))
    assert service.echo_f32(-math.inf) == -math.inf
    assert service.echo_f64(3) == 3.0


def test_numbers_out_of_range_raise_overflow_error(service: Conformance) -> None:
    for echo, low, high in (
        (service.echo_u8, 0, 2**8 - 1),
        (service.echo_u16, 0, 2**16 - 1),
        (service.echo_u32, 0, 2**32 - 1),
        (service.echo_u64, 0, 2**64 - 1),
        (service.echo_s8, -(2**7), 2**7 - 1),
        (service.echo_s16, -(2**15), 2**15 - 1),
        (service.echo_s32, -(2**31), 2**31 - 1),
        (service.echo_s64, -(2**63), 2**63 - 1),
    ):
        assert echo(low) == low
        assert echo(high) == high
        for number in (low - 1, high + 1, 10**30, -(10**30)):
            with pytest.raises(OverflowError, match="does not fit"):
                echo(number)
    with pytest.raises(OverflowError, match="f32"):
        service.echo_f32(1e39)


def test_value_of_wrong_type_error_names_its_path(service: Conformance) -> None:
    with pytest.raises(TypeError, match=r"echo-u8: value: expected int, got str"):
        service.echo_u8("1")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"value: expected bool, got int"):
        service.echo_bool(1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"value\[1\]\[0\]: expected int, got float"):
        service.echo_grid([[1], [1.5]])  # type: ignore[list-item]
    bad = Nested(
        **{
            **{name: getattr(NESTED, name) for name in NESTED.__slots__},
            "pairs": [("a", 1)],
        }
    )
    with pytest.raises(
        TypeError, match=r"value\.pairs\[0\]\[1\]: expected bytes, got int"
    ):
        service.echo_nested(bad)
    with pytest.raises(TypeError, match=r"expected a sequence, got str"):
        service.echo_strings("ab")
    with pytest.raises(TypeError, match=r"expected ShapeCircle or "):
        service.echo_shape(POINT)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"expected a tuple of 4"):
        service.echo_tuple((1, "a", 1.0))  # type: ignore[arg-type]


def test_invalid_text_raises_value_error(service: Conformance) -> None:
    with pytest.raises(ValueError, match="surrogates"):
        service.echo_string("\ud800")
    for text in ("", "ab"):
        with pytest.raises(ValueError, match="one character"):
            service.echo_char(text)


def test_encoding_runs_no_code_of_list_elements(service: Conformance) -> None:
    class Shrinking(int):
        """An int subclass: encoding must not run code of list elements."""

    values = [Shrinking(i) for i in range(3)]
    assert service.echo_numbers(values) == [0, 1, 2]


def test_classes_are_frozen_and_slotted(service: Conformance) -> None:
    point = service.echo_point(POINT)
    with pytest.raises(AttributeError):
        point.x = 3  # type: ignore[misc]
    assert not hasattr(point, "__dict__")
    assert hash(point) == hash(POINT)


def test_large_message_round_trips(service: Conformance) -> None:
    blob = bytes(5 << 20)
    assert service.echo_bytes(blob) == blob


def test_wrong_number_of_arguments_raises_type_error() -> None:
    from thalweg_conformance._methods import ECHO_U8

    with pytest.raises(TypeError):
        ECHO_U8.call()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        ECHO_U8.call(object(), None, 1)  # type: ignore[arg-type]
    assert issubclass(thalweg.BadArgument, ValueError)


def test_fixed_length_list_of_wrong_length_is_refused(service: Conformance) -> None:
    assert service.echo_key(bytearray(range(16))) == bytes(range(16))
    assert service.echo_three((1, 2, 3)) == [1, 2, 3]
    with pytest.raises(ValueError, match="value: expected 16 bytes, got 15"):
        service.echo_key(bytes(15))
    with pytest.raises(ValueError, match="value: expected 3 elements, got 4"):
        service.echo_three([1, 2, 3, 4])
    with pytest.raises(TypeError, match="value: expected a sequence of 3, got str"):
        service.echo_three("123")  # type: ignore[arg-type]
    with pytest.raises(OverflowError, match=r"value\[2\]: 9223372036854775808"):
        service.echo_three([0, 0, 2**63])


@pytest.mark.parametrize("sign", [1, -1])
def test_int_beyond_str_digit_limit_error_names_its_size(
    service: Conformance, sign: int, capfd: pytest.CaptureFixture[str]
) -> None:
    for call, kind in [(service.echo_u32, "u32"), (service.echo_s64, "s64")]:
        reason = f"an int of 16610 bits does not fit {kind}"
        with pytest.raises(OverflowError, match=reason):
            call(sign * 10**5000)
    assert capfd.readouterr().err == ""


def test_int_of_many_digits_is_shortened_in_error(service: Conformance) -> None:
    with pytest.raises(OverflowError) as caught:
        service.echo_u32(10**4000)
    assert str(caught.value).endswith("00.. does not fit u32")
    assert len(str(caught.value)) < 300


class Unspeakable(ValueError):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Failing(int):
    def __float__(self) -> float:
        raise Unspeakable


def test_error_whose_str_fails_is_shown_by_its_class(
    service: Conformance, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match="a Unspeakable"):
        service.echo_f64(Failing(1))
    assert capfd.readouterr().err == ""


def test_trailing_optional_parameters_and_fields_default_to_none(
    service: Conformance,
) -> None:
    assert service.echo_option() is None
    assert service.fail() == 7
    assert service.several(7, "m", [1]) == (7, "m", [1], None)
