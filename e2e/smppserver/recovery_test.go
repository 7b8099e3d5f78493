package smppserver

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// texting is a sandbox whose numbers send messages, with an SMPP port for applications.
type texting struct {
	*rig.Client
	t       *testing.T
	numbers []string
}

// eachTexting runs a test with such a sandbox on each database.
func eachTexting(t *testing.T, numbers int, run func(t *testing.T, x *texting)) {
	t.Parallel()
	flags := []string{"--smpp", fmt.Sprintf("127.0.0.1:%d", rig.FreePort(t)), "--transcriber", "off", "--summarizer", "off", "--embedder", "off", "--voice", "off"}
	rig.Each(t, rig.Options{Flags: flags}, func(t *testing.T, s *rig.Server) {
		x := &texting{Client: s.Org("test"), t: t}
		var trunk struct{ ID string }
		x.Want(201, "POST", "/trunks", map[string]any{"name": "Carrier", "host": "sip.carrier.example"}, &trunk)
		for n := range numbers {
			number := fmt.Sprintf("+1202555%04d", 2000+n)
			x.Want(201, "POST", "/numbers", map[string]any{"number": number, "trunk_id": trunk.ID, "sms_enabled": true}, nil)
			x.numbers = append(x.numbers, number)
		}
		run(t, x)
	})
}

// application is an application of the organisation, with its login.
type application struct {
	ID       string
	SystemID string `json:"system_id"`
	Password string
	Bound    int
}

// application adds an application.
func (x *texting) application(body map[string]any) (a application) {
	x.t.Helper()
	body["name"] = "Reminders"
	x.Want(201, "POST", "/sms/applications", body, &a)
	return a
}

// bound waits until an application has n connections.
func (x *texting) bound(a application, n int) {
	x.t.Helper()
	rig.Until(x.t, fmt.Sprint(n, " connections"), 30*time.Second, func() bool {
		x.Want(200, "GET", "/sms/applications/"+a.ID, nil, &a)
		return a.Bound == n
	})
}

// text is a message of the API.
type text struct {
	ID, Body, Status, Encoding string
	Segments                   int
	To                         string `json:"to_number"`
}

// written returns the messages of a direction.
func (x *texting) written(direction string) (all []text) {
	x.t.Helper()
	for cursor := ""; ; {
		var page struct {
			Data       []text
			NextCursor *string `json:"next_cursor"`
		}
		x.Want(200, "GET", "/sms?limit=100&direction="+direction+"&cursor="+url.QueryEscape(cursor), nil, &page)
		all = append(all, page.Data...)
		if page.NextCursor == nil || *page.NextCursor == "" {
			return all
		}
		cursor = *page.NextCursor
	}
}

// long is a text of 400 characters with an emoji in it.
var long = string([]rune(strings.Repeat("Dear Ms. Möller, your parcel waits. ", 12))[:397]) + "!🚀."

func TestKannel_LongTextBothWaysWithReceipt(t *testing.T) {
	eachTexting(t, 1, func(t *testing.T, x *texting) {
		a := x.application(map[string]any{})
		k := startKannel(t, x.Server.SMPP, a.SystemID, a.Password)
		x.bound(a, 1)
		k.send("long", x.numbers[0], "+12025550115", long) // this number answers with the same text
		rig.Until(t, "the report", 60*time.Second, func() bool { return slices.Contains(k.reports("long"), "1") })
		out := x.written("outbound")
		if len(out) != 1 || out[0].Body != long || out[0].Encoding != "ucs2" || out[0].Segments != 6 || out[0].Status != "delivered" {
			t.Errorf("written: %+v", out)
		}
		if got := k.reports("long"); !slices.Equal(got, []string{"8", "1"}) {
			t.Errorf("kannel reports %v", got)
		}
		rig.Until(t, "the answer", 60*time.Second, func() bool { return len(k.texts("+12025550115")) > 0 })
		if got := k.texts("+12025550115"); len(got) != 1 || got[0] != long {
			t.Errorf("kannel was brought %q", got)
		}
		k.send("lost", x.numbers[0], "+12025550112", "Price: 5 € [net] {VAT} à 20 % @ Göteborg, ñandú")
		rig.Until(t, "the report", 60*time.Second, func() bool { return slices.Equal(k.reports("lost"), []string{"8", "2"}) })
		k.send("refused", "+12025559999", "+12025550111", "from a number that is not ours")
		rig.Until(t, "the refusal", 60*time.Second, func() bool { return slices.Equal(k.reports("refused"), []string{"16"}) })
		for _, m := range x.written("outbound") {
			if m.To == "+12025550112" && m.Body != "Price: 5 € [net] {VAT} à 20 % @ Göteborg, ñandú" {
				t.Errorf("written: %q", m.Body)
			}
		}
	})
}

