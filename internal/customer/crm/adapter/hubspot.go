package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// HubSpotSettings configure HubSpot.
type HubSpotSettings struct {
	App
	Token    string `json:"token,omitempty" doc:"Of a private app, in place of an agreement; secret"`
	PortalID string `json:"portal_id,omitempty" doc:"Of the account, for addresses of records; asked for unless given"`
}

// hubspotScopes are the scopes that an app needs.
var hubspotScopes = []string{"oauth", "crm.objects.contacts.read", "crm.objects.contacts.write"}

func (s HubSpotSettings) vendorConnection() (VendorConnection, []op.Violation) {
	d := VendorConnection{app: s.App, base: "https://api.hubapi.com",
		rateLimits: []rateLimit{{time.Second / 10, 50, ""}, {time.Second / 4, 4, "search"}},
		onToken: func(g *Grant, t *oauth2.Token, _ url.Values) error {
			if id, ok := t.Extra("hub_id").(float64); ok {
				g.Account = strconv.FormatFloat(id, 'f', -1, 64)
			}
			return nil
		},
		newAdapter: func(a *vendorClient) Adapter { return &hubspot{vendorClient: a, portal: s.PortalID} }}
	at := firstNonEmpty(s.LoginURL, d.base)
	d.endpoints = oauthEndpoints{authorize: firstNonEmpty(s.LoginURL, "https://app.hubspot.com") + "/oauth/authorize",
		token: at + "/oauth/v3/token", revoke: at + "/oauth/v3/token/revoke",
		scopes: hubspotScopes, style: oauth2.AuthStyleInParams, pkce: true}
	if s.Token != "" {
		d.static = bearer(firstNonEmpty(s.APIURL, d.base), s.Token)
	}
	if strings.Trim(s.PortalID, "0123456789") != "" {
		return d, []op.Violation{op.Field("settings.portal_id", "invalid_value", "must be a number")}
	}
	return d, nil
}

// hubspot is the adapter for HubSpot's CRM API v3.
type hubspot struct {
	*vendorClient

	mu     sync.Mutex // guards the rest
	portal string
	uiHost string // host of the web pages of records
}

// Can reports the capabilities that all vendors have.
func (h *hubspot) Can() Capabilities { return vendorCapabilities }

type hubspotFilter struct {
	Property string   `json:"propertyName"`
	Operator string   `json:"operator"`
	Value    string   `json:"value,omitempty"`
	Values   []string `json:"values,omitempty"`
}

type hubspotGroup struct {
	Filters []hubspotFilter `json:"filters"`
}

type hubspotSearch struct {
	Groups     []hubspotGroup `json:"filterGroups"`
	Properties []string       `json:"properties"`
	Sorts      []string       `json:"sorts,omitempty"`
	Limit      int            `json:"limit"`
	After      string         `json:"after,omitempty"`
}

type hubspotObject struct {
	ID         string             `json:"id"`
	Properties map[string]*string `json:"properties"`
	UpdatedAt  time.Time          `json:"updatedAt"`
}

type hubspotPage struct {
	Results []hubspotObject `json:"results"`
	Paging  struct {
		Next struct {
			After string `json:"after"`
		} `json:"next"`
	} `json:"paging"`
}

var hubspotFields = []string{"firstname", "lastname", "company", "jobtitle", "email", "phone", "mobilephone"}

// Lookup searches with the five filter groups that a search may have: HubSpot's normalised numbers, which have no
// country code, and the number as people wrote it, in the usual spellings.
func (h *hubspot) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	x := hubspotSearch{Properties: hubspotFields, Limit: 20}
	is := func(property, value string) {
		x.Groups = append(x.Groups, hubspotGroup{[]hubspotFilter{{Property: property, Operator: "EQ", Value: value}}})
	}
	if q.Email != "" {
		is("email", strings.ToLower(q.Email))
	} else {
		is("hs_searchable_calculated_phone_number", q.Phone.NSN)
		is("hs_searchable_calculated_mobile_number", q.Phone.NSN)
		is("hs_searchable_calculated_international_phone_number", q.Phone.E164)
		for _, property := range []string{"phone", "mobilephone"} {
			x.Groups = append(x.Groups, hubspotGroup{[]hubspotFilter{{Property: property, Operator: "IN",
				Values: phoneSpellings(q.Phone)}}})
		}
	}
	var page hubspotPage
	if err := h.search(ctx, "contacts", x, &page); err != nil {
		return nil, err
	}
	found := mapSlice(page.Results, h.record)
	if len(found) > 0 {
		h.setURLs(ctx, found)
	}
	return found, nil
}

