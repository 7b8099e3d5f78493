package adapter

import (
	"net/http"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/egress"
)

// Env is what adapters need of their surroundings.
type Env struct {
	Guard       *egress.Guard
	Apps        map[string]App // of the operator, by provider
	RedirectURL string         // to which vendors return browsers
	Contacts    *contact.Service
	Clock       clock.Clock
	// Lookups sends requests, and Lists reads long lists; both through Guard.
	Lookups, Lists *http.Client
}

// NewEnv returns an Env with its clients.
func NewEnv(g *egress.Guard, apps map[string]App, redirectURL string, contacts *contact.Service, c clock.Clock) *Env {
	return &Env{Guard: g, Apps: apps, RedirectURL: redirectURL, Contacts: contacts, Clock: c,
		Lookups: g.Client(lookupLimits), Lists: g.Client(listLimits)}
}