func TestKannel_NoLossNorDuplicateAcrossKills(t *testing.T) {
	const messages = 60
	eachTexting(t, 20, func(t *testing.T, x *texting) {
		a := x.application(map[string]any{"rate_per_second": 1000})
		k := startKannel(t, x.Server.SMPP, a.SystemID, a.Password, "instances = 2", "max-pending-submits = 20")
		x.bound(a, 2)
		id := func(n int) string { return fmt.Sprintf("message %d", n) }
		body := func(n int) string {
			if n%3 == 0 {
				return id(n) + " " + strings.Repeat("with parts ", 30)
			}
			return id(n)
		}
		for n := range messages {
			k.send(id(n), x.numbers[n%len(x.numbers)], fmt.Sprintf("+1202556%04d", n), body(n))
			if n == 20 || n == 40 { // while they are submitted
				x.Server.Kill()
				x.Server.Start()
			}
		}
		rig.Until(t, "some reports", 60*time.Second, func() bool { return k.count("1") > 5 })
		x.Server.Kill() // while receipts are due
		x.Server.Start()
		_ = rig.Eventually(0, func() bool { return k.count("1") >= messages }) // the missing ones are listed below
		var got, want []string
		for _, m := range x.written("outbound") {
			got = append(got, m.Body)
		}
		for n := range messages {
			want = append(want, body(n))
			r := k.reports(id(n)) // in any order: the response and the receipt may come over different connections
			if slices.Sort(r); !slices.Equal(r, []string{"1", "8"}) {
				t.Errorf("of %s kannel reports %v", id(n), r)
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%d messages were written, not %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
		}
	})
}

// count returns the number of reports of a type.
func (k *kannel) count(kind string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.dlrs {
		if d.Get("type") == kind {
			n++
		}
	}
	return n
}

func TestKannel_MessagesWaitAcrossKill(t *testing.T) {
	eachTexting(t, 1, func(t *testing.T, x *texting) {
		a := x.application(map[string]any{})
		const from = "+12025550199"
		var want []string
		for n := range 10 {
			want = append(want, fmt.Sprintf("reply %d %s", n, strings.Repeat("and more of it ", n*3)))
			x.Want(201, "POST", "/sandbox/sms/inbound", map[string]any{"from": from, "to": x.numbers[0], "body": want[n]}, nil)
		}
		x.Server.Kill()
		x.Server.Start()
		k := startKannel(t, x.Server.SMPP, a.SystemID, a.Password)
		rig.Until(t, "the replies", 60*time.Second, func() bool { return len(k.texts(from)) >= len(want) })
		got := k.texts(from)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("kannel was brought %q", got)
		}
	})
}

func TestKannel_ThrottledLosesNothing(t *testing.T) {
	eachTexting(t, 10, func(t *testing.T, x *texting) {
		a := x.application(map[string]any{"rate_per_second": 3})
		k := startKannel(t, x.Server.SMPP, a.SystemID, a.Password)
		x.bound(a, 1)
		for n := range 12 {
			k.send(fmt.Sprint(n), x.numbers[n%10], fmt.Sprintf("+1202556%04d", n), fmt.Sprint("quick ", n))
		}
		rig.Until(t, "all reports", 90*time.Second, func() bool { return k.count("1") >= 12 })
		if n := len(x.written("outbound")); n != 12 {
			t.Errorf("%d messages were written", n)
		}
	})
}