func (h *hubspot) search(ctx context.Context, kind string, x hubspotSearch, page *hubspotPage) error {
	return h.do(ctx, apiRequest{method: http.MethodPost, path: "/crm/v3/objects/" + kind + "/search", body: x, search: true}, page)
}

func (h *hubspot) record(o hubspotObject) contact.Record {
	text := func(name string) string {
		if v := o.Properties[name]; v != nil {
			return *v
		}
		return ""
	}
	r := contact.Record{ExternalID: o.ID, Name: strings.TrimSpace(text("firstname") + " " + text("lastname")), Company: text("company"),
		Title: text("jobtitle"), Email: text("email"), UpdatedAt: o.UpdatedAt}
	for _, p := range []string{text("phone"), text("mobilephone")} {
		if p != "" {
			r.Phones = append(r.Phones, p)
		}
	}
	return r
}

// setURLs sets the web addresses of records. Without the account's number they stay empty.
func (h *hubspot) setURLs(ctx context.Context, all []contact.Record) {
	for i := range all {
		all[i].URL = h.recordURL(ctx, all[i].ExternalID)
	}
}

func (h *hubspot) recordURL(ctx context.Context, id string) string {
	portal, web := h.account(ctx)
	if portal == "" {
		return ""
	}
	return "https://" + web + "/contacts/" + portal + "/record/0-1/" + url.PathEscape(id)
}

// account returns the account's number and the host of its web pages. It requests them once.
func (h *hubspot) account(ctx context.Context) (portal, web string) {
	h.mu.Lock()
	portal, web = h.portal, h.uiHost
	h.mu.Unlock()
	if web != "" {
		return portal, web
	}
	if k, err := h.credentialSource.Credentials(ctx, ""); err == nil && portal == "" {
		portal = k.account
	}
	var x struct {
		Portal int64  `json:"portalId"`
		Web    string `json:"uiDomain"`
	}
	err := h.do(ctx, apiRequest{method: http.MethodGet, path: "/account-info/v3/details"}, &x)
	if err != nil || !isHostName(x.Web) {
		return portal, "app.hubspot.com"
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.uiHost = x.Web; h.portal == "" {
		h.portal = strconv.FormatInt(x.Portal, 10)
	}
	return h.portal, h.uiHost
}

// isHostName reports whether a name from a vendor consists of the characters of a host name.
func isHostName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-.") == ""
}

type hubspotInput struct {
	Properties   map[string]any       `json:"properties"`
	Associations []hubspotAssociation `json:"associations,omitempty"`
}

type hubspotAssociation struct {
	To struct {
		ID string `json:"id"`
	} `json:"to"`
	Types []hubspotAssociationType `json:"types"`
}

type hubspotAssociationType struct {
	Category string `json:"associationCategory"`
	ID       int    `json:"associationTypeId"`
}

// HubSpot's association types from a note and from a call to a contact.
const (
	hubspotNoteToContact = 202
	hubspotCallToContact = 194
)

func associationsTo(id string, kind int) []hubspotAssociation {
	if id == "" {
		return nil
	}
	a := hubspotAssociation{Types: []hubspotAssociationType{{"HUBSPOT_DEFINED", kind}}}
	a.To.ID = id
	return []hubspotAssociation{a}
}

// existingIDPattern matches the id of the existing record in HubSpot's answer 409.
var existingIDPattern = regexp.MustCompile(`Existing ID: ([0-9]+)`)

// Upsert writes a contact. Before it creates one, it searches by e-mail address, and by number and name.
func (h *hubspot) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (WriteResult, error) {
	if externalID == "" {
		id, err := h.findExisting(ctx, h, c)
		if err != nil {
			return WriteResult{}, err
		}
		externalID = id
	}
	p, fields := contactFieldsOf(c), map[string]any{}
	for name, text := range map[string]string{"firstname": p.first, "lastname": p.last, "company": p.company, "jobtitle": p.title,
		"email": p.email, "phone": p.phone, "mobilephone": p.mobile} {
		setNonEmpty(fields, name, text)
	}
	out, err := h.put(ctx, "contacts", externalID, hubspotInput{Properties: fields})
	if m := existingIDPattern.FindStringSubmatch(fmt.Sprint(err)); err != nil && externalID == "" && m != nil {
		out, err = h.put(ctx, "contacts", m[1], hubspotInput{Properties: fields})
	}
	if err == nil {
		out.URL = h.recordURL(ctx, out.ExternalID)
	}
	return out, err
}

