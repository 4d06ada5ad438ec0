"""Every kind of image file becomes the same kind of array, and every bad one a reason a person understands."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from models.images import BadImage, decode


def encoded(image: Image.Image, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def photo(width: int = 64, height: int = 64) -> Image.Image:
    """Noise, so that a compressed file is long enough to be cut anywhere."""
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def flat_colour(array: NDArray[np.uint8]) -> tuple[int, ...]:
    """The one colour of an array, which must have only one."""
    assert array.shape == (3, 28, 28)
    assert array.dtype == np.uint8
    colours = np.unique(array.reshape(3, -1), axis=1)
    assert colours.shape == (3, 1)
    return tuple(int(channel) for channel in colours[:, 0])


def test_an_image_of_the_right_size_keeps_its_pixels() -> None:
    image = photo(28, 28)
    np.testing.assert_array_equal(decode(encoded(image), size=28), np.asarray(image).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("image", "kind", "colour"),
    [
        (Image.new("1", (40, 40), 1), "PNG", (255, 255, 255)),
        (Image.new("L", (40, 40), 90), "PNG", (90, 90, 90)),
        (Image.new("LA", (40, 40), (0, 0)), "PNG", (255, 255, 255)),
        (Image.new("RGBA", (40, 40), (200, 10, 10, 0)), "PNG", (255, 255, 255)),
        (Image.new("RGBA", (40, 40), (255, 255, 255, 255)), "WEBP", (255, 255, 255)),
        (Image.new("RGB", (40, 40), (1, 2, 3)).quantize(4), "PNG", (1, 2, 3)),
        (Image.new("RGB", (40, 40), (1, 2, 3)).quantize(4), "GIF", (1, 2, 3)),
        (Image.fromarray(np.full((40, 40), 0x5A12, dtype=np.uint16)), "PNG", (0x5A, 0x5A, 0x5A)),
        (Image.fromarray(np.full((40, 40), 0x5A12, dtype=np.uint16)), "TIFF", (0x5A, 0x5A, 0x5A)),
        (Image.new("CMYK", (40, 40), (0, 0, 0, 0)), "JPEG", (255, 255, 255)),
        (Image.new("CMYK", (40, 40), (0, 255, 255, 0)), "TIFF", (255, 0, 0)),
        (Image.new("RGB", (40, 40), (9, 8, 7)), "BMP", (9, 8, 7)),
        (Image.new("RGB", (40, 40), (9, 8, 7)), "JPEG2000", (9, 8, 7)),
    ],
    ids=lambda value: value.mode if isinstance(value, Image.Image) else str(value),
)
def test_every_kind_of_colour_becomes_rgb(image: Image.Image, kind: str, colour: tuple[int, ...]) -> None:
    assert flat_colour(decode(encoded(image, kind), size=28)) == colour


def test_a_transparent_palette_entry_becomes_white() -> None:
    image = Image.new("RGB", (40, 40), (1, 2, 3)).quantize(4)
    assert flat_colour(decode(encoded(image, transparency=image.getpixel((0, 0))), size=28)) == (255, 255, 255)


def test_half_transparent_is_mixed_with_white() -> None:
    array = decode(encoded(Image.new("RGBA", (40, 40), (0, 0, 0, 128))), size=28)
    assert flat_colour(array) == (127, 127, 127)


def test_floats_are_stretched_from_black_to_white() -> None:
    ramp = np.linspace(-3.0, 5.0, 28, dtype=np.float32)[None].repeat(28, axis=0)
    array = decode(encoded(Image.fromarray(ramp), "TIFF"), size=28)
    assert (array[:, :, 0] == 0).all()
    assert (array[:, :, -1] == 255).all()
    assert (np.diff(array[0, 0].astype(int)) > 0).all()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_an_animation_counts_as_its_first_frame(kind: str) -> None:
    red, blue = Image.new("RGB", (40, 40), "red"), Image.new("RGB", (40, 40), "blue")
    options = {"lossless": True} if kind == "WEBP" else {}
    data = encoded(red, kind, save_all=True, append_images=[blue], **options)
    assert Image.open(io.BytesIO(data)).is_animated  # type: ignore[attr-defined]
    assert flat_colour(decode(data, size=28)) == (255, 0, 0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_undone(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    # four different corners tell all eight orientations apart; the file is not square, so that cutting counts too
    stored = Image.new("RGB", (60, 40))
    for corner, colour in {(10, 0): "red", (30, 0): "lime", (10, 20): "blue", (30, 20): "white"}.items():
        stored.paste(colour, (*corner, corner[0] + 20, corner[1] + 20))
    array = decode(encoded(stored, exif=exif), size=40)

    top_left, top_right, bottom_left, bottom_right = (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255)
    upright = {
        1: (top_left, top_right, bottom_left, bottom_right),
        2: (top_right, top_left, bottom_right, bottom_left),
        3: (bottom_right, bottom_left, top_right, top_left),
        4: (bottom_left, bottom_right, top_left, top_right),
        5: (top_left, bottom_left, top_right, bottom_right),
        6: (bottom_left, top_left, bottom_right, top_right),
        7: (bottom_right, top_right, bottom_left, top_left),
        8: (top_right, bottom_right, top_left, bottom_left),
    }[orientation]
    seen = tuple(tuple(map(int, array[:, y, x])) for y in (5, 34) for x in (5, 34))
    assert seen == upright


def test_broken_exif_does_not_make_a_good_picture_bad() -> None:
    data = encoded(Image.new("RGB", (40, 40), "white"), "JPEG", exif=b"Exif\x00\x00II*\x00\xff\xff\xff\xff")
    with pytest.warns(UserWarning, match="Corrupt EXIF"):
        assert flat_colour(decode(data, size=28)) == (255, 255, 255)


def test_a_wide_image_is_cut_to_its_centre_not_squeezed() -> None:
    wide = Image.new("RGB", (120, 40), "red")
    wide.paste("blue", (36, 0, 84, 40))
    assert flat_colour(decode(encoded(wide), size=28)) == (0, 0, 255)


def test_an_extremely_thin_image_is_read_without_a_huge_intermediate() -> None:
    assert flat_colour(decode(encoded(Image.new("RGB", (30_000, 1), "red")), size=28)) == (255, 0, 0)


def test_a_large_jpeg_is_read_like_the_same_picture_as_png() -> None:
    smooth = Image.fromarray(np.linspace(0, 255, 600 * 500).reshape(500, 600).astype(np.uint8)).convert("RGB")
    difference = decode(encoded(smooth, "JPEG", quality=95), size=28).astype(int) - decode(encoded(smooth), size=28)
    assert np.abs(difference).max() <= 4


def png_header(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))


SVG = b'<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty: the file has 0 bytes"),
        (b"<!DOCTYPE html><html><body>Log in</body></html>", "looks like HTML"),
        (b"\n\n  <html><head></head></html>", "looks like HTML"),
        (SVG, "SVG drawing"),
        (b'{"detail": "Authentication credentials were not provided."}', "looks like JSON"),
        (b"%PDF-1.7 ...", "PDF document"),
        (b"PK\x03\x04....", "ZIP archive"),
        (b"Not found", "looks like text"),
        (b"\x00\x01\x02\x03" * 50, "not an image of a known kind"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "not an image"),
        (encoded(photo(), "PNG")[:5000], "truncated: the PNG file ends"),
        (encoded(photo(), "JPEG")[:1500], "truncated: the JPEG file ends"),
        (encoded(photo(), "BMP")[:5000], "truncated: the BMP file ends"),
        (encoded(photo(), "GIF")[:2500], "truncated: the GIF file ends"),
        (encoded(photo(), "WEBP")[:1000], "damaged WEBP file: it is cut off or broken"),
        (encoded(photo(), "JPEG")[:20], "damaged JPEG file: its header is cut off or broken"),
        (encoded(photo(), "PNG")[:20], "damaged PNG file: its header is cut off or broken"),
        (png_header(9_000, 6_000), "too many pixels: 9000 × 6000, the limit is 50 megapixels"),
        (png_header(50_000, 50_000), "too many pixels"),
    ],
)
def test_a_bad_image_says_what_is_wrong(data: bytes, reason: str) -> None:
    with pytest.raises(BadImage, match=reason):
        decode(data, size=28)


def png_chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


ZEROS = zlib.compress(bytes(50_000_000), 9)


@pytest.mark.parametrize("where", [-12, 33], ids=["after the picture", "before the picture"])
@pytest.mark.parametrize(
    "chunk",
    [png_chunk(b"zTXt", b"k\0\0" + ZEROS), png_chunk(b"iTXt", b"k\0\1\0\0\0" + ZEROS)],
    ids=["zTXt", "iTXt"],
)
def test_a_text_that_unpacks_to_a_thousand_times_its_size_is_not_unpacked(chunk: bytes, where: int) -> None:
    good = encoded(photo())
    with pytest.raises(BadImage, match="decompression bomb"):
        decode(good[:where] + chunk + good[where:], size=28)


def test_pixels_that_unpack_to_more_than_the_picture_holds_are_not_unpacked() -> None:
    header = encoded(Image.new("RGB", (40, 40)))[:33]
    data = header + png_chunk(b"IDAT", ZEROS) + png_chunk(b"IEND", b"")
    tracemalloc.start()
    try:
        assert flat_colour(decode(data, size=28)) == (0, 0, 0)
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


def test_a_damaged_png_body_is_a_bad_image() -> None:
    data = bytearray(encoded(photo(), "PNG"))
    start_of_compressed_data = data.index(b"IDAT") + 4
    data[start_of_compressed_data : start_of_compressed_data + 8] = b"\xff" * 8
    with pytest.raises(BadImage, match="damaged PNG file"):
        decode(bytes(data), size=28)


def test_a_picture_just_within_the_limit_is_read_and_one_pixel_more_is_not() -> None:
    data = encoded(Image.new("RGB", (40, 40), "red"))
    assert flat_colour(decode(data, size=28, pixel_limit=1600)) == (255, 0, 0)
    with pytest.raises(BadImage, match="40 × 40"):
        decode(data, size=28, pixel_limit=1599)
