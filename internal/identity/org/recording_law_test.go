package org_test

import (
	"context"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// TestRecordingLaw_NewOrganisation covers the recording settings with which an organisation starts.
func TestRecordingLaw_NewOrganisation(t *testing.T) {
	t.Parallel()
	s := org.New(dbtest.SQLite(t), bus.New(), time.Now)
	for country, want := range map[string]struct {
		mode     string
		announce bool
	}{"US": {"on", false}, "GB": {"on", true}, "DE": {"off", true}, "IN": {"off", true}} {
		o, err := s.Create(context.Background(), "Acme", country)
		if err != nil || o.Recording.Mode != want.mode || o.Recording.Announced() != want.announce {
			t.Errorf("%s: %+v, %v", country, o.Recording, err)
		}
		if o.Recording.LawSource == "" || o.Recording.Warning != nil {
			t.Errorf("%s: source %q, warning %v", country, o.Recording.LawSource, o.Recording.Warning)
		}
	}
}

func TestRecordingLaw_SilentNeedsAcknowledgement(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := org.New(d, bus.New(), time.Now)
		o, err := s.Create(context.Background(), "Acme", "DE")
		if err != nil {
			t.Fatal(err)
		}
		server, admin := optest.New(t, d, s.Operations()...), optest.Admin(o.ID)
		silent := `{"recording":{"mode":"on","announce":false,"consent":"none"}}`
		a := server.Do(admin, "PATCH", "/organization", silent).Want(422)
		if a.Text("errors.0.field") != "recording.announce" || a.Text("errors.0.code") != "announcement_required" {
			t.Errorf("refusal: %s", a.Bytes)
		}
		server.Do(admin, "PATCH", "/organization", `{"recording":{"announce_audio_id":"aud_none"}}`).Want(422)
		server.Do(admin, "PATCH", "/organization", `{"recording":{"mode":"on"}}`).Want(200)
		a = server.Do(admin, "PATCH", "/organization",
			`{"recording":{"mode":"on","announce":false,"consent":"none","silent_acknowledged":true}}`).Want(200)
		if a.Text("recording.silent_acknowledged_at") == "" || a.At("recording.warning") != nil || a.At("recording.silent_acknowledged_by") == nil {
			t.Errorf("acknowledged: %s", a.Bytes)
		}
		server.Do(admin, "PATCH", "/organization", `{"recording":{"silent_acknowledged":false}}`).Want(422)
	})
}

// TestRecordingLaw_EarlierOrganisation covers an organisation that recorded silently before the rule existed.
func TestRecordingLaw_EarlierOrganisation(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := org.New(d, bus.New(), time.Now)
		o, err := s.Create(context.Background(), "Acme", "DE")
		if err != nil {
			t.Fatal(err)
		}
		// tenant: the test's only organisation
		err = d.Tx(context.Background(), func(tx db.Querier) error {
			_, err := tx.Exec(context.Background(), `UPDATE orgs SET settings = '{}' WHERE id = $1`, o.ID)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		server, admin := optest.New(t, d, s.Operations()...), optest.Admin(o.ID)
		a := server.Do(admin, "PATCH", "/organization", `{"name":"Acme Ltd"}`).Want(200)
		if a.Text("recording.mode") != "on" || a.At("recording.announce") != false || a.Text("recording.warning") == "" {
			t.Errorf("the settings changed or nobody is warned: %s", a.Bytes)
		}
		server.Do(admin, "PATCH", "/organization", `{"country":"FR"}`).Want(422)
		server.Do(admin, "PATCH", "/organization", `{"recording":{"mode":"off"}}`).Want(200)
		server.Do(admin, "PATCH", "/organization", `{"recording":{"mode":"on"}}`).Want(422)
	})
}

// TestRecordingLaw_NoticeAndStart checks when a notice is played, when it is required, and which calls are recorded without a request.
func TestRecordingLaw_NoticeAndStart(t *testing.T) {
	t.Parallel()
	acknowledged := db.At(time.Unix(1, 0))
	for name, c := range map[string]struct {
		org.Recording
		required, announced, unasked bool
	}{
		"one party, silent":          {org.Recording{Mode: "on", Consent: "none", Law: org.OneParty}, false, false, true},
		"one party, announced":       {org.Recording{Mode: "on", Consent: "none", Law: org.OneParty, Announce: true}, false, true, true},
		"one party, notice":          {org.Recording{Mode: "on", Consent: "notice", Law: org.OneParty}, true, true, true},
		"one party, opt-in":          {org.Recording{Mode: "on", Consent: "opt_in", Law: org.OneParty}, false, false, false},
		"law, off":                   {org.Recording{Mode: "off", Consent: "none", Law: org.Announcement}, true, true, false},
		"law, announced":             {org.Recording{Mode: "on", Consent: "none", Law: org.AllParty, Announce: true}, true, true, true},
		"law, opt-in":                {org.Recording{Mode: "on", Consent: "opt_in", Law: org.AllParty}, true, true, false},
		"law, silent from before":    {org.Recording{Mode: "on", Consent: "none", Law: org.AllParty}, false, false, true},
		"law, silent, acknowledged":  {org.Recording{Mode: "on", Consent: "none", Law: org.AllParty, SilentAcknowledgedAt: acknowledged}, false, false, true},
		"law, off, acknowledged":     {org.Recording{Mode: "off", Consent: "none", Law: org.AllParty, SilentAcknowledgedAt: acknowledged}, false, false, false},
		"law, acknowledged, notice":  {org.Recording{Mode: "on", Consent: "notice", Law: org.AllParty, SilentAcknowledgedAt: acknowledged}, true, true, true},
		"law, acknowledged, told so": {org.Recording{Mode: "on", Consent: "none", Law: org.AllParty, SilentAcknowledgedAt: acknowledged, Announce: true}, false, true, true},
	} {
		if r := c.Recording; r.NoticeRequired() != c.required || r.Announced() != c.announced || r.ByPolicy() != c.unasked {
			t.Errorf("%s: notice required %v, played %v, recorded unasked %v", name, r.NoticeRequired(), r.Announced(), r.ByPolicy())
		}
	}
}
