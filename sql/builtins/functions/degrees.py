"""Trigonometric functions of degrees, exact where an exact number is the answer.

As PostgreSQL has them: an angle is brought into the first quadrant, sine and cosine are computed
for up to 30 and 60 degrees and scaled, so that sind(30) is 0.5 and tand(45) is 1.
"""

from __future__ import annotations

import math

from ....catalog.values.errors import SQLError

_RADIAN = math.pi / 180
_SINE_30 = math.sin(30 * _RADIAN)
_ONE_LESS_COSINE_60 = 1.0 - math.cos(60 * _RADIAN)
_ARCSINE_HALF = math.asin(0.5)
_ARCCOSINE_HALF = math.acos(0.5)
_ARCTANGENT_ONE = math.atan(1.0)


def _sine_to_30(angle: float) -> float:
    return math.sin(angle * _RADIAN) / _SINE_30 / 2.0


def _cosine_to_60(angle: float) -> float:
    return 1.0 - (1.0 - math.cos(angle * _RADIAN)) / _ONE_LESS_COSINE_60 / 2.0


def _sine(angle: float) -> float:
    """Of 0 to 90 degrees."""
    return _sine_to_30(angle) if angle <= 30.0 else _cosine_to_60(90.0 - angle)


def _cosine(angle: float) -> float:
    return _cosine_to_60(angle) if angle <= 60.0 else _sine_to_30(90.0 - angle)


_TANGENT_45 = _sine(45.0) / _cosine(45.0)
_COTANGENT_45 = _cosine(45.0) / _sine(45.0)


def _turned(angle: float) -> float:
    """Without its whole turns, of the angle's sign."""
    if math.isinf(angle):
        raise SQLError("22003", "input is out of range")
    return math.fmod(angle, 360.0)


def sind(angle: float) -> float:
    rest, sign = _turned(angle), 1.0
    if rest < 0.0:
        rest, sign = -rest, -sign
    if rest > 180.0:
        rest, sign = 360.0 - rest, -sign
    return sign * _sine(180.0 - rest if rest > 90.0 else rest)


def cosd(angle: float) -> float:
    rest, sign = abs(_turned(angle)), 1.0
    if rest > 180.0:
        rest = 360.0 - rest
    if rest > 90.0:
        rest, sign = 180.0 - rest, -sign
    return sign * _cosine(rest)


def tand(angle: float) -> float:
    rest, sign = _in_quadrant(angle)
    result = sign * _ratio(_sine(rest), _cosine(rest), _TANGENT_45)
    return result or 0.0  # no negative zero


def cotd(angle: float) -> float:
    rest, sign = _in_quadrant(angle)
    result = sign * _ratio(_cosine(rest), _sine(rest), _COTANGENT_45)
    return result or 0.0


def _in_quadrant(angle: float) -> tuple[float, float]:
    rest, sign = _turned(angle), 1.0
    if rest < 0.0:
        rest, sign = -rest, -sign
    if rest > 180.0:
        rest, sign = 360.0 - rest, -sign
    if rest > 90.0:
        rest, sign = 180.0 - rest, -sign
    return rest, sign


def _ratio(above: float, below: float, unit: float) -> float:
    return math.inf if below == 0.0 else above / below / unit


def asind(value: float) -> float:
    _check_within_one(value)
    return _arcsine(value) if value >= 0.0 else -_arcsine(-value)


def acosd(value: float) -> float:
    _check_within_one(value)
    return _arccosine(value) if value >= 0.0 else 90.0 + _arcsine(-value)


def _arcsine(value: float) -> float:
    """Of 0 to 1."""
    if value <= 0.5:
        return math.asin(value) / _ARCSINE_HALF * 30.0
    return 90.0 - math.acos(value) / _ARCCOSINE_HALF * 60.0


def _arccosine(value: float) -> float:
    if value <= 0.5:
        return 90.0 - math.asin(value) / _ARCSINE_HALF * 30.0
    return math.acos(value) / _ARCCOSINE_HALF * 60.0


def atand(value: float) -> float:
    return math.atan(value) / _ARCTANGENT_ONE * 45.0


def atan2d(y: float, x: float) -> float:
    return math.atan2(y, x) / _ARCTANGENT_ONE * 45.0


def _check_within_one(value: float) -> None:
    if value < -1.0 or value > 1.0:
        raise SQLError("22003", "input is out of range")
