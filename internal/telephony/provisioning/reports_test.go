package provisioning

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Texts with characters of markup arrive as they were written: https://github.com/fusionpbx/fusionpbx/issues/2328,
// https://github.com/fusionpbx/fusionpbx/pull/6457 (passwords, and another port),
// https://github.com/sorvani/freepbx-helper-scripts/issues/10
// (names).
func TestRender_MarkupInTexts(t *testing.T) {
	t.Parallel()
	p := fullPhone(t)
	p.Name, p.Password, p.Port = `Smith & Sons (R&D) <"x">`, `e3#rl2(&ae;&#1'"<`, 5071
	for file, want := range map[string][]string{
		"grandstream cfg001565abcdef.xml": {p.Name, p.Password, "voice.example.com:5071"},
		"snom settings-001565abcdef.xml":  {p.Name, p.Password},
		"polycom 001565abcdef-reg.cfg":    {p.Name, p.Password, "5071"},
		"linphone linphone.xml":           {p.Password},
		"yealink 001565abcdef.cfg":        {"account.1.display_name = " + p.Name + "\n", "account.1.password = " + p.Password + "\n", "port = 5071\n"},
		"fanvil 001565abcdef.cfg":         {p.Name, p.Password},
		"acrobits acrobits.xml":           {p.Password},
	} {
		template, name, _ := strings.Cut(file, " ")
		f, ok := Render(template, name, p)
		if !ok {
			t.Errorf("%s is missing", file)
			continue
		}
		read := string(f.Body)
		if f.Type == xmlDoc {
			read = textsOf(t, f.Body)
		}
		for _, text := range want {
			if !strings.Contains(read, text) {
				t.Errorf("%s has no %s:\n%s", file, text, read)
			}
		}
	}
}

// textsOf returns all texts and attributes of a document, one per line.
func textsOf(t *testing.T, body []byte) string {
	t.Helper()
	var b strings.Builder
	d := xml.NewDecoder(strings.NewReader(string(body)))
	for {
		token, err := d.Token()
		switch x := token.(type) {
		case xml.StartElement:
			for _, a := range x.Attr {
				b.WriteString(a.Value + "\n")
			}
		case xml.CharData:
			b.WriteString(string(x) + "\n")
		case nil:
			if err != nil && err.Error() != "EOF" {
				t.Error(err)
			}
			return b.String()
		}
	}
}

// The rules that phones get name the moments at which clocks change, in every zone that changes them twice a year:
// https://github.com/provisioner/Provisioner/issues/180 (an hour in the wrong direction), https://github.com/fusionpbx/fusionpbx/pull/5229
// (zones that phones do not know), https://github.com/FreePBX/issue-tracker/issues/702 (a zone without summer time).
func TestZoneRules_MomentsOfChange(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Belgrade": "+01:00 03-29T02:00 +02:00 10-25T03:00", "America/Regina": "-06:00", "America/Chicago": "-06:00 03-08T02:00 -05:00 11-01T02:00",
		"Europe/Dublin": "+00:00 03-29T01:00 +01:00 10-25T02:00", "Australia/Lord_Howe": "+10:30 10-04T02:00 +11:00 04-05T02:00",
		"America/Santiago": "-04:00 09-06T00:00 -03:00 04-05T00:00", "Asia/Kolkata": "+05:30", "Pacific/Auckland": "+12:00 09-27T02:00 +13:00 04-05T03:00",
	} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		c := zoneRulesOf(zone, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC))
		got := offsetText(c.standard)
		if c.hasDST() {
			got = fmt.Sprintf("%s %s %s %s", got, momentOf(c.start), offsetText(c.summer), momentOf(c.end))
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	berlin := fullPhone(t)
	// https://github.com/fusionpbx/fusionpbx/issues/768: the file of the phone has it too
	f, _ := Render("yealink", "001565abcdef.cfg", berlin)
	if !strings.Contains(string(f.Body), "local_time.time_zone = +1\n") {
		t.Errorf("no time zone in\n%s", f.Body)
	}
}

func offsetText(seconds int) string {
	return time.Date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("", seconds)).Format("-07:00")
}

// momentOf returns the moment of a rule in 2026, as a phone finds it.
func momentOf(at transition) string {
	day := time.Date(2026, at.month, 1, 0, 0, at.seconds, 0, time.UTC)
	for day.Weekday() != at.weekday {
		day = day.AddDate(0, 0, 1)
	}
	for n := 1; n < at.week && day.AddDate(0, 0, 7).Month() == at.month; n++ {
		day = day.AddDate(0, 0, 7)
	}
	return day.Format("01-02T15:04")
}
