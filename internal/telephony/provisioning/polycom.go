package provisioning

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// Polycom: {mac}.cfg names further files; settings are attributes. BLF keys are "attendant" entries, and numbers to
// dial are in the directory. The phone writes {mac}-phone.cfg itself and reads it last, so it gets the same settings
// from there.

var polycomCodecs = map[string]string{"pcmu": "G711_Mu", "pcma": "G711_A", "g722": "G722"}

func polycomMaster(p Phone) []byte {
	x := newXMLWriter()
	x.empty("APPLICATION", "APP_FILE_PATH", "", "CONFIG_FILES", p.MAC+"-reg.cfg", "MISC_FILES", "", "LOG_FILE_DIRECTORY", "",
		"OVERRIDES_DIRECTORY", "", "CONTACTS_DIRECTORY", "")
	return x.bytes()
}

// polycomCommon is for phones without a file of their own. The name of their file follows from the MAC address.
func polycomCommon(Phone) []byte {
	x := newXMLWriter()
	x.empty("APPLICATION", "APP_FILE_PATH", "", "CONFIG_FILES", "[PHONE_MAC_ADDRESS]-reg.cfg", "MISC_FILES", "", "LOG_FILE_DIRECTORY", "",
		"OVERRIDES_DIRECTORY", "", "CONTACTS_DIRECTORY", "")
	return x.bytes()
}

func polycom(p Phone) []byte {
	x := newXMLWriter()
	x.begin("PHONE_CONFIG")
	x.empty("REGISTRATION", polycomAccount(p)...)
	x.empty("MEDIA", polycomMedia(p)...)
	x.empty("TIME", polycomTime(p)...)
	x.empty("PROVISIONING", polycomServer(p)...)
	if keys := polycomBLF(p); len(keys) > 0 {
		x.empty("ATTENDANT", keys...)
	}
	return x.bytes()
}

func polycomAccount(p Phone) []any {
	lines := 0
	for _, k := range p.Keys {
		if k.Type == "line" {
			lines++
		}
	}
	const r = "reg.1."
	return []any{r + "address", p.Username, r + "label", p.accountName(), r + "displayName", p.Name, r + "auth.userId", p.Username,
		r + "auth.password", p.Password, r + "server.1.address", p.Server, r + "server.1.port", p.Port,
		r + "server.1.transport", lookup(p.Transport, map[string]string{"udp": "UDPOnly", "tcp": "TCPOnly", "tls": "TLS"}),
		r + "server.1.expires", registerSeconds, r + "server.1.register", 1, r + "lineKeys", max(1, lines),
		"msg.mwi.1.callBackMode", "contact", "msg.mwi.1.callBack", VoicemailNumber}
}

func polycomMedia(p Phone) []any {
	on := map[bool]int{true: 1}
	all := []any{"sec.srtp.enable", on[p.SRTP != "off"], "sec.srtp.offer", on[p.SRTP != "off"], "sec.srtp.require",
		on[p.SRTP == "required"]}
	wanted := map[string]int{}
	for i, name := range p.codecNames(polycomCodecs) {
		wanted[name] = i + 1
	}
	for _, name := range []string{"G722", "G711_A", "G711_Mu"} {
		all = append(all, "voice.codecPref."+name, wanted[name])
	}
	return all
}

// polycomTime returns the time zone settings. Days of the week begin with Sunday = 1.
func polycomTime(p Phone) []any {
	c := zoneRulesOf(p.Zone, p.Now)
	const s = "tcpIpApp.sntp."
	all := []any{s + "address", p.NTP, s + "gmtOffset", c.standard}
	if !c.hasDST() {
		return append(all, s+"daylightSavings.enable", 0)
	}
	all = append(all, s+"daylightSavings.enable", 1, s+"daylightSavings.fixedDayEnable", 0)
	for i, name := range []string{"start", "stop"} {
		at, d := []transition{c.start, c.end}[i], s+"daylightSavings."+name+"."
		all = append(all, d+"month", int(at.month), d+"dayOfWeek", int(at.weekday)+1, d+"dayOfWeek.lastInMonth",
			map[bool]int{true: 1}[at.week == 5], d+"date", min(at.week-1, 3)*7+1, d+"time", at.seconds/3600)
	}
	return all
}

func polycomServer(p Phone) []any {
	scheme, place := "HTTPS", p.URL
	if u, err := url.Parse(p.URL); err == nil {
		scheme, place = strings.ToUpper(u.Scheme), u.Host+strings.TrimSuffix(u.Path, "/")
	}
	const d = "device.prov."
	return []any{"device.set", 1, d + "serverType.set", 1, d + "serverType", scheme, d + "serverName.set", 1, d + "serverName", place,
		d + "user.set", 1, d + "user", p.HTTPUser, d + "password.set", 1, d + "password", p.HTTPPass,
		"prov.polling.enabled", 1, "prov.polling.mode", "rel", "prov.polling.period", max(3600, p.intervalSeconds()),
		"voIpProt.SIP.specialEvent.checkSync.alwaysReboot", 0}
}

func polycomBLF(p Phone) []any {
	var all []any
	for _, k := range p.Keys {
		if k.Type == "blf" {
			n := fmt.Sprintf("attendant.resourceList.%d.", len(all)/6+1)
			all = append(all, n+"address", k.Value, n+"label", k.Label, n+"type", "normal")
		}
	}
	return all
}

// polycomDirectory returns the directory with the speed dial numbers.
func polycomDirectory(p Phone) []byte {
	x := newXMLWriter()
	x.begin("directory")
	x.begin("item_list")
	n := 0
	for _, k := range p.Keys {
		if k.Type == "line" || k.Type == "blf" {
			continue
		}
		n++
		x.begin("item")
		x.value("fn", k.Label)
		x.value("ct", k.Value)
		x.value("sd", strconv.Itoa(n))
		x.end()
	}
	return x.bytes()
}
