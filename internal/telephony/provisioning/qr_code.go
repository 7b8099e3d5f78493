package provisioning

import (
	"bytes"
	"fmt"
	"image/color"
	"image/png"
	"strings"

	"github.com/boombuler/barcode"
	"github.com/boombuler/barcode/qr"
)

// quietZone is the margin of a QR code in modules (ISO/IEC 18004).
const quietZone = 4

// QRCode is an address as a QR code for the camera of a phone.
type QRCode struct{ picture barcode.Barcode }

// NewQRCode returns the QR code of an address.
func NewQRCode(address string) (QRCode, error) {
	b, err := qr.Encode(address, qr.M, qr.Unicode)
	if err != nil {
		return QRCode{}, fmt.Errorf("QR code: %w", err)
	}
	return QRCode{b}, nil
}

// size returns the length of a side in modules, including the margin.
func (c QRCode) size() int { return c.picture.Bounds().Dx() + 2*quietZone }

// dark reports whether a module is black. Modules outside of the code are not.
func (c QRCode) dark(x, y int) bool {
	b := c.picture.Bounds()
	x, y = x-quietZone+b.Min.X, y-quietZone+b.Min.Y
	if x < b.Min.X || y < b.Min.Y || x >= b.Max.X || y >= b.Max.Y {
		return false
	}
	return color.GrayModel.Convert(c.picture.At(x, y)).(color.Gray).Y < 128
}

// modulePixels is the size of a module in a PNG.
const modulePixels = 8

// PNG returns the code as a PNG file.
func (c QRCode) PNG() ([]byte, error) {
	var out bytes.Buffer
	err := png.Encode(&out, c.image())
	return out.Bytes(), err
}

// SVG returns the code as an SVG file.
func (c QRCode) SVG() []byte {
	var b strings.Builder
	n := c.size()
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" shape-rendering="crispEdges"><rect width="%d" height="%d" fill="#fff"/><path d="`, n, n, n, n)
	for y := range n {
		for x := range n {
			if c.dark(x, y) {
				fmt.Fprintf(&b, "M%d %dh1v1h-1z", x, y)
			}
		}
	}
	b.WriteString(`"/></svg>` + "\n")
	return []byte(b.String())
}

// Text returns the code for a terminal, with two modules per character. It sets dark text on a light background,
// whatever the terminal's colours are.
func (c QRCode) Text() string {
	var b strings.Builder
	for y := 0; y < c.size(); y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := range c.size() {
			switch up, down := c.dark(x, y), c.dark(x, y+1); {
			case up && down:
				b.WriteString("█")
			case up:
				b.WriteString("▀")
			case down:
				b.WriteString("▄")
			default:
				b.WriteString(" ")
			}
		}
		b.WriteString("\x1b[0m\n")
	}
	return b.String()
}
