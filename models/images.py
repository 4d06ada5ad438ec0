"""Turns the bytes of one image file, whatever its kind, into the square array a network reads."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image

PIXEL_LIMIT = 50_000_000

# Pixel formats whose decoders run inside this process. Left out on purpose: EPS and the like, which start
# other programs, and containers whose header does not tell the size of the picture inside.
Image.init()  # Pillow registers most of its decoders only when asked to
FORMATS = tuple(
    kind
    for kind in ("JPEG", "MPO", "PNG", "GIF", "WEBP", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF")
    if kind in Image.OPEN
)

_MAGIC = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG\r\n\x1a\n", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\x00", "TIFF"),
    (b"MM\x00*", "TIFF"),
)

_BOMB = "decompression bomb: something in the file unpacks to far more than a picture needs"

_ORIENTATION_TAG = 0x0112
_TO_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class BadImage(ValueError):
    """The bytes are not an image that can be read; the message says why, in words for a person."""


def decode(data: bytes, *, size: int, pixel_limit: int = PIXEL_LIMIT) -> NDArray[np.uint8]:
    """The image as uint8 of shape (3, size, size), red, green, blue, upright.

    The aspect ratio is kept: the largest centred square is cut out and resized, as pre-trained networks
    expect. Transparent parts become white, of an animation the first frame counts, and 16-bit grey keeps its
    upper byte, which is what a browser shows. Raises BadImage; the pixel limit is checked on the header, before
    anything is decoded.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1, not {size}")
    image = _open(data, pixel_limit)
    try:
        image.draft(None, (2 * size, 2 * size))  # a large JPEG is decoded at a fraction of its size, still ≥ 2 × ours
        image.load()  # before EXIF is read: damage met first by the EXIF reader would pass unseen
        orientation = _orientation(image)
        small = _centre_square(_as_rgb(image), size)
    except MemoryError:
        raise
    except Exception as error:  # decoders fed with damaged files raise nearly anything
        raise BadImage(_damage(error, str(image.format))) from error
    if orientation in _TO_UPRIGHT:
        small = small.transpose(_TO_UPRIGHT[orientation])
    return np.ascontiguousarray(np.asarray(small, dtype=np.uint8).transpose(2, 0, 1))


def kind_of(data: bytes, *, pixel_limit: int = PIXEL_LIMIT) -> str:
    """Which of FORMATS the bytes are, by their header alone, which is checked as for `decode`. Raises BadImage."""
    return str(_open(data, pixel_limit).format)


def _open(data: bytes, pixel_limit: int) -> Image.Image:
    if not data:
        raise BadImage("empty: the file has 0 bytes")
    too_many = f"the limit is {pixel_limit / 1e6:g} megapixels"
    try:
        image = Image.open(io.BytesIO(data), formats=FORMATS)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise BadImage(f"too many pixels: {too_many}") from error
    except MemoryError:
        raise
    except Exception as error:  # see decode
        raise BadImage(_BOMB if _is_bomb(error) else _not_an_image(data)) from error
    width, height = image.size
    if width * height > pixel_limit:
        raise BadImage(f"too many pixels: {width} × {height}, {too_many}")
    return image


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 where there is none; broken EXIF does not make a good picture bad."""
    try:
        return int(image.getexif().get(_ORIENTATION_TAG, 1))
    except Exception:  # noqa: BLE001 - the reader raises nearly anything on damaged EXIF
        return 1


def _as_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):
        return Image.fromarray(_stretch(np.asarray(image, dtype=np.float64))).convert("RGB")
    if image.has_transparency_data:
        coloured = image.convert("RGBA")
        white = Image.new("RGBA", coloured.size, "white")
        return Image.alpha_composite(white, coloured).convert("RGB")
    return image.convert("RGB")


def _stretch(values: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Values of no known range (32-bit integers, floats): the smallest becomes black, the largest white."""
    finite = np.isfinite(values)
    if not finite.any():
        raise ValueError("no pixel has a finite value")
    low, high = values[finite].min(), values[finite].max()
    scaled = (np.where(finite, values, low) - low) / max(high - low, np.finfo(np.float64).tiny)
    stretched: NDArray[np.uint8] = np.round(255 * scaled).astype(np.uint8)
    return stretched


def _centre_square(image: Image.Image, size: int) -> Image.Image:
    width, height = image.size
    side = min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return image.resize(
        (size, size), Image.Resampling.BILINEAR, box=(left, top, left + side, top + side), reducing_gap=3.0
    )


def _damage(error: Exception, kind: str) -> str:
    if _is_bomb(error):
        return _BOMB
    text = str(error)
    cut_off = isinstance(error, EOFError) or any(
        sign in text.lower() for sign in ("truncated", "unexpected end", "not enough")
    )
    if cut_off:
        return f"truncated: the {kind} file ends before the picture does"
    return f"damaged {kind} file: {text or type(error).__name__}"


def _is_bomb(error: Exception) -> bool:
    """Pillow stops unpacking a text or a colour profile, wherever in the file it is, at 1 MB."""
    return "Decompressed data too large" in str(error)


def _not_an_image(data: bytes) -> str:
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n")
    lower = head.lower()
    if lower.startswith((b"<!doctype html", b"<html", b"<head", b"<body")):
        return "not an image: it looks like HTML, such as a login or an error page"
    if b"<svg" in lower:
        return "not a pixel image: it is an SVG drawing"
    if lower.startswith(b"<"):
        return "not an image: it looks like XML or HTML"
    if head.startswith((b"{", b"[")):
        return "not an image: it looks like JSON, such as an error message"
    if head.startswith(b"%PDF"):
        return "not an image: it is a PDF document"
    if head.startswith(b"PK\x03\x04"):
        return "not an image: it is a ZIP archive"
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return f"damaged {kind} file: its header is cut off or broken"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "damaged WEBP file: it is cut off or broken"
    if head and all(32 <= byte < 127 or byte in b"\t\r\n" for byte in head):
        return "not an image: it looks like text"
    return "not an image of a known kind"
