package device

import (
	"net"
	"slices"
	"strings"

	"soniq/internal/platform/op"
)

var (
	kinds        = []string{"desk_phone", "softphone", "webrtc", "ata", "mobile", "gateway"}
	srtpModes    = []string{"off", "preferred", "required"}
	codecs       = []string{"pcmu", "pcma", "g722", "opus"}
	lineKeyTypes = []string{"line", "blf", "speed_dial", "queue", "park"}
)

// validate returns every violation of a phone, and normalises its MAC address.
func (d *Device) validate() []op.Violation {
	var wrong []op.Violation
	want := func(ok bool, field, code, message string) {
		if !ok {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	one := func(field, value string, of []string) {
		want(slices.Contains(of, value), field, "invalid_value", "must be one of "+strings.Join(of, ", "))
	}
	want(strings.TrimSpace(d.Name) != "" && len([]rune(d.Name)) <= 120, "name", "invalid_length", "must have 1 to 120 characters")
	one("kind", d.Kind, kinds)
	one("srtp", d.SRTP, srtpModes)
	one("status", d.Status, []string{"active", "disabled"})
	one("sip.transport", d.SIP.Transport, []string{"udp", "tcp", "tls"})
	one("sip.digest", d.SIP.Digest, []string{"md5", "sha256"})
	for _, c := range d.Codecs {
		one("codecs", c, codecs)
	}
	for _, k := range d.LineKeys {
		one("line_keys", k.Type, lineKeyTypes)
	}
	if d.Location != nil {
		wrong = append(wrong, d.Location.Check("emergency_location")...)
	}
	if d.MAC != nil {
		mac, err := net.ParseMAC(*d.MAC)
		want(err == nil && len(mac) == 6, "mac", "invalid_mac", "must be a MAC address such as 00:15:65:ab:cd:ef")
		if err == nil {
			text := mac.String()
			d.MAC = &text
		}
	}
	return wrong
}
