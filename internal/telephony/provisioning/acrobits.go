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
	x := newXMLWriter()
	x.begin("account")
	x.value("title", p.accountName())
	x.value("username", p.Username)
	x.value("authUsername", p.Username)
	x.value("password", p.Password)
	x.value("userDisplayName", p.Name)
	x.value("host", net.JoinHostPort(p.Server, strconv.Itoa(p.Port)))
	x.value("transport", lookup(p.Transport, map[string]string{"udp": "udp", "tcp": "tcp", "tls": "tls+sip:"}))
	x.value("expires", registerSeconds)
	x.value("voiceMailNumber", VoicemailNumber)
	if order := strings.Join(p.codecNames(acrobitsCodecs), ","); order != "" {
		x.value("codecOrder", order)
		x.value("codecOrder3G", order)
	}
	x.value("extProvUrl", withLogin(p.URL+"acrobits.xml", p.HTTPUser, p.HTTPPass))
	x.value("extProvInterval", p.intervalSeconds())
	return x.bytes()
}
