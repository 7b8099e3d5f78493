package provisioning

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Linphone: one XML file of sections and entries. It has no line keys. The address of the next fetch contains the
// HTTP login that is needed by then.

func linphone(p Phone) []byte {
	x := newXMLWriter()
	x.begin("config", "xmlns", "http://www.linphone.org/xsds/lpconfig.xsd")
	linphoneSection(x, "auth_info_0", "username", p.Username, "userid", p.Username, "passwd", p.Password, "realm", p.Realm, "domain",
		p.Server)
	server := "<sip:" + net.JoinHostPort(p.Server, strconv.Itoa(p.Port)) + ";transport=" + p.Transport + ">"
	linphoneSection(x, "proxy_0", "reg_proxy", server, "reg_route", server, "reg_identity", linphoneIdentity(p), "realm", p.Realm,
		"reg_expires", registerSeconds, "reg_sendregister", 1, "publish", 0, "voicemail_address", fmt.Sprintf("sip:%s@%s", VoicemailNumber,
			host(p.Server)))
	linphoneSection(x, "sip", "default_proxy", 0, "media_encryption", map[bool]string{true: "srtp", false: "none"}[p.SRTP != "off"],
		"media_encryption_mandatory", map[bool]int{true: 1}[p.SRTP == "required"])
	linphoneCodecs(x, p)
	linphoneSection(x, "misc", "transient_provisioning", 0, "config-uri", withLogin(p.URL+"linphone.xml", p.HTTPUser, p.HTTPPass))
	return x.bytes()
}

func linphoneSection(x *xmlWriter, name string, entries ...any) {
	x.begin("section", "name", name)
	for i := 0; i+1 < len(entries); i += 2 {
		x.value("entry", entries[i+1], "name", entries[i], "overwrite", "true")
	}
	x.end()
}

// linphoneIdentity returns the phone's SIP address with the user's name.
func linphoneIdentity(p Phone) string {
	name := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.Name)
	return fmt.Sprintf(`"%s" <sip:%s@%s>`, name, p.Username, host(p.Server))
}

var linphoneRates = map[string]int{"pcmu": 8000, "pcma": 8000, "g722": 8000, "opus": 48000}

// linphoneCodecs writes the codecs in order of preference.
func linphoneCodecs(x *xmlWriter, p Phone) {
	for i, c := range p.Codecs {
		linphoneSection(x, fmt.Sprintf("audio_codec_%d", i), "mime",
			lookup(c, map[string]string{"pcmu": "PCMU", "pcma": "PCMA", "g722": "G722", "opus": "opus"}),
			"rate", linphoneRates[c], "channels", map[bool]int{true: 2, false: 1}[c == "opus"], "enabled", 1)
	}
}

// withLogin adds a user name and a password to a URL.
func withLogin(address, user, password string) string {
	u, err := url.Parse(address)
	if err != nil || user == "" {
		return address
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

// host returns a host for URIs: IPv6 addresses in brackets.
func host(server string) string {
	if strings.Contains(server, ":") {
		return "[" + server + "]"
	}
	return server
}
