package provisioning

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/internal/telephony/device"
)

var update = flag.Bool("update", false, "rewrite the files that are kept in the tree")

// fullPhone returns a phone with all settings.
func fullPhone(t testing.TB) Phone {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return Phone{Label: "Front desk", Name: "Ada Lovelace", Extension: "101", Username: "u0123456789abcde", Password: "Secret28", Realm: "soniq",
		Server: "voice.example.com", Port: 5061, Transport: "tls", SRTP: "required", Codecs: []string{"g722", "pcma"}, MAC: "001565abcdef",
		URL: "https://voice.example.com/provision/T0ken/", HTTPUser: "u0123456789abcde", HTTPPass: "Login28", Interval: 24 * time.Hour,
		NTP: "pool.ntp.org", Zone: zone, Now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC),
		Keys: []device.LineKey{{Position: 1, Type: "line", Label: "Ada"}, {Position: 2, Type: "blf", Value: "102", Label: "Bob"},
			{Position: 3, Type: "speed_dial", Value: "+4930123456", Label: "Taxi"}, {Position: 4, Type: "queue", Value: "800", Label: "Sales"},
			{Position: 5, Type: "park", Value: "701", Label: "Park 1"}}}
}

// goldenFiles lists the files of each template.
var goldenFiles = map[string][]string{
	"yealink":     {"y000000000028.cfg", "001565abcdef.cfg"},
	"polycom":     {"000000000000.cfg", "001565abcdef.cfg", "001565abcdef-reg.cfg", "001565abcdef-phone.cfg", "001565abcdef-directory.xml"},
	"grandstream": {"cfg001565abcdef.xml"},
	"snom":        {"settings-001565abcdef.xml", "snomD785-001565ABCDEF.htm"},
	"fanvil":      {"001565abcdef.cfg"},
	"linphone":    {"linphone.xml"},
	"acrobits":    {"acrobits.xml"},
	"generic":     {"phone.json", "phone.ini"},
}

func TestRender_GoldenFiles(t *testing.T) {
	t.Parallel()
	for _, template := range (Catalog{}).Templates() {
		if len(goldenFiles[template]) == 0 {
			t.Errorf("%s has no golden file", template)
		}
		for _, name := range goldenFiles[template] {
			f, ok := Render(template, name, fullPhone(t))
			if !ok {
				t.Errorf("%s has no %s", template, name)
				continue
			}
			compareGolden(t, filepath.Join("testdata", template, name), f.Body)
		}
	}
}

func compareGolden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs (%v); if that is intended, run go test ./internal/telephony/provisioning -update. It is now\n%s", path, err, got)
	}
}

// hostile is a user name that tries to inject settings into a file.
const hostile = "Eve\r\naccount.2.enable = 1\n[x]\n</entry><P2>pw</P2>&\"'<!-- ]]>\u2028\u0085auto_provision.server.url = http://evil\x00\u202e;#\\"

// Names of users and keys cannot add or change settings, whatever characters they contain.
func TestRender_HostileNamesInjectNothing(t *testing.T) {
	t.Parallel()
	good, bad := fullPhone(t), fullPhone(t)
	bad.Name, bad.Label, bad.Extension = hostile, hostile, hostile
	for i := range bad.Keys {
		bad.Keys[i].Label, bad.Keys[i].Value = hostile, hostile
	}
	bad.Keys[0].Value = ""
	for template, names := range goldenFiles {
		for _, name := range names {
			g, _ := Render(template, name, good)
			b, _ := Render(template, name, bad)
			if want, got := skeleton(t, g), skeleton(t, b); want != got {
				t.Errorf("%s %s: settings\n%s\nbecame\n%s", template, name, want, got)
			}
			if bytes.ContainsAny(b.Body, "\x00\r\u2028\u0085\u202e") {
				t.Errorf("%s %s has characters that are not seen", template, name)
			}
		}
	}
}

