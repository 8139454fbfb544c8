"""Other programs read our PNG files correctly."""

from __future__ import annotations

import io

from PIL import Image

from functions.core.extraction.pdf import page_images


def test_an_image_is_read_back_pixel_by_pixel_without_row_padding() -> None:
    pixels = [(255, 0, 0), (0, 255, 0), (0, 0, 255), (1, 2, 3)]
    padded = bytearray(bytes((*pixels[0], *pixels[1], 9, 9)) + bytes((*pixels[2], *pixels[3], 9, 9)))
    picture = page_images.Picture(width=2, height=2, stride=8, pixels=padded)
    image = Image.open(io.BytesIO(page_images.encode_png(picture)))
    image.load()
    assert (image.format, image.mode, image.size) == ("PNG", "RGB", (2, 2))
    assert [image.getpixel((x, y)) for y in (0, 1) for x in (0, 1)] == pixels
