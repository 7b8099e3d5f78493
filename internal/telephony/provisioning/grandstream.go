package provisioning

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Grandstream: cfg{mac}.xml, settings by number ("P values"). Line keys after the sixth have numbers that differ
// between models.

const grandstreamKeys = 6

var grandstreamCodecs = map[string]string{"pcmu": "0", "pcma": "8", "g722": "9", "opus": "123"}

func grandstream(p Phone) []byte {
	x := newXMLWriter()
	x.begin("gs_provision", "version", 1)
	x.value("mac", p.MAC)
	x.begin("config", "version", 1)
	set := func(n int, value any) { x.value(fmt.Sprintf("P%d", n), value) }
	set(271, 1)               // account 1 is active
	set(270, p.accountName()) // its name
	set(47, net.JoinHostPort(p.Server, strconv.Itoa(p.Port)))
	set(35, p.Username)
	set(36, p.Username)
	set(34, p.Password)
	set(3, p.Name)
	set(33, VoicemailNumber)
	set(32, registerSeconds/60)
	set(130, lookup(p.Transport, map[string]string{"udp": "0", "tcp": "1", "tls": "2"}))
	set(183, lookup(p.SRTP, map[string]string{"off": "0", "preferred": "1", "required": "2"}))
	grandstreamCodec(set, p)
	set(30, p.NTP)
	set(64, "customize")
	set(246, zoneRulesOf(p.Zone, p.Now).posix())
	grandstreamServer(set, p)
	grandstreamKey(set, p)
	return x.bytes()
}

// grandstreamCodec sets the seven codec preferences of the account. The last codec is repeated.
func grandstreamCodec(set func(int, any), p Phone) {
	all := p.codecNames(grandstreamCodecs)
	for i, n := range []int{57, 58, 59, 60, 61, 62, 46} {
		if len(all) > 0 {
			set(n, all[min(i, len(all)-1)])
		}
	}
}

func grandstreamServer(set func(int, any), p Phone) {
	protocol, place := 2, p.URL
	if u, err := url.Parse(p.URL); err == nil {
		protocol, place = map[string]int{"http": 1, "https": 2}[u.Scheme], u.Host+strings.TrimSuffix(u.Path, "/")
	}
	set(212, protocol)
	set(237, place)
	set(1360, p.HTTPUser)
	set(1361, p.HTTPPass)
	set(194, 1)
	set(193, max(60, p.intervalSeconds()/60))
}

func grandstreamKey(set func(int, any), p Phone) {
	for _, k := range p.Keys {
		if k.Position > grandstreamKeys {
			continue
		}
		n := 2 * (k.Position - 1)
		set(1363+n, lookup(k.Type, map[string]string{"line": "0", "blf": "11", "speed_dial": "10", "queue": "10", "park": "19"}))
		set(1364+n, 0)
		set(1465+n, k.Label)
		set(1466+n, k.Value)
	}
}
