package smscarrier

import (
	"bytes"
	"encoding/json"
	"errors"
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

// decodeStrict decodes settings; unknown members are violations.
func decodeStrict(raw json.RawMessage, to any) []op.Violation {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(to)
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		return []op.Violation{op.Field("settings."+kind.Field, "invalid_type", "must be "+kind.Type.String())}
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return []op.Violation{op.Field("settings", "unknown_field", "no such setting: "+strings.Trim(name, `"`))}
	}
	return []op.Violation{op.Field("settings", "invalid_type", "must be an object")}
}

// joinSorted joins words in order, for error texts.
func joinSorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// maskedValue replaces a secret in responses. In a request it leaves the secret unchanged.
const maskedValue = "********"

// secretNames are the members of settings that are never shown, for every provider.
var secretNames = []string{"password", "token", "auth_token", "api_key", "secret", "client_secret"}

// mask replaces secrets; all values of headers are secrets.
func mask(settings map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range settings {
		inner, isObject := v.(map[string]any)
		switch {
		case name == "headers" && isObject:
			hidden := map[string]any{}
			for h := range inner {
				hidden[h] = maskedValue
			}
			out[name] = hidden
		case isObject:
			out[name] = mask(inner)
		case slices.Contains(secretNames, name) && v != "":
			out[name] = maskedValue
		default:
			out[name] = v
		}
	}
	return out
}

// mergeSettings applies a merge patch to settings (RFC 7396). maskedValue leaves a secret unchanged.
func mergeSettings(old, change map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range old {
		out[name] = v
	}
	for name, v := range change {
		inner, isObject := v.(map[string]any)
		was, _ := old[name].(map[string]any)
		switch {
		case v == nil:
			delete(out, name)
		case v == maskedValue:
		case isObject:
			out[name] = mergeSettings(was, inner)
		default:
			out[name] = v
		}
	}
	return out
}
