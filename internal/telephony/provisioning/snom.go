package provisioning

import (
	"fmt"
	"strings"
)

// Snom: settings.xml, settings-{mac}.xml or snom{model}-{mac}.htm: elements with the account's number as idx.

var snomCodecs = map[string]string{"pcmu": "pcmu", "pcma": "pcma", "g722": "g722", "opus": "opus"}

func snom(p Phone) []byte {
	x := newXMLWriter()
	x.begin("settings")
	x.begin("phone-settings", "e", 2)
	account := func(name string, value any) { x.value(name, value, "idx", 1, "perm", "R") }
	account("user_active", "on")
	account("user_realname", p.Name)
	account("user_idle_text", p.accountName())
	account("user_name", p.Username)
	account("user_pname", p.Username)
	account("user_pass", p.Password)
	account("user_host", host(p.Server))
	account("user_outbound", fmt.Sprintf("sip:%s:%d;transport=%s", host(p.Server), p.Port, p.Transport))
	account("user_expiry", registerSeconds)
	account("user_srtp", map[bool]string{true: "on", false: "off"}[p.SRTP != "off"])
	account("user_savp", lookup(p.SRTP, map[string]string{"off": "off", "preferred": "optional", "required": "mandatory"}))
	account("user_mailbox", VoicemailNumber)
	account("codec_priority_list", strings.Join(append(p.codecNames(snomCodecs), "telephone-event"), ","))
	snomTime(x, p)
	snomServer(x, p)
	x.end()
	snomKeys(x, p)
	return x.bytes()
}

// snomTime writes the time zone, and the changes to and from daylight saving as month.week.weekday hour, with Sunday
// = 7.
func snomTime(x *xmlWriter, p Phone) {
	c := zoneRulesOf(p.Zone, p.Now)
	x.value("ntp_server", p.NTP, "perm", "R")
	x.value("utc_offset", c.standard, "perm", "R")
	rule := ""
	if c.hasDST() {
		rule = fmt.Sprintf("%d %s %s", c.summer-c.standard, snomChange(c.start), snomChange(c.end))
	}
	x.value("dst", rule, "perm", "R")
}

func snomChange(at transition) string {
	return fmt.Sprintf("%02d.%02d.%02d %02d:%02d:%02d", at.month, at.week, (int(at.weekday)+6)%7+1, at.seconds/3600, at.seconds%3600/60,
		at.seconds%60)
}

func snomServer(x *xmlWriter, p Phone) {
	x.value("setting_server", p.URL+"settings-{mac}.xml", "perm", "RW") // the phone replaces {mac} by its address
	x.value("http_client_user", p.HTTPUser, "perm", "RW")
	x.value("http_client_pass", p.HTTPPass, "perm", "RW")
	x.value("settings_refresh_timer", p.intervalSeconds(), "perm", "RW")
	x.value("update_policy", "settings_only", "perm", "RW")
}

func snomKeys(x *xmlWriter, p Phone) {
	x.begin("functionKeys", "e", 2)
	for _, k := range p.Keys {
		uri := "sip:" + k.Value + "@" + host(p.Server)
		what := lookup(k.Type, map[string]string{"line": "line", "blf": "blf " + uri, "speed_dial": "speed " + k.Value,
			"queue": "speed " + k.Value, "park": "orbit " + uri})
		x.value("fkey", what, "idx", k.Position-1, "context", 1, "label", k.Label, "perm", "RW")
	}
	x.end()
}
