package smscarrier

import (
	"encoding/json"
	"slices"
	"strings"

	"soniq/internal/platform/op"
)

// provider is a kind of carrier that can be connected.
type provider struct {
	name          string
	hasCallback   bool // it posts to callback_url: its adapter is a CallbackReceiver
	hasConnection bool // it keeps a connection on one node: its adapter is a Binder
	// build validates settings, which are an object, and returns an adapter. It does not connect.
	build func(s *Service, about CarrierInfo, settings json.RawMessage) (Adapter, []op.Violation)
}

// CarrierInfo has the data of a carrier that its adapter needs.
type CarrierInfo struct {
	Org, ID     string
	CallbackURL string // "" if it has none
}

// providers has all providers that can be connected.
var providers = []provider{
	{name: "smpp", hasConnection: true, build: buildSMPP},
	{name: "http", hasCallback: true, build: buildHTTP},
	{name: "telnyx", hasCallback: true, build: buildTelnyx},
	{name: "twilio", hasCallback: true, build: buildTwilio},
}

func providerOf(name string) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// providerNames returns all names, for error texts.
func providerNames() string {
	var all []string
	for _, p := range providers {
		all = append(all, p.name)
	}
	return strings.Join(all, ", ")
}

// joinSorted joins words in order, for error texts.
func joinSorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}
