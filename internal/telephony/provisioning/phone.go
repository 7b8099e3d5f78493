// Package provisioning hands phones their configuration: each vendor's files, at an address of one phone's own.
package provisioning

import (
	"strings"
	"time"
	"unicode"

	"soniq/internal/telephony/device"
)

// VoicemailNumber is what a phone dials to listen to its messages.
const VoicemailNumber = "*97"

// A Phone is what a configuration is made of. Render takes control characters out of all of it.
type Phone struct {
	Label     string // what the phone is called
	Name      string // whose it is, as others see it
	Extension string // "" : none
	Username  string // SIP user and authentication name
	Password  string
	Realm     string // digest realm
	Server    string // host or address to register at
	Port      int
	Transport string // udp, tcp or tls
	SRTP      string // off, preferred or required
	Codecs    []string
	Keys      []device.LineKey

	MAC      string // twelve small hexadecimal digits; "" : not known
	URL      string // address of the folder with its files, ending in /
	HTTPUser string // what it fetches them with once the address is closed
	HTTPPass string
	Interval time.Duration // how often it fetches them
	NTP      string        // NTP server
	Zone     *time.Location
	Now      time.Time // of which year daylight saving is told
}

// registerFor is how long phones register for, in seconds.
const registerFor = 600

// allCodecs are in the order that phones get which prefer none.
var allCodecs = []string{"opus", "g722", "pcma", "pcmu"}

// safe takes what could end a line, or move the cursor of a display, out of everything that people wrote.
func (p Phone) safe() Phone {
	for _, field := range []*string{&p.Label, &p.Name, &p.Extension, &p.Username, &p.Password, &p.Realm, &p.Server, &p.MAC, &p.URL,
		&p.HTTPUser, &p.HTTPPass, &p.NTP} {
		*field = plain(*field)
	}
	keys := make([]device.LineKey, 0, len(p.Keys))
	for _, k := range p.Keys {
		k.Label, k.Value = plain(k.Label), plain(k.Value)
		if k.Label == "" {
			k.Label = k.Value
		}
		keys = append(keys, k)
	}
	if p.Keys = keys; len(p.Codecs) == 0 {
		p.Codecs = allCodecs
	}
	if p.Zone == nil {
		p.Zone = time.UTC
	}
	return p
}

// plain is a text on one line, without characters that are not seen.
func plain(text string) string {
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

// shown is the name of the account on the phone.
func (p Phone) shown() string {
	switch {
	case p.Name == "":
		return p.Label
	case p.Extension == "":
		return p.Name
	}
	return p.Name + " (" + p.Extension + ")"
}

// seconds is how often the phone fetches its files.
func (p Phone) seconds() int { return int(p.Interval / time.Second) }

// one picks by what a setting says; "" where it says something else.
func one(value string, of map[string]string) string { return of[value] }

// named are the codecs by what a vendor calls them; those it does not know are left out.
func (p Phone) named(of map[string]string) []string {
	var all []string
	for _, c := range p.Codecs {
		if name := of[c]; name != "" {
			all = append(all, name)
		}
	}
	return all
}
