package agent_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/telephony/device"
)

// browser adds a telephone in a page to ada, and registers it.
func (h *fixture) browser(t *testing.T, name string) (phone string) {
	t.Helper()
	phone = h.do("POST", "/users/"+h.ada+"/webrtc-token", fmt.Sprintf(`{"device_name":%q}`, name)).Want(200).Text("device_id")
	h.registerPhone(t, phone)
	return phone
}

func (h *fixture) registerPhone(t *testing.T, phone string) {
	t.Helper()
	h.bind(t, phone, "ws", time.Hour)
}

// bind registers a phone for a time.
func (h *fixture) bind(t *testing.T, phone, transport string, life time.Duration) {
	t.Helper()
	b := device.Binding{DeviceID: phone, Contact: "sip:ada@192.0.2.9:5060", Source: netip.MustParseAddrPort("192.0.2.9:5060"), Flow: 7,
		Transport: transport, CallID: "c", CSeq: 1, Expires: h.now().Add(life), Registered: h.now()}
	if err := h.devices.Save(h.ctx, phone, []device.Binding{b}); err != nil {
		t.Fatal(err)
	}
	h.publish(t)
}

// lose ends the registration of a browser that is gone; signOff ends that of one that its person turned off.
func (h *fixture) lose(t *testing.T, phone string) {
	t.Helper()
	if err := h.devices.Lose(h.ctx, phone, nil, h.now()); err != nil {
		t.Fatal(err)
	}
	h.publish(t)
}

func (h *fixture) signOff(t *testing.T, phone string) {
	t.Helper()
	if err := h.devices.Save(h.ctx, phone, nil); err != nil {
		t.Fatal(err)
	}
	h.publish(t)
}

// pass lets time pass, and publishes what it changes.
func (h *fixture) pass(t *testing.T, d time.Duration) {
	t.Helper()
	h.advance(d)
	if err := h.PublishDue(h.ctx); err != nil {
		t.Fatal(err)
	}
}

// wantReason checks the presence with its reason, and the choice of ada.
func (h *fixture) wantReason(t *testing.T, status, reason, choice string) {
	t.Helper()
	if a := h.wantPresence(t, status, ""); a.Text("presence.reason") != reason || a.Text("availability") != choice {
		t.Errorf("the reason is %q and the choice %q, want %q and %q", a.Text("presence.reason"), a.Text("availability"), reason, choice)
	}
}

// TestBrowser_GoneForAMinuteIsAway checks that the agent is away with the reason after a minute, and offline half an hour later. The choice
// of the agent counts again as soon as the browser registers.
func TestBrowser_GoneForAMinuteIsAway(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		browser := h.browser(t, "Laptop")
		h.lose(t, browser)
		h.pass(t, 59*time.Second)
		if a := h.wantPresence(t, "available", ""); a.At("devices_registered") != 0.0 {
			t.Errorf("for a minute: %s", a.Bytes)
		}
		h.pass(t, 2*time.Second)
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.pass(t, 29*time.Minute)
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.pass(t, time.Minute)
		h.wantReason(t, "offline", "", "available")
		h.registerPhone(t, browser)
		h.wantReason(t, "available", "", "available")
		if got, want := h.publishedPresences(t), "available away offline available"; got != want {
			t.Errorf("told %q, want %q", got, want)
		}
	})
}

// TestBrowser_SessionEnds ends the browser session in which a browser got its token. Its user is offline at once, whether the browser was
// registered or had become unreachable. Browsers of other sessions and organisations, and of keys, stay registered.
//
// https://github.com/twilio/OpenVBX/issues/268
func TestBrowser_SessionEnds(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		h.do("DELETE", "/devices/"+h.phone, "").Want(204)
		browser := h.sessionBrowser(t, "ses_1")
		h.endSession(t, h.org, "ses_2")
		h.endSession(t, "org_other", "ses_1")
		h.wantReason(t, "available", "", "available")
		h.endSession(t, h.org, "ses_1")
		h.wantReason(t, "offline", "", "available")
		if all, err := h.devices.Bindings(h.ctx, h.org, []string{browser}); err != nil || len(all) > 0 {
			t.Errorf("bindings %v, error %v", all, err)
		}

		browser = h.sessionBrowser(t, "ses_3")
		h.lose(t, browser)
		h.pass(t, 2*time.Minute)
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.endSession(t, h.org, "ses_3")
		h.wantReason(t, "offline", "", "available")

		h.browser(t, "Laptop") // the same device, now by a key
		h.endSession(t, h.org, "ses_3")
		h.wantReason(t, "available", "", "available")
	})
}

