package provisioning

import (
	"net/url"
	"strings"
	"time"
)

// Fanvil: {mac}.cfg, which is XML. Keys are "memory keys" (type 1), whose value ends in their function, or lines
// (type 2).

var fanvilCodecs = map[string]string{"pcmu": "PCMU", "pcma": "PCMA", "g722": "G722", "opus": "OPUS"}

func fanvil(p Phone) []byte {
	x := newXMLWriter()
	x.begin("sysConf")
	x.value("Version", "2.0000000000")
	x.begin("sip")
	x.value("NotifyReboot", 0)
	x.begin("line", "index", 1)
	fanvilAccount(x, p)
	x.end()
	x.end()
	x.begin("phone")
	x.begin("date")
	x.value("EnableSNTP", 1)
	x.value("SNTPServer", p.NTP)
	x.end()
	x.end()
	fanvilKeys(x, p)
	fanvilServer(x, p)
	return x.bytes()
}

func fanvilAccount(x *xmlWriter, p Phone) {
	x.value("PhoneNumber", p.Username)
	x.value("DisplayName", p.Name)
	x.value("SipName", p.accountName())
	x.value("RegisterAddr", p.Server)
	x.value("RegisterPort", p.Port)
	x.value("RegisterUser", p.Username)
	x.value("RegisterPswd", p.Password)
	x.value("RegisterTTL", registerSeconds)
	x.value("EnableReg", 1)
	x.value("Transport", lookup(p.Transport, map[string]string{"udp": "0", "tcp": "1", "tls": "3"}))
	x.value("MediaCrypto", lookup(p.SRTP, map[string]string{"off": "0", "preferred": "1", "required": "1"}))
	x.value("EnableOSRTP", lookup(p.SRTP, map[string]string{"off": "0", "preferred": "1", "required": "0"}))
	x.value("MWINum", VoicemailNumber)
	x.value("VoiceCodecMap", strings.Join(p.codecNames(fanvilCodecs), ","))
}

func fanvilKeys(x *xmlWriter, p Phone) {
	x.begin("dsskey")
	x.begin("internal", "index", 1)
	for _, k := range p.Keys {
		x.begin("Fkey", "index", k.Position)
		x.value("Type", map[bool]int{true: 2, false: 1}[k.Type == "line"])
		x.value("Value", lookup(k.Type, map[string]string{"line": "SIP1", "blf": k.Value + "@1/ba", "speed_dial": k.Value + "@1/f",
			"queue": k.Value + "@1/f", "park": k.Value + "@1/c"}))
		x.value("Title", k.Label)
		x.end()
	}
	x.end()
	x.end()
}

func fanvilServer(x *xmlWriter, p Phone) {
	protocol, place := 5, p.URL
	if u, err := url.Parse(p.URL); err == nil {
		protocol, place = map[string]int{"http": 4, "https": 5}[u.Scheme], u.Host+strings.TrimSuffix(u.Path, "/")
	}
	x.begin("ap")
	x.value("DefaultUsername", p.HTTPUser)
	x.value("DefaultPassword", p.HTTPPass)
	x.value("FlashServerIP", place)
	x.value("FlashFileName", "$mac.cfg")
	x.value("FlashProtocol", protocol)
	x.value("FlashMode", 2)
	x.value("FlashInterval", max(1, int(p.Interval/time.Hour)))
	x.end()
}
