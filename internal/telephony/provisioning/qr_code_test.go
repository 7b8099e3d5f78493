package provisioning

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/makiuchi-d/gozxing"
	"github.com/makiuchi-d/gozxing/qrcode"
)

// An independent decoder reads the PNG, SVG and terminal forms of a QR code.
func TestQRCode_DecodedByOtherReader(t *testing.T) {
	t.Parallel()
	const address = "https://voice.example.com:8443/provision/l6DfWuKf6208ztezG8hyZv/linphone.xml"
	c, err := NewQRCode(address)
	if err != nil {
		t.Fatal(err)
	}
	file, err := c.PNG()
	if err != nil {
		t.Fatal(err)
	}
	picture, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for name, shown := range map[string]image.Image{"PNG": picture, "SVG": renderSVG(string(c.SVG())),
		"terminal": renderTerminal(c.Text())} {
		if got := decodeQR(shown); got != address {
			t.Errorf("%s reads %q", name, got)
		}
	}
}

func decodeQR(picture image.Image) string {
	b, err := gozxing.NewBinaryBitmapFromImage(picture)
	if err != nil {
		return err.Error()
	}
	found, err := qrcode.NewQRCodeReader().Decode(b, nil)
	if err != nil {
		return fmt.Sprint(err)
	}
	return found.GetText()
}

const pixelsPerModule = 4 // pixels per module, as a camera would see it

func canvas(side int) *image.Gray {
	g := image.NewGray(image.Rect(0, 0, side*pixelsPerModule, side*pixelsPerModule))
	for i := range g.Pix {
		g.Pix[i] = 255
	}
	return g
}

func blacken(g *image.Gray, x, y int) {
	for dx := range pixelsPerModule {
		for dy := range pixelsPerModule {
			g.SetGray(x*pixelsPerModule+dx, y*pixelsPerModule+dy, color.Gray{})
		}
	}
}

// renderSVG draws an SVG in the form that QRCode.SVG writes.
func renderSVG(svg string) image.Image {
	g := canvas(60)
	for _, m := range regexp.MustCompile(`M(\d+) (\d+)h1v1h-1z`).FindAllStringSubmatch(svg, -1) {
		x, _ := strconv.Atoi(m[1])
		y, _ := strconv.Atoi(m[2])
		blacken(g, x, y)
	}
	return g
}

// renderTerminal draws the output of QRCode.Text as a terminal shows it.
func renderTerminal(text string) image.Image {
	g := canvas(60)
	for y, line := range strings.Split(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(text, ""), "\n") {
		for x, c := range []rune(line) {
			if c == '█' || c == '▀' {
				blacken(g, x, 2*y)
			}
			if c == '█' || c == '▄' {
				blacken(g, x, 2*y+1)
			}
		}
	}
	return g
}
