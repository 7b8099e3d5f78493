package provisioning

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Generic: all settings as JSON, or as an INI file for phones that are configured by a script.

func genericJSON(p Phone) []byte {
	type key struct {
		Position int    `json:"position"`
		Type     string `json:"type"`
		Value    string `json:"value"`
		Label    string `json:"label"`
	}
	keys := []key{}
	for _, k := range p.Keys {
		keys = append(keys, key(k))
	}
	body, _ := json.MarshalIndent(map[string]any{ // only strings and numbers: marshalling cannot fail
		"account": map[string]any{"label": p.accountName(), "display_name": p.Name, "extension": p.Extension, "username": p.Username,
			"auth_username": p.Username, "password": p.Password, "realm": p.Realm, "server": p.Server, "port": p.Port,
			"transport": p.Transport, "expires": registerSeconds, "srtp": p.SRTP, "codecs": p.Codecs, "voicemail": VoicemailNumber},
		"line_keys": keys,
		"time":      map[string]any{"ntp_server": p.NTP, "zone": p.Zone.String(), "posix": zoneRulesOf(p.Zone, p.Now).posix()},
		"provisioning": map[string]any{"url": p.URL + "phone.json", "username": p.HTTPUser, "password": p.HTTPPass,
			"interval_seconds": p.intervalSeconds()},
	}, "", "  ")
	return append(body, '\n')
}

func genericINI(p Phone) []byte {
	var l lineWriter
	set := func(name string, value any) { l.set(name, quoted(value)) }
	l.WriteString("[account]\n")
	set("label", p.accountName())
	set("display_name", p.Name)
	set("extension", p.Extension)
	set("username", p.Username)
	set("auth_username", p.Username)
	set("password", p.Password)
	set("realm", p.Realm)
	set("server", p.Server)
	set("port", p.Port)
	set("transport", p.Transport)
	set("expires", registerSeconds)
	set("srtp", p.SRTP)
	set("codecs", strings.Join(p.Codecs, ","))
	set("voicemail", VoicemailNumber)
	l.WriteString("\n[time]\n")
	set("ntp_server", p.NTP)
	set("zone", p.Zone.String())
	l.WriteString("\n[provisioning]\n")
	set("url", p.URL+"phone.ini")
	set("username", p.HTTPUser)
	set("password", p.HTTPPass)
	set("interval_seconds", p.intervalSeconds())
	for _, k := range p.Keys {
		fmt.Fprintf(&l, "\n[key %d]\n", k.Position)
		set("type", k.Type)
		set("value", k.Value)
		set("label", k.Label)
	}
	return l.bytes()
}

// quoted returns a value in quotation marks, so that ; or # in it does not begin a comment.
func quoted(value any) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(fmt.Sprint(value)) + `"`
}
