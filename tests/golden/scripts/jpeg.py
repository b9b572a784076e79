#!/usr/bin/env python3
"""Makes jpeg.json: small JPEG files of several kinds and their pixels as Pillow decodes them, turned as their Exif block says.
Needs Pillow; the tests do not. usage: jpeg.py"""
import io, json, os

from PIL import Image, ImageOps

OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../data", "jpeg.json")


def drawn(width, height):
    image = Image.new("RGB", (width, height))
    image.putdata([((x * 37 + y * 11) % 256, (x * y * 5) % 256, 255 - (x * 13 + y * 29) % 256) for y in range(height) for x in range(width)])
    return image


def row(name, image, **options):
    file = io.BytesIO()
    image.save(file, "JPEG", **options)
    pixels = ImageOps.exif_transpose(Image.open(io.BytesIO(file.getvalue()))).convert("RGB")
    return {"name": name, "file": file.getvalue().hex(), "height": pixels.height, "width": pixels.width, "pixels": pixels.tobytes().hex()}


exif = Image.Exif()
exif[0x112] = 6
rows = [row("colours, half resolution", drawn(19, 13), quality=80),
        row("colours, full resolution", drawn(8, 8), quality=95, subsampling=0),
        row("progressive", drawn(17, 9), quality=70, progressive=True),
        row("grey", drawn(11, 10).convert("L"), quality=85),
        row("turned", drawn(9, 6), quality=90, exif=exif)]
cmyk = io.BytesIO()
drawn(8, 8).convert("CMYK").save(cmyk, "JPEG")
with open(OUT, "w") as file:
    json.dump({"rows": rows, "cmyk": cmyk.getvalue().hex()}, file, separators=(",", ":"))
    file.write("\n")
