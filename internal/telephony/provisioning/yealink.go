package provisioning

import "fmt"

// Yealink: lines "name = value" after a line with the version; y000000000000.cfg for all phones of a model, then
// {mac}.cfg.

const yealinkVersion = "#!version:1.0.0.1\n"

// The types of a line key.
var yealinkKeys = map[string]string{"line": "15", "blf": "16", "speed_dial": "13", "queue": "13", "park": "10"}

var yealinkCodecs = map[string]string{"pcmu": "pcmu", "pcma": "pcma", "g722": "g722", "opus": "opus"}

func yealinkCommon(p Phone) []byte {
	var l lineWriter
	l.WriteString(yealinkVersion)
	yealinkTime(&l, p)
	return l.bytes()
}

func yealink(p Phone) []byte {
	var l lineWriter
	l.WriteString(yealinkVersion)
	const a = "account.1."
	l.set(a+"enable", 1)
	l.set(a+"label", p.accountName())
	l.set(a+"display_name", p.Name)
	l.set(a+"user_name", p.Username)
	l.set(a+"auth_name", p.Username)
	l.set(a+"password", p.Password)
	l.set(a+"sip_server.1.address", p.Server)
	l.set(a+"sip_server.1.port", p.Port)
	l.set(a+"sip_server.1.transport_type", lookup(p.Transport, map[string]string{"udp": "0", "tcp": "1", "tls": "2"}))
	l.set(a+"sip_server.1.expires", registerSeconds)
	l.set(a+"srtp_encryption", lookup(p.SRTP, map[string]string{"off": "0", "preferred": "1", "required": "2"}))
	yealinkCodec(&l, p)
	l.set("voice_mail.number.1", VoicemailNumber)
	yealinkKey(&l, p)
	yealinkTime(&l, p)
	l.set("static.auto_provision.server.url", p.URL)
	l.set("static.auto_provision.server.username", p.HTTPUser)
	l.set("static.auto_provision.server.password", p.HTTPPass)
	l.set("static.auto_provision.power_on", 1)
	l.set("static.auto_provision.repeat.enable", 1)
	l.set("static.auto_provision.repeat.minutes", p.intervalSeconds()/60)
	return l.bytes()
}

func yealinkCodec(l *lineWriter, p Phone) {
	wanted := map[string]int{}
	for i, name := range p.codecNames(yealinkCodecs) {
		wanted[name] = i + 1
	}
	for _, name := range []string{"opus", "g722", "pcma", "pcmu"} {
		c := "account.1.codec." + name + "."
		if wanted[name] == 0 {
			l.set(c+"enable", 0)
			continue
		}
		l.set(c+"enable", 1)
		l.set(c+"priority", wanted[name])
	}
}

func yealinkKey(l *lineWriter, p Phone) {
	for _, k := range p.Keys {
		n := fmt.Sprintf("linekey.%d.", k.Position)
		l.set(n+"type", yealinkKeys[k.Type])
		l.set(n+"line", 1)
		if k.Type != "line" {
			l.set(n+"value", k.Value)
		}
		l.set(n+"label", k.Label)
	}
}

// yealinkTime writes the time zone, and the changes to and from daylight saving as month/week/weekday/hour, with
// Monday = 1.
func yealinkTime(l *lineWriter, p Phone) {
	c := zoneRulesOf(p.Zone, p.Now)
	l.set("local_time.ntp_server1", p.NTP)
	l.set("local_time.time_zone", offsetHours(c.standard))
	if !c.hasDST() {
		l.set("local_time.summer_time", 0)
		return
	}
	l.set("local_time.summer_time", 1)
	l.set("local_time.dst_time_type", 1)
	l.set("local_time.start_time", yealinkChange(c.start))
	l.set("local_time.end_time", yealinkChange(c.end))
	l.set("local_time.offset_time", (c.summer-c.standard)/60)
}

func yealinkChange(at transition) string {
	return fmt.Sprintf("%d/%d/%d/%d", at.month, at.week, (int(at.weekday)+6)%7+1, at.seconds/3600)
}
