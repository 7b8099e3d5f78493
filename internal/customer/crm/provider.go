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

// A provider is a kind of system that can be connected.
type provider struct {
	name, title, words string
	can                Capabilities
	settings           any // an example of its settings, for the description; nil where there are none
	fields             bool
	// build checks settings and makes an adapter; nil for what cannot be made.
	build  func(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation)
	vendor vendor // in place of build, for those that are spoken with by the API their maker publishes
}

// providers lists what can be connected, in the order of the list. A system that is not in it cannot.
var providers = []provider{
	{name: "internal", title: "Contacts", words: "The organisation's own contacts. They are always connected; name and priority can be changed.",
		can: Capabilities{Lookup: true, Create: true, Update: true, Notes: true}},
	{name: "http", title: "Any system with an HTTP API", words: "Asked while the phone rings, by templates of requests and paths into the answers. Takes contacts, notes and calls where there are templates for them.",
		can: Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}, settings: HTTPSettings{}, fields: true, build: buildHTTP},
	{name: "csv", title: "CSV file", words: "A table behind an address, read now and then and copied into the phone index.", can: Capabilities{Lookup: true},
		settings: ListSettings{}, build: buildList(newCSV)},
	{name: "carddav", title: "Address book (CardDAV)", words: "An address book of Nextcloud, Radicale and others, copied into the phone index and followed. Takes contacts where write says so.",
		can: Capabilities{Lookup: true, Create: true, Update: true}, settings: CardDAVSettings{}, build: buildCardDAV},
	{name: "tryton", title: "Tryton", words: "A Tryton server with its module party: asked while the phone rings; takes contacts as parties, notes and calls as their notes.",
		can: Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}, settings: TrytonSettings{}, build: buildTryton},
	{name: "ldap", title: "Directory (LDAP)", words: "A directory such as OpenLDAP or Active Directory, asked while the phone rings, or read now and then and copied into the phone index.",
		can: Capabilities{Lookup: true}, settings: LDAPSettings{}, build: buildLDAP},
	{name: "hubspot", title: "HubSpot", words: "Asked while the phone rings; takes contacts, notes and calls. By agreement in a browser, or with the token of a private app.",
		can: vendorCan, settings: HubSpotSettings{}, vendor: kept(HubSpotSettings.deal)},
	{name: "pipedrive", title: "Pipedrive", words: "Asked while the phone rings; takes contacts, notes and calls, as activities. By agreement in a browser, or with an API token.",
		can: vendorCan, settings: PipedriveSettings{}, vendor: kept(PipedriveSettings.deal)},
	{name: "salesforce", title: "Salesforce", words: "Asked while the phone rings: contacts, leads and accounts; takes contacts, notes and calls, as tasks. By agreement in a browser, or an app that acts for itself.",
		can: vendorCan, settings: SalesforceSettings{}, vendor: kept(SalesforceSettings.deal)},
	{name: "zendesk", title: "Zendesk", words: "Asked while the phone rings; takes contacts as users, notes and calls as tickets. By agreement in a browser, or with an API token.",
		can: vendorCan, settings: ZendeskSettings{}, vendor: kept(ZendeskSettings.deal)},
	{name: "zoho", title: "Zoho CRM", words: "Asked while the phone rings: contacts and leads; takes contacts, notes and calls. By agreement in a browser.",
		can: vendorCan, settings: ZohoSettings{}, vendor: kept(ZohoSettings.deal)},
	{name: "dynamics", title: "Dynamics 365", words: "Contacts are copied into the phone index now and then, and asked for while the phone rings; takes contacts, notes and calls. By agreement in a browser, or an app that acts for itself.",
		can: vendorCan, settings: DynamicsSettings{}, vendor: kept(DynamicsSettings.deal)},
}

// vendorCan is what all vendors can do.
var vendorCan = Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}

func providerOf(name string) (provider, bool) {
	i := slices.IndexFunc(providers, func(p provider) bool { return p.name == name })
	if i < 0 {
		return provider{}, false
	}
	return providers[i], true
}

// names of all providers, for messages.
func providerNames() string {
	return strings.Join(mapped(providers, func(p provider) string { return p.name }), ", ")
}

// strict reads settings; members nobody knows are violations.
func strict(raw json.RawMessage, to any) []op.Violation {
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
	if wrong := strict(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(s.Guard)
	for name, at := range fields {
		if _, ok := fieldNames[name]; !ok {
			wrong = append(wrong, op.Field("field_map."+name, "unknown_field", "no such field"))
		}
		if _, err := parsePath(at); err != nil {
			wrong = append(wrong, op.Field("field_map."+name, "invalid_path", err.Error()))
		}
	}
	return newHTTP(x, fields, s.asking), wrong
}

func buildCardDAV(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x CardDAVSettings
	if wrong := strict(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(s.Guard)
	if len(fields) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider reads the usual properties"))
	}
	return &cardDAV{s: x, lists: s.lists, asking: s.asking}, wrong
}

func buildList(make func(ListSettings, *http.Client) *list) func(*Service, json.RawMessage, map[string]string) (Adapter, []op.Violation) {
	return func(s *Service, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
		var x ListSettings
		if wrong := strict(raw, &x); wrong != nil {
			return nil, wrong
		}
		wrong := x.check(s.Guard)
		if len(fields) > 0 {
			wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider reads the usual headings and properties"))
		}
		return make(x, s.lists), wrong
	}
}

// The limits of requests to systems that are asked, and of lists that are read.
var (
	askLimits  = egress.Limits{Connect: 5 * time.Second, Total: 30 * time.Second, Body: answerLimit, Idle: 16}
	readLimits = egress.Limits{Connect: 10 * time.Second, Total: 10 * time.Minute, Body: listLimit, Idle: 2}
)

// masked is what a secret is shown as, and what leaves it as it is where it is given back.
const masked = "********"

// secrets are the members of settings that are never shown.
var secrets = []string{"token", "password", "client_secret", "api_token"}

// mask replaces secrets.
func mask(settings map[string]any) map[string]any {
	out := map[string]any{}
	for name, v := range settings {
		inner, isObject := v.(map[string]any)
		switch {
		case name == "headers" && isObject:
			hidden := map[string]any{}
			for h := range inner {
				hidden[h] = masked
			}
			out[name] = hidden
		case isObject:
			out[name] = mask(inner)
		case slices.Contains(secrets, name) && v != "":
			out[name] = masked
		default:
			out[name] = v
		}
	}
	return out
}

// patch merges a change into settings (RFC 7396). Asterisks leave a secret as it is.
func patch(old, change map[string]any) map[string]any {
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
		case v == masked:
		case isObject && name != "body":
			out[name] = patch(was, inner)
		default:
			out[name] = v
		}
	}
	return out
}
