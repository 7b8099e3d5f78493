package provisioning

import (
	"net"
	"strconv"
	"strings"
)

// Acrobits, Groundwire and apps built with them: one account as XML. It has no line keys, and the app decides on
// SRTP.

var acrobitsCodecs = map[string]string{"pcmu": "0", "pcma": "8", "g722": "9"}

func acrobits(p Phone) []byte {
	x := newElements()
	x.begin("account")
	x.value("title", p.shown())
	x.value("username", p.Username)
	x.value("authUsername", p.Username)
	x.value("password", p.Password)
	x.value("userDisplayName", p.Name)
	x.value("host", net.JoinHostPort(p.Server, strconv.Itoa(p.Port)))
	x.value("transport", one(p.Transport, map[string]string{"udp": "udp", "tcp": "tcp", "tls": "tls+sip:"}))
	x.value("expires", registerFor)
	x.value("voiceMailNumber", VoicemailNumber)
	if order := strings.Join(p.named(acrobitsCodecs), ","); order != "" {
		x.value("codecOrder", order)
		x.value("codecOrder3G", order)
	}
	x.value("extProvUrl", withLogin(p.URL+"acrobits.xml", p.HTTPUser, p.HTTPPass))
	x.value("extProvInterval", p.seconds())
	return x.bytes()
}