// sessionBrowser registers a browser of ada with a token that a browser session got.
func (h *fixture) sessionBrowser(t *testing.T, session string) (phone string) {
	t.Helper()
	ctx := access.With(h.ctx, access.Principal{OrgID: h.org, UserID: h.ada, KeyID: session})
	made, err := h.devices.CreateToken(ctx, &device.BrowserIn{ID: h.ada, Body: device.BrowserBody{DeviceName: "Laptop"}})
	if err != nil {
		t.Fatal(err)
	}
	h.registerPhone(t, made.Body.DeviceID)
	return made.Body.DeviceID
}

// endSession ends a browser session, as signing out does.
func (h *fixture) endSession(t *testing.T, org, session string) {
	t.Helper()
	err := h.d.Tx(h.ctx, func(tx db.Querier) error { return h.devices.SessionEnded(h.ctx, tx, org, session) })
	if err != nil {
		t.Fatal(err)
	}
	h.publish(t)
}

// What a person chose stays: do-not-disturb and away with their own reason, and offline.
func TestBrowser_GoneKeepsTheChoice(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		browser := h.browser(t, "Laptop")
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"away","reason":"lunch"}`).Want(200)
		h.lose(t, browser)
		h.pass(t, 2*time.Minute)
		h.wantReason(t, "away", "lunch", "away")
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"dnd"}`).Want(200)
		h.wantReason(t, "dnd", "", "dnd")
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"offline"}`).Want(200)
		h.wantReason(t, "offline", "", "offline")
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"available"}`).Want(200)
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.do("PUT", "/agents/"+h.ada+"/presence", `{"status":"dnd"}`).Want(200)
		h.registerPhone(t, browser)
		h.wantReason(t, "dnd", "", "dnd")
	})
}

// A desk phone keeps its agent available without the browser. Who turns the telephone in the browser off is offline at once.
func TestBrowser_OtherPhoneAndTurningOff(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		laptop, office := h.browser(t, "Laptop"), h.browser(t, "Office")
		h.bind(t, h.phone, "udp", 10*time.Minute)
		h.lose(t, laptop)
		h.lose(t, office)
		h.pass(t, 2*time.Minute)
		h.wantReason(t, "available", "", "available")
		h.pass(t, 10*time.Minute)
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.registerPhone(t, office)
		h.signOff(t, office)
		h.wantReason(t, "offline", "", "available")
	})
}

// A browser that does not renew its registration, or whose node stopped, is gone too. A desk phone is not: its agent is offline.
func TestBrowser_ExpiredIsGone(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		h := newFixture(t, d)
		expire := func(phone, transport string) {
			t.Helper()
			began := h.now()
			h.bind(t, phone, transport, time.Minute)
			h.advance(2 * time.Minute)
			if err := h.devices.PublishExpired(h.ctx, began, h.now()); err != nil {
				t.Fatal(err)
			}
			h.publish(t)
			h.pass(t, 2*time.Minute)
		}
		expire(h.phone, "tls")
		h.wantReason(t, "offline", "", "available")
		browser := h.browser(t, "Laptop")
		expire(browser, "ws")
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.registerPhone(t, browser)
		if err := h.devices.DropNode(h.ctx, ""); err != nil {
			t.Fatal(err)
		}
		h.publish(t)
		h.pass(t, 2*time.Minute)
		h.wantReason(t, "away", "browser_not_reachable", "available")
		h.registerPhone(t, browser)
		if err := h.devices.DropFlows(h.ctx, ""); err != nil {
			t.Fatal(err)
		}
		h.pass(t, 2*time.Minute)
		h.wantReason(t, "away", "browser_not_reachable", "available")
	})
}
