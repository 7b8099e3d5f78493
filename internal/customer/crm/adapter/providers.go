package adapter

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/jsonpath"
	"soniq/internal/platform/op"
)

// Provider is a kind of system that can be connected.
type Provider struct {
	Name, Title, Description string
	Capabilities             Capabilities
	Settings                 any // example of its settings for the JSON schema; nil if there are none
	HasFieldMap              bool
	// build checks settings and builds an adapter; nil if vendor is set, or no connections can be made.
	build  func(e *Env, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation)
	decode vendorDecoder // in place of build, for vendors with a published API
}

// Providers holds all providers, in the order of the API's list.
var Providers = []Provider{
	{Name: "internal", Title: "Contacts", Description: "The organisation's own contacts. They are always connected; name and priority can be changed.",
		Capabilities: Capabilities{Lookup: true, Create: true, Update: true, Notes: true}},
	{Name: "http", Title: "Any system with an HTTP API",
		Description:  "Asked while the phone rings, by templates of requests and paths into the answers. Takes contacts, notes and calls where there are templates for them.",
		Capabilities: Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}, Settings: HTTPSettings{},
		HasFieldMap: true, build: buildHTTP},
	{Name: "csv", Title: "CSV file", Description: "A table behind an address, read now and then and copied into the phone index.",
		Capabilities: Capabilities{Lookup: true}, Settings: ListSettings{}, build: buildList(newCSV)},
	{Name: "carddav", Title: "Address book (CardDAV)",
		Description:  "An address book of Nextcloud, Radicale and others, copied into the phone index and followed. Takes contacts where write says so.",
		Capabilities: Capabilities{Lookup: true, Create: true, Update: true}, Settings: CardDAVSettings{}, build: buildCardDAV},
	{Name: "tryton", Title: "Tryton", Description: "A Tryton server with its module party: asked while the phone rings; takes contacts as parties, notes and calls as their notes.",
		Capabilities: Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}, Settings: TrytonSettings{},
		build: buildTryton},
	{Name: "ldap", Title: "Directory (LDAP)", Description: "A directory such as OpenLDAP or Active Directory, asked while the phone rings, or read now and then and copied into the phone index.",
		Capabilities: Capabilities{Lookup: true}, Settings: LDAPSettings{}, build: buildLDAP},
	{Name: "hubspot", Title: "HubSpot", Description: "Asked while the phone rings; takes contacts, notes and calls. By agreement in a browser, or with the token of a private app.",
		Capabilities: vendorCapabilities, Settings: HubSpotSettings{}, decode: decodeVendor(HubSpotSettings.vendorConnection)},
	{Name: "pipedrive", Title: "Pipedrive", Description: "Asked while the phone rings; takes contacts, notes and calls, as activities. By agreement in a browser, or with an API token.",
		Capabilities: vendorCapabilities, Settings: PipedriveSettings{}, decode: decodeVendor(PipedriveSettings.vendorConnection)},
	{Name: "salesforce", Title: "Salesforce", Description: "Asked while the phone rings: contacts, leads and accounts; takes contacts, notes and calls, as tasks. By agreement in a browser, or an app that acts for itself.",
		Capabilities: vendorCapabilities, Settings: SalesforceSettings{}, decode: decodeVendor(SalesforceSettings.vendorConnection)},
	{Name: "zendesk", Title: "Zendesk", Description: "Asked while the phone rings; takes contacts as users, notes and calls as tickets. By agreement in a browser, or with an API token.",
		Capabilities: vendorCapabilities, Settings: ZendeskSettings{}, decode: decodeVendor(ZendeskSettings.vendorConnection)},
	{Name: "zoho", Title: "Zoho CRM", Description: "Asked while the phone rings: contacts and leads; takes contacts, notes and calls. By agreement in a browser.",
		Capabilities: vendorCapabilities, Settings: ZohoSettings{}, decode: decodeVendor(ZohoSettings.vendorConnection)},
	{Name: "dynamics", Title: "Dynamics 365", Description: "Contacts are copied into the phone index now and then, and asked for while the phone rings; takes contacts, notes and calls. By agreement in a browser, or an app that acts for itself.",
		Capabilities: vendorCapabilities, Settings: DynamicsSettings{}, decode: decodeVendor(DynamicsSettings.vendorConnection)},
}

// vendorCapabilities are the capabilities of all vendors.
var vendorCapabilities = Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}

// FindProvider returns a provider by its name.
func FindProvider(name string) (Provider, bool) {
	i := slices.IndexFunc(Providers, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return Providers[i], true
}

// ProviderNames returns the names of all providers, for messages.
func ProviderNames() string {
	return strings.Join(mapSlice(Providers, func(p Provider) string { return p.Name }), ", ")
}

func buildHTTP(e *Env, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x HTTPSettings
	if wrong := op.DecodeSettings(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(e.Guard)
	for name, at := range fields {
		if _, ok := FieldPaths[name]; !ok {
			wrong = append(wrong, op.Field("field_map."+name, "unknown_field", "no such field"))
		}
		if _, err := jsonpath.Parse(at); err != nil {
			wrong = append(wrong, op.Field("field_map."+name, "invalid_path", err.Error()))
		}
	}
	return newHTTP(x, fields, e.Lookups), wrong
}

func buildCardDAV(e *Env, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x CardDAVSettings
	if wrong := op.DecodeSettings(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(e.Guard)
	if len(fields) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider reads the usual properties"))
	}
	return &cardDAV{s: x, listClient: e.Lists, lookupClient: e.Lookups}, wrong
}

func buildList(make func(ListSettings, *http.Client) *csvList) func(*Env, json.RawMessage, map[string]string) (Adapter, []op.Violation) {
	return func(e *Env, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
		var x ListSettings
		if wrong := op.DecodeSettings(raw, &x); wrong != nil {
			return nil, wrong
		}
		wrong := x.check(e.Guard)
		if len(fields) > 0 {
			wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider reads the usual headings and properties"))
		}
		return make(x, e.Lists), wrong
	}
}

// Limits of lookup requests, and of reads of lists.
var (
	lookupLimits = egress.Limits{Connect: 5 * time.Second, Total: 30 * time.Second, Body: maxAnswerBytes, Idle: 16}
	listLimits   = egress.Limits{Connect: 10 * time.Second, Total: 10 * time.Minute, Body: maxListBytes, Idle: 2}
)
