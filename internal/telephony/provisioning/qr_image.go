package provisioning

import (
	"image"
	"image/color"
)

// image returns the code as a black and white image with one byte per pixel.
func (c QRCode) image() image.Image {
	side := c.size() * modulePixels
	picture := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.White, color.Black})
	for y := range side {
		for x := range side {
			if c.dark(x/modulePixels, y/modulePixels) {
				picture.SetColorIndex(x, y, 1)
			}
		}
	}
	return picture
}
