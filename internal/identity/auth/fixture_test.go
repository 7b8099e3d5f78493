package auth_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"soniq/internal/identity/auth"
	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/op/optest"
	"soniq/internal/platform/seal"
)

var here = netip.MustParseAddr("127.0.0.1")

// fixture holds the services for a test of keys.
type fixture struct {
	*auth.Service
	orgs   *org.Service
	org    org.Organization
	server *optest.Server
	now    time.Time
}

func newFixture(t *testing.T, d *db.DB) *fixture {
	t.Helper()
	s, err := seal.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &fixture{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	now := func() time.Time { return h.now }
	b := bus.New()
	h.orgs = org.New(d, b, now)
	if h.org, err = h.orgs.Create(context.Background(), "Acme", "GB"); err != nil {
		t.Fatal(err)
	}
	h.Service = auth.New(d, h.orgs, s, b, now, "soniq")
	h.server = optest.New(t, d, h.Operations()...)
	return h
}

func (h *fixture) createKey(t *testing.T, r auth.Request) (auth.Key, string) {
	t.Helper()
	r.OrgID, r.Name = h.org.ID, "test"
	if r.Scopes == nil {
		r.Scopes = []access.Scope{access.CallsRead, access.UsersAdmin}
	}
	k, err := h.CreateKey(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return k, *k.Secret
}

// code returns the error code of a verification, or "".
func (h *fixture) code(token string, e access.Environment, from netip.Addr) string {
	_, err := h.Verify(context.Background(), token, e, from)
	if err == nil {
		return ""
	}
	var known *op.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return err.Error()
}