// skeleton returns a file without its values.
func skeleton(t *testing.T, f File) string {
	t.Helper()
	switch {
	case f.Type == xmlDoc:
		return elementsOf(t, f.Body)
	case strings.HasPrefix(f.Type, "application/json"):
		var v any
		if err := json.Unmarshal(f.Body, &v); err != nil {
			t.Errorf("%s is no JSON: %v", f.Name, err)
		}
		return "json"
	}
	var names []string
	for line := range strings.SplitSeq(string(f.Body), "\n") {
		name, _, _ := strings.Cut(line, " = ")
		names = append(names, name)
	}
	return strings.Join(names, "\n")
}

// elementsOf parses XML with the standard library. It returns the names of elements and attributes, and marks
// comments, which must not occur.
func elementsOf(t *testing.T, body []byte) string {
	t.Helper()
	var b strings.Builder
	d := xml.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Errorf("no XML: %v\n%s", err, body)
			return ""
		}
		switch x := token.(type) {
		case xml.StartElement:
			b.WriteString("<" + x.Name.Local)
			for _, a := range x.Attr {
				b.WriteString(" " + a.Name.Local)
			}
			b.WriteString(">\n")
		case xml.Comment, xml.Directive:
			b.WriteString("comment\n")
		}
	}
}

func TestFindFile_ByTemplateAgentAndName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, agent, file, want string }{
		{"", "Yealink SIP-T46S 66.86.0.15 00:15:65:ab:cd:ef", "001565abcdef.cfg", "yealink"},
		{"", "FileTransport PolycomVVX-VVX_411-UA/5.9.5.0614 Type/Application", "001565abcdef.cfg", "polycom"},
		{"", "Fanvil X4U 2.4.5 0c383e0a0b0c", "0c383e0a0b0c.cfg", "fanvil"},
		{"fanvil", "Yealink", "0c383e0a0b0c.cfg", "fanvil"},
		{"", "Mozilla/4.0 (compatible; snomD785-SIP 10.1.64.14)", "snomD785-000413ABCDEF.htm", "snom"},
		{"", "curl", "cfg000b82aabbcc.xml", "grandstream"},
		{"", "curl", "linphone.xml", "linphone"},
		{"linphone", "Unknown", "", "linphone"},
		{"", "Groundwire/25", "", "acrobits"},
		{"yealink", "Yealink", "linphone.xml", ""},
		{"yealink", "Yealink", "../001565abcdef.cfg", ""},
		{"yealink", "Yealink", "001565abcde.cfg", ""},
		{"", "curl", "passwd", ""},
	} {
		got, ok := findFile(c.template, c.agent, c.file)
		if got.template != c.want || ok != (c.want != "") {
			t.Errorf("%+v is taken for %q", c, got.template)
		}
	}
	for given, want := range map[string]string{"Yealink": "yealink", "Poly": "polycom", "Groundwire": "acrobits", "Acme": "", "": ""} {
		if got := (Catalog{}).Template("", given); got != want {
			t.Errorf("vendor %q has the template %q, want %q", given, got, want)
		}
	}
	if (Catalog{}).Template("snom", "Yealink") != "snom" {
		t.Error("a vendor goes before a template that was named")
	}
}

func TestZoneRules_POSIX(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Berlin": "CET-1CEST,M3.5.0,M10.5.0/3", "America/New_York": "EST5EDT,M3.2.0,M11.1.0", "UTC": "UTC0", "Asia/Kolkata": "IST-5:30",
		"Australia/Sydney": "AEST-10AEDT,M10.1.0,M4.1.0/3", "America/Sao_Paulo": "<-03>3", "Pacific/Auckland": "NZST-12NZDT,M9.5.0,M4.1.0/3",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := zoneRulesOf(zone, time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)).posix(); got != want {
			t.Errorf("%s is told as %s, want %s", name, got, want)
		}
	}
}
