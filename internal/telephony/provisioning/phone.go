// Package provisioning sends phones their configuration: the files of each vendor, at a separate secret address for
// each phone.
package provisioning

import (
	"strings"
	"time"
	"unicode"

	"soniq/internal/telephony/device"
)

// VoicemailNumber is what a phone dials to listen to its messages.
const VoicemailNumber = "*97"

// Phone holds the data of a configuration. Render removes control characters from all of it.
type Phone struct {
	Label     string // name of the phone
	Name      string // display name of its user
	Extension string // "" if none
	Username  string // SIP user and authentication name
	Password  string
	Realm     string // digest realm
	Server    string // host or address of the registrar
	Port      int
	Transport string // udp, tcp or tls
	SRTP      string // off, preferred or required
	Codecs    []string
	Keys      []device.LineKey

	MAC      string // twelve lower-case hexadecimal digits; "" if unknown
	URL      string // URL of the folder with its files, with a trailing slash
	HTTPUser string // login for fetches after the address has closed
	HTTPPass string
	Interval time.Duration // between two fetches
	NTP      string        // NTP server
	Zone     *time.Location
	Now      time.Time // selects the year of the daylight saving rules
}

// registerSeconds is the expiry of registrations in seconds.
const registerSeconds = 600

// defaultCodecs lists the codecs of phones without a preference, in order.
var defaultCodecs = []string{"opus", "g722", "pcma", "pcmu"}

// sanitized returns the phone with single-line texts and without invisible characters. So no text can end a line or move the cursor of a
// display. It also sets default codecs, key labels and the time zone.
func (p Phone) sanitized() Phone {
	for _, field := range []*string{&p.Label, &p.Name, &p.Extension, &p.Username, &p.Password, &p.Realm, &p.Server, &p.MAC, &p.URL,
		&p.HTTPUser, &p.HTTPPass, &p.NTP} {
		*field = singleLine(*field)
	}
	keys := make([]device.LineKey, 0, len(p.Keys))
	for _, k := range p.Keys {
		k.Label, k.Value = singleLine(k.Label), singleLine(k.Value)
		if k.Label == "" {
			k.Label = k.Value
		}
		keys = append(keys, k)
	}
	if p.Keys = keys; len(p.Codecs) == 0 {
		p.Codecs = defaultCodecs
	}
	if p.Zone == nil {
		p.Zone = time.UTC
	}
	return p
}

// singleLine returns text on one line, without invisible characters.
func singleLine(text string) string {
	text = strings.Map(func(c rune) rune {
		switch {
		case c == '\t' || c == '\n' || c == '\r' || unicode.Is(unicode.Zl, c) || unicode.Is(unicode.Zp, c) || c == 0x85:
			return ' '
		case unicode.IsControl(c) || unicode.Is(unicode.Cf, c) || c == unicode.ReplacementChar || c >= 0xfffe:
			return -1
		}
		return c
	}, strings.ToValidUTF8(text, ""))
	return strings.TrimSpace(text)
}

// accountName returns the name of the account on the phone's display.
func (p Phone) accountName() string {
	switch {
	case p.Name == "":
		return p.Label
	case p.Extension == "":
		return p.Name
	}
	return p.Name + " (" + p.Extension + ")"
}

// intervalSeconds returns the time between two fetches in seconds.
func (p Phone) intervalSeconds() int { return int(p.Interval / time.Second) }

// lookup returns the vendor's value for a setting, or "" if there is none.
func lookup(value string, of map[string]string) string { return of[value] }

// codecNames returns the codecs by the vendor's names. Codecs that the vendor does not support are omitted.
func (p Phone) codecNames(of map[string]string) []string {
	var all []string
	for _, c := range p.Codecs {
		if name := of[c]; name != "" {
			all = append(all, name)
		}
	}
	return all
}
