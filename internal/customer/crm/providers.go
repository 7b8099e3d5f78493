package crm

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// provider is a kind of system that can be connected.
type provider struct {
	name, title, description string
	capabilities             Capabilities
	settings                 any // example of its settings for the JSON schema; nil if there are none
	hasFieldMap              bool
	// build checks settings and builds an adapter; nil if vendor is set, or no connections can be made.
	build  func(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation)
	decode vendorDecoder // in place of build, for vendors with a published API
}

// providers holds all providers, in the order of the API's list.
var providers = []provider{
	{name: "internal", title: "Contacts", description: "The organisation's own contacts. They are always connected; name and priority can be changed.",
		capabilities: Capabilities{Lookup: true, Create: true, Update: true, Notes: true}},
	{name: "http", title: "Any system with an HTTP API", description: "Asked while the phone rings, by templates of requests and paths into the answers. Takes contacts, notes and calls where there are templates for them.",
		capabilities: Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}, settings: HTTPSettings{}, hasFieldMap: true, build: buildHTTP},
	{name: "csv", title: "CSV file", description: "A table behind an address, read now and then and copied into the phone index.", capabilities: Capabilities{Lookup: true},
		settings: ListSettings{}, build: buildList(newCSV)},
	{name: "carddav", title: "Address book (CardDAV)", description: "An address book of Nextcloud, Radicale and others, copied into the phone index and followed. Takes contacts where write says so.",
		capabilities: Capabilities{Lookup: true, Create: true, Update: true}, settings: CardDAVSettings{}, build: buildCardDAV},
	{name: "tryton", title: "Tryton", description: "A Tryton server with its module party: asked while the phone rings; takes contacts as parties, notes and calls as their notes.",
		capabilities: Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}, settings: TrytonSettings{}, build: buildTryton},
	{name: "ldap", title: "Directory (LDAP)", description: "A directory such as OpenLDAP or Active Directory, asked while the phone rings, or read now and then and copied into the phone index.",
		capabilities: Capabilities{Lookup: true}, settings: LDAPSettings{}, build: buildLDAP},
	{name: "hubspot", title: "HubSpot", description: "Asked while the phone rings; takes contacts, notes and calls. By agreement in a browser, or with the token of a private app.",
		capabilities: vendorCapabilities, settings: HubSpotSettings{}, decode: decodeVendor(HubSpotSettings.vendorConnection)},
	{name: "pipedrive", title: "Pipedrive", description: "Asked while the phone rings; takes contacts, notes and calls, as activities. By agreement in a browser, or with an API token.",
		capabilities: vendorCapabilities, settings: PipedriveSettings{}, decode: decodeVendor(PipedriveSettings.vendorConnection)},
	{name: "salesforce", title: "Salesforce", description: "Asked while the phone rings: contacts, leads and accounts; takes contacts, notes and calls, as tasks. By agreement in a browser, or an app that acts for itself.",
		capabilities: vendorCapabilities, settings: SalesforceSettings{}, decode: decodeVendor(SalesforceSettings.vendorConnection)},
	{name: "zendesk", title: "Zendesk", description: "Asked while the phone rings; takes contacts as users, notes and calls as tickets. By agreement in a browser, or with an API token.",
		capabilities: vendorCapabilities, settings: ZendeskSettings{}, decode: decodeVendor(ZendeskSettings.vendorConnection)},
	{name: "zoho", title: "Zoho CRM", description: "Asked while the phone rings: contacts and leads; takes contacts, notes and calls. By agreement in a browser.",
		capabilities: vendorCapabilities, settings: ZohoSettings{}, decode: decodeVendor(ZohoSettings.vendorConnection)},
	{name: "dynamics", title: "Dynamics 365", description: "Contacts are copied into the phone index now and then, and asked for while the phone rings; takes contacts, notes and calls. By agreement in a browser, or an app that acts for itself.",
		capabilities: vendorCapabilities, settings: DynamicsSettings{}, decode: decodeVendor(DynamicsSettings.vendorConnection)},
}

// vendorCapabilities are the capabilities of all vendors.
var vendorCapabilities = Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}

func findProvider(name string) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// providerNames returns the names of all providers, for messages.
func providerNames() string {
	return strings.Join(mapSlice(providers, func(p provider) string { return p.name }), ", ")
}

// decodeStrict decodes settings. Unknown members are violations.
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

func buildHTTP(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x HTTPSettings
	if wrong := decodeStrict(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(s.Guard)
	for name, at := range fields {
		if _, ok := fieldPaths[name]; !ok {
			wrong = append(wrong, op.Field("field_map."+name, "unknown_field", "no such field"))
		}
		if _, err := parsePath(at); err != nil {
			wrong = append(wrong, op.Field("field_map."+name, "invalid_path", err.Error()))
		}
	}
	return newHTTP(x, fields, s.lookupClient), wrong
}

func buildCardDAV(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x CardDAVSettings
	if wrong := decodeStrict(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(s.Guard)
	if len(fields) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider reads the usual properties"))
	}
	return &cardDAV{s: x, listClient: s.listClient, lookupClient: s.lookupClient}, wrong
}

func buildList(make func(ListSettings, *http.Client) *csvList) func(*Service, json.RawMessage, map[string]string) (Adapter, []op.Violation) {
	return func(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
		var x ListSettings
		if wrong := decodeStrict(raw, &x); wrong != nil {
			return nil, wrong
		}
		wrong := x.check(s.Guard)
		if len(fields) > 0 {
			wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider reads the usual headings and properties"))
		}
		return make(x, s.listClient), wrong
	}
}

// Limits of lookup requests, and of reads of lists.
var (
	lookupLimits = egress.Limits{Connect: 5 * time.Second, Total: 30 * time.Second, Body: maxAnswerBytes, Idle: 16}
	listLimits   = egress.Limits{Connect: 10 * time.Second, Total: 10 * time.Minute, Body: maxListBytes, Idle: 2}
)

// secretMask is shown in place of a secret. A patch with this value leaves the secret unchanged.
const secretMask = "********"

// secretSettings are the members of settings that are never shown.
var secretSettings = []string{"token", "password", "client_secret", "api_token"}

// maskSecrets returns the settings with their secrets masked.
func maskSecrets(settings map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range settings {
		inner, isObject := v.(map[string]any)
		switch {
		case name == "headers" && isObject:
			hidden := map[string]any{}
			for h := range inner {
				hidden[h] = secretMask
			}
			out[name] = hidden
		case isObject:
			out[name] = maskSecrets(inner)
		case slices.Contains(secretSettings, name) && v != "":
			out[name] = secretMask
		default:
			out[name] = v
		}
	}
	return out
}

// mergePatch merges a change into settings (RFC 7396). Masked values leave a secret unchanged.
func mergePatch(old, change map[string]any) map[string]any {
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
		case v == secretMask:
		case isObject && name != "body":
			out[name] = mergePatch(was, inner)
		default:
			out[name] = v
		}
	}
	return out
}