// put writes an object. If id is "", it creates one.
func (h *hubspot) put(ctx context.Context, kind, id string, x hubspotInput) (WriteResult, error) {
	w := apiRequest{method: http.MethodPost, path: "/crm/v3/objects/" + kind, body: x}
	if id != "" {
		w.method, w.path = http.MethodPatch, w.path+"/"+url.PathEscape(id)
	}
	var made hubspotObject
	err := h.do(ctx, w, &made)
	if errors.Is(err, errNotFound) {
		err = fmt.Errorf("%w: it has no such record any more", ErrRefused)
	}
	return WriteResult{ExternalID: firstNonEmpty(made.ID, id)}, err
}

// NeedsRecord is true: a note without a contact cannot be found in HubSpot.
func (h *hubspot) NeedsRecord() bool { return true }

// LogNeedsRecord is true for the same reason.
func (h *hubspot) LogNeedsRecord() bool { return true }

// Note writes a note with the time at which it was written.
func (h *hubspot) Note(ctx context.Context, _ string, n Note) (WriteResult, error) {
	if n.Again {
		id, err := h.findWritten(ctx, "notes", hubspotFilter{Property: "associations.contact", Operator: "EQ", Value: n.ExternalID},
			hubspotFilter{Property: "hs_timestamp", Operator: "EQ", Value: unixMillis(n.At)})
		if err != nil || id != "" {
			return WriteResult{ExternalID: id}, err
		}
	}
	return h.put(ctx, "notes", "", hubspotInput{Properties: map[string]any{"hs_timestamp": unixMillis(n.At),
		"hs_note_body": escapeHTML(n.withAuthor())}, Associations: associationsTo(n.ExternalID, hubspotNoteToContact)})
}

// findWritten returns the id of the object of an earlier attempt with a lost answer; "" if there is none.
func (h *hubspot) findWritten(ctx context.Context, kind string, filters ...hubspotFilter) (string, error) {
	var page hubspotPage
	err := h.search(ctx, kind, hubspotSearch{Groups: []hubspotGroup{{filters}}, Properties: []string{"hs_timestamp"}, Limit: 1}, &page)
	if err != nil || len(page.Results) == 0 {
		return "", err
	}
	return page.Results[0].ID, nil
}

func unixMillis(t db.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// hubspotStatus maps the status of a call to HubSpot's status.
var hubspotStatus = map[string]string{"completed": "COMPLETED", "missed": "MISSED", "no_answer": "NO_ANSWER", "busy": "BUSY",
	"failed": "FAILED", "canceled": "CANCELED"}

// hubspotMaxBody bounds the body of a call, in bytes.
const hubspotMaxBody = 48 << 10

// LogCall writes a call, or changes the one that was written.
func (h *hubspot) LogCall(ctx context.Context, _ string, c CallLog) (WriteResult, error) {
	id := c.RecordID
	if id == "" && c.Again {
		var err error
		if id, err = h.findWritten(ctx, "calls", hubspotFilter{Property: "hs_call_external_id", Operator: "EQ", Value: c.ID}); err != nil {
			return WriteResult{}, err
		}
	}
	fields := map[string]any{"hs_timestamp": unixMillis(c.StartedAt), "hs_call_title": c.title(),
		"hs_call_body":      escapeHTML(c.text(hubspotMaxBody)),
		"hs_call_direction": strings.ToUpper(c.Direction), "hs_call_duration": strconv.Itoa(c.Talk * 1000), "hs_call_external_id": c.ID}
	setNonEmpty(fields, "hs_call_status", hubspotStatus[c.Status])
	setNonEmpty(fields, "hs_call_from_number", c.From)
	setNonEmpty(fields, "hs_call_to_number", c.To)
	if strings.HasPrefix(c.RecordingURL, "https://") {
		fields["hs_call_recording_url"] = c.RecordingURL
	}
	x := hubspotInput{Properties: fields}
	if id == "" {
		x.Associations = associationsTo(c.ExternalID, hubspotCallToContact)
	}
	return h.put(ctx, "calls", id, x)
}
