package provisioning

import (
	"fmt"
	"html"
	"net/http"
)

// serveQRCode sends the address as a QR code until OpenUntil. It does not count as a fetch.
func (q *request) serveQRCode() {
	if !q.cfg.Clock.Now().Before(q.address.OpenUntil.Time) {
		notFound(q.w)
		return
	}
	c, err := NewQRCode(q.cfg.Devices.AddressURL(q.address.Device, q.token))
	if err == nil && q.file == "qr.svg" {
		q.w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = q.w.Write(c.SVG())
		return
	}
	var picture []byte
	if err == nil {
		picture, err = c.PNG()
	}
	if err != nil {
		q.fail(err)
		return
	}
	q.w.Header().Set("Content-Type", "image/png")
	_, _ = q.w.Write(picture)
}

// servePage sends the page for a person who opens the address in a browser. It contains no secrets and does not count
// as a fetch.
func (q *request) servePage() {
	if !q.cfg.Clock.Now().Before(q.address.OpenUntil.Time) {
		notFound(q.w)
		return
	}
	warning, err := q.emergencyWarning()
	if err != nil {
		q.fail(err)
		return
	}
	q.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	q.w.Header().Set("Content-Security-Policy", "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'")
	q.w.WriteHeader(http.StatusOK)
	address := html.EscapeString(q.cfg.Devices.AddressURL(q.address.Device, q.token))
	_, _ = fmt.Fprintf(q.w, `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Set up a telephone</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>body{font:16px/1.5 system-ui,sans-serif;max-width:36rem;margin:3rem auto;padding:0 1rem}
code{word-break:break-all}img{width:16rem}</style></head><body><h1>Set up a telephone</h1>
<p>Scan this with the phone's app, or enter the address as the phone's provisioning server. The first phone to fetch from it keeps it.</p>
<p><img src="qr.svg" alt="QR code"></p><p><code>%s</code></p>%s</body></html>
`, address, warning)
}

// emergencyWarning returns the warning for a phone without emergency calling; "" if the phone has it.
func (q *request) emergencyWarning() (string, error) {
	if reached, err := q.cfg.Devices.HasEmergencyRoute(q.r.Context(), q.address.Device.OrgID); err != nil || reached {
		return "", err
	}
	return `<p role="alert"><strong>No emergency calls from this phone: use a mobile phone. Put a label that says so on it.</strong></p>`,
		nil
}
