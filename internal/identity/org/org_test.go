package org_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/redact"
)

func newServer(t *testing.T, d *db.DB) (*org.Service, org.Organization, *optest.Server) {
	t.Helper()
	s := org.New(d, bus.New(), time.Now)
	o, err := s.Create(context.Background(), "Acme", "gb")
	if err != nil {
		t.Fatal(err)
	}
	return s, o, optest.New(t, d, s.Operations()...)
}

func TestCreate_WithSandboxTwin(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		s, o, _ := newServer(t, d)
		if o.Country != "GB" || o.Timezone != "Europe/London" || o.Language != "en" || o.Status != org.Active {
			t.Errorf("got %s %s %s %s", o.Country, o.Timezone, o.Language, o.Status)
		}
		id, err := s.Twin(ctx, o.ID)
		if err != nil || id == o.ID {
			t.Fatalf("twin %q, %v", id, err)
		}
		twin, err := s.Get(ctx, id)
		if err != nil || twin.LiveID != o.ID || !twin.Sandbox() || o.Sandbox() || twin.Environment != "test" {
			t.Errorf("twin is %+v, %v", twin, err)
		}
		if again, _ := s.Twin(ctx, id); again != id {
			t.Errorf("the twin of a twin is %q, want itself", again)
		}
		if all, err := s.List(ctx); err != nil || len(all) != 1 || all[0].ID != o.ID {
			t.Errorf("list: %v, %v; want the live one only", all, err)
		}
		if _, err := s.Get(ctx, "org_none"); !db.IsNone(err) {
			t.Errorf("unknown organisation: %v", err)
		}
	})
}

func TestCreate_UnknownCountryRefused(t *testing.T) {
	t.Parallel()
	if _, err := org.New(dbtest.SQLite(t), bus.New(), time.Now).Create(context.Background(), "Acme", "XX"); err != org.ErrCountry {
		t.Errorf("got %v", err)
	}
}

func TestSettings_OnlyExplicitValuesOverrideDefaults(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, o, server := newServer(t, d)
		admin := optest.Admin(o.ID)
		a := server.Do(admin, "PATCH", "/organization", `{"recording":{"announce":true,"retention_days":30},"outbound":{"calls_per_second":9}}`).Want(200)
		if a.At("recording.announce") != true || a.Text("recording.mode") != "on" || a.At("outbound.allowed_countries.0") != "GB" {
			t.Errorf("after the patch: %s", a.Bytes)
		}
		a = server.Do(admin, "PATCH", "/organization", `{"country":"DE","recording":{"retention_days":null}}`).Want(200)
		if a.At("outbound.allowed_countries.0") != "DE" || a.At("recording.retention_days") != float64(365) || a.At("recording.announce") != true {
			t.Errorf("the own country follows and null returns to the default: %s", a.Bytes)
		}
		server.Do(admin, "PATCH", "/organization", `{"outbound":{"allowed_countries":["FR","AT"]}}`).Want(200)
		a = server.Do(admin, "PATCH", "/organization", `{"outbound":{"allowed_countries":null}}`).Want(200)
		if a.Text("outbound.allowed_countries.0") != "DE" || a.At("outbound.calls_per_second") != float64(9) {
			t.Errorf("null returns a list to the default: %s", a.Bytes)
		}
		if a.At("transcripts.learn_names") != true || a.Text("transcripts.vocabulary") != "" {
			t.Errorf("an organisation is born with a vocabulary: %s", a.Bytes)
		}
		a = server.Do(admin, "PATCH", "/organization", `{"transcripts":{"learn_names":false,"vocabulary":[{"term":"Zyntrix","sounds_like":["zin tricks"]},{"term":"Łódź"}]}}`).Want(200)
		if a.Text("transcripts.vocabulary.0.sounds_like.0") != "zin tricks" || a.Text("transcripts.vocabulary.1.term") != "Łódź" || a.At("transcripts.learn_names") != false {
			t.Errorf("with a vocabulary: %s", a.Bytes)
		}
		set, err := s.Settings(context.Background(), o.ID)
		if err != nil || set.Outbound.CallsPerSecond != 9 || !set.Recording.Announce {
			t.Errorf("the cache did not hear of the change: %+v, %v", set, err)
		}
	})
}

