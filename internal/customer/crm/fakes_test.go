package crm_test

import (
	"context"
	"net/http"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// systems passes the service to package contact, which is constructed before.
type systems struct{ h *fixture }

func (s systems) Sources(ctx context.Context, org string) ([]contact.Source, error) {
	return s.h.Connected(ctx, org)
}

func (s systems) Refs(ctx context.Context, q db.Querier, org string, contacts []string) (map[string][]contact.Ref, error) {
	return s.h.Refs(ctx, q, org, contacts)
}

func (s systems) CheckContactTargets(ctx context.Context, org string, ids []string) ([]op.Violation, error) {
	return s.h.CheckContactTargets(ctx, org, ids)
}

func (s systems) NoteSyncs(ctx context.Context, q db.Querier, org string, notes []string) (map[string][]call.NoteSync, error) {
	return s.h.NoteSyncs(ctx, q, org, notes)
}

// subjects has the notes of contacts, and the call of the fixture.
type subjects struct{ h *fixture }

func (s subjects) Note(ctx context.Context, org, id, _ string) (call.Note, error) {
	return s.h.contacts.Note(ctx, s.h.d.Read(ctx), org, id)
}

func (s subjects) Call(context.Context, string, string) (call.Call, error) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.call, nil
}

func (s subjects) Transcript(context.Context, string, string) (string, error) {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	return s.h.transcript, nil
}

// currentCredentials checks credentials by the rule that the fixture has at that time.
type currentCredentials struct{ h *fixture }

func (c currentCredentials) Revalidate(ctx context.Context, p access.Principal) error {
	return c.h.credentials.Revalidate(ctx, p)
}

// StillHeld returns the scopes that the holder still has.
func (c currentCredentials) StillHeld(ctx context.Context, h access.Holder) ([]access.Scope, error) {
	return c.h.credentials.StillHeld(ctx, h)
}

// allCredentials accepts every credential.
type allCredentials struct{}

func (allCredentials) Revalidate(context.Context, access.Principal) error { return nil }

// StillHeld returns all scopes of the holder.
func (allCredentials) StillHeld(_ context.Context, h access.Holder) ([]access.Scope, error) {
	return h.Scopes, nil
}

// revokedCredentials accepts no credential.
type revokedCredentials struct{}

func (revokedCredentials) Revalidate(context.Context, access.Principal) error {
	return op.Fail("key_revoked", "")
}

// noCalls and noMemory are not called by these tests.
type (
	noCalls  struct{ contact.Calls }
	noMemory struct{ contact.Memory }
)

// browsers returns the person whom the fixture has signed in.
type browsers struct{ h *fixture }

func (b browsers) Person(*http.Request, string) (access.Principal, error) { return b.h.person, nil }

// StillHeld returns nothing.
func (revokedCredentials) StillHeld(context.Context, access.Holder) ([]access.Scope, error) {
	return nil, nil
}