// Nothing is removed unless chosen, and the audio with it unless chosen otherwise.
func TestRedaction_Settings(t *testing.T) {
	t.Parallel()
	s, o, server := newServer(t, dbtest.SQLite(t))
	admin := optest.Admin(o.ID)
	policy := func() redact.Policy {
		t.Helper()
		p, err := s.Redaction(context.Background(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := policy(); p.Enabled() || p.Audio {
		t.Errorf("a new organisation removes %+v", p)
	}
	server.Do(admin, "PATCH", "/organization", `{"redaction":{"kinds":["card","iris"]}}`).Want(422).Refused("validation_failed",
		"redaction.kinds invalid_value")
	a := server.Do(admin, "PATCH", "/organization", `{"redaction":{"kinds":["card","cvv"]}}`).Want(200)
	if p := policy(); a.Text("redaction.kinds.1") != "cvv" || len(p.Kinds) != 2 || !p.Audio {
		t.Errorf("%s gives %+v", a.Bytes, p)
	}
	server.Do(admin, "PATCH", "/organization", `{"redaction":{"audio":false}}`).Want(200)
	if p := policy(); !p.Enabled() || p.Audio {
		t.Errorf("without audio: %+v", p)
	}
	server.Do(admin, "PATCH", "/organization", `{"redaction":{"kinds":null}}`).Want(200)
	if p := policy(); p.Enabled() {
		t.Errorf("after null: %+v", p)
	}
}

func TestUpdate_ListsEveryViolation(t *testing.T) {
	t.Parallel()
	_, o, server := newServer(t, dbtest.SQLite(t))
	admin := optest.Admin(o.ID)
	server.Do(admin, "PATCH", "/organization", `{"name":" ","country":"XX","timezone":"Mars/Base","language":"??",
		"recording":{"mode":"maybe"},"outbound":{"allowed_countries":["ZZ"],"blocked_types":["fun"]}}`).
		Want(422).Refused("validation_failed", "name invalid_length", "country invalid_country", "timezone invalid_timezone",
		"language invalid_language", "recording.mode invalid_value", "outbound.allowed_countries invalid_country",
		"outbound.blocked_types invalid_value")
	server.Do(admin, "PATCH", "/organization", `{"transcripts":{"vocabulary":[{"term":"?!"},{"term":"ok","sounds_like":["a\nb","1","2","3","4","5"]}]}}`).
		Want(422).Refused("validation_failed", "transcripts.vocabulary invalid_value", "transcripts.vocabulary invalid_length")
	many := strings.Repeat(`{"term":"word"},`, 300) + `{"term":"word"}`
	server.Do(admin, "PATCH", "/organization", `{"transcripts":{"vocabulary":[`+many+`]}}`).
		Want(422).Refused("validation_failed", "transcripts.vocabulary invalid_length")
	server.Do(admin, "PATCH", "/organization", `{"country":"XX"}`).Refused("validation_failed", "country invalid_country")
	server.Do(admin, "PATCH", "/organization", `{"outbound":{"enabeld":false}}`).Want(400).Refused("unknown_field")
	server.Do(admin, "PATCH", "/organization", `{"outbound":{"enabled":"no"}}`).Want(422).Refused("validation_failed")
	a := server.Do(admin, "GET", "/organization", nil).Want(200)
	if a.Text("country") != "GB" || a.At("outbound.enabled") != true {
		t.Errorf("a refused patch changed something: %s", a.Bytes)
	}
}

func TestUpdate_StaleVersionRefused(t *testing.T) {
	t.Parallel()
	_, o, server := newServer(t, dbtest.SQLite(t))
	admin := optest.Admin(o.ID)
	tag := server.Do(admin, "GET", "/organization", nil).Want(200).Header.Get("Etag")
	server.Do(admin, "PATCH", "/organization", `{"name":"One"}`, "If-Match: "+tag).Want(200)
	server.Do(admin, "PATCH", "/organization", `{"name":"Two"}`, "If-Match: "+tag).Want(412).Refused("version_conflict")
}

// A setting that nothing uses is refused. Stored ones of earlier versions are not shown.
func TestUpdate_EnginesRefused(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		_, o, server := newServer(t, d)
		admin := optest.Admin(o.ID)
		server.Do(admin, "PATCH", "/organization", `{"ai":{"transcriber":{"name":"off"},"writer":{"address":"http://127.0.0.1:1"},
			"embedder":{"model":"m"},"voice":{"name":"builtin","model":null}}}`).Want(422).Refused("validation_failed",
			"ai.transcriber not_supported", "ai.writer not_supported", "ai.embedder not_supported", "ai.voice not_supported")
		ctx := context.Background()
		const stored = `UPDATE orgs SET settings = '{"ai":{"writer":{"name":"off"}}}' WHERE id = $1`
		if err := d.Tx(ctx, func(tx db.Querier) error { _, err := tx.Exec(ctx, stored, o.ID); return err }); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{`{"name":"Acme Ltd"}`, `{"ai":null}`, `{"ai":{"writer":null,"voice":{"name":null}}}`} {
			a := server.Do(admin, "PATCH", "/organization", body).Want(200)
			if a.At("ai.writer") != nil || a.At("ai.voice") != nil {
				t.Errorf("after %s: %s", body, a.Bytes)
			}
		}
	})
}

// The prefix of Standard Webhooks is refused, because the signatures would have the same name.
func TestUpdate_WebhookHeaderPrefix(t *testing.T) {
	t.Parallel()
	s, o, server := newServer(t, dbtest.SQLite(t))
	admin := optest.Admin(o.ID)
	for body, want := range map[string]string{`"webhook"`: "", `"X-Acme"`: "", `"x-acme"`: "x-acme", `null`: ""} {
		a := server.Do(admin, "PATCH", "/organization", `{"webhook_header_prefix":`+body+`}`)
		if want == "" && body != "null" {
			a.Want(422).Refused("validation_failed", "webhook_header_prefix invalid_header")
			continue
		}
		a.Want(200)
		if got, err := s.WebhookHeaderPrefix(context.Background(), o.ID); err != nil || got != want {
			t.Errorf("after %s the prefix is %q, %v", body, got, err)
		}
	}
}

func TestSetStatus_SuspendsTwin(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		s, o, _ := newServer(t, d)
		twin, _ := s.Twin(ctx, o.ID)
		if err := s.SetStatus(ctx, o.ID, org.Suspended); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{o.ID, twin} {
			if got, err := s.Get(ctx, id); err != nil || got.Status != org.Suspended {
				t.Errorf("%s is %s, %v", id, got.Status, err)
			}
		}
		if err := s.SetStatus(ctx, "org_none", org.Active); !db.IsNone(err) {
			t.Errorf("unknown organisation: %v", err)
		}
	})
}

func TestGetOrganization_HasEveryField(t *testing.T) {
	t.Parallel()
	_, o, server := newServer(t, dbtest.SQLite(t))
	a := server.Do(optest.Admin(o.ID), "GET", "/organization", nil).Want(200)
	for _, name := range []string{"id", "name", "parent_id", "plan", "status", "country", "timezone", "language", "recording",
		"transcripts", "outbound", "emergency", "ai", "limits", "brand", "webhook_header_prefix", "created_at", "emergency_calling"} {
		if !a.Has("", name) {
			t.Errorf("%s is missing: %s", name, a.Bytes)
		}
	}
}
