package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/op"
)

// SalesforceSettings configure Salesforce.
type SalesforceSettings struct {
	App
	Domain            string `json:"domain,omitempty" doc:"Where people sign in, where that is not login.salesforce.com: acme.my.salesforce.com, or test.salesforce.com"`
	ClientCredentials bool   `json:"client_credentials,omitempty" doc:"The app of your own acts for itself, and nobody has to agree; needs domain"`
}

const salesforceAPI = "/services/data/v61.0"

func (s SalesforceSettings) vendorConnection() (VendorConnection, []op.Violation) {
	at := firstNonEmpty(s.LoginURL, "https://"+firstNonEmpty(s.Domain, "login.salesforce.com")) + "/services/oauth2"
	d := VendorConnection{app: s.App, clientCredentials: s.ClientCredentials, rateLimits: []rateLimit{{time.Second / 10, 25, ""}},
		endpoints: oauthEndpoints{authorize: at + "/authorize", token: at + "/token", revoke: at + "/revoke",
			style: oauth2.AuthStyleInParams, pkce: true},
		onToken: func(g *Grant, t *oauth2.Token, _ url.Values) error {
			base, _ := t.Extra("instance_url").(string)
			if g.Base = firstNonEmpty(base, g.Base); g.Base == "" && s.APIURL == "" {
				return fmt.Errorf("%w: it did not tell where its API is", ErrRefused)
			}
			return nil
		},
		classifyError: salesforceError, newAdapter: func(a *vendorClient) Adapter { return &salesforce{a} }}
	if !s.ClientCredentials {
		d.endpoints.scopes = []string{"api", "refresh_token"}
	}
	switch {
	case s.Domain != "" && (!isHostName(s.Domain) || !strings.HasSuffix(strings.ToLower(s.Domain), ".salesforce.com")):
		return d, []op.Violation{op.Field("settings.domain", "invalid_value", "must end with .salesforce.com")}
	case s.ClientCredentials && s.Domain == "" && s.LoginURL == "":
		return d, []op.Violation{op.Field("settings.domain", "required", "an app acts for itself at the domain of its organisation only")}
	}
	return d, nil
}

// quotaPause is the pause after the daily request quota of Salesforce is exhausted. Salesforce returns no time.
const quotaPause = 5 * time.Minute

// salesforceError reads the errors of an answer, which are a list. Rate limits have the status 403.
func salesforceError(status int, _ http.Header, body []byte) error {
	var all []struct {
		Code string `json:"errorCode"`
	}
	if status != http.StatusForbidden || json.Unmarshal(body, &all) != nil {
		return nil
	}
	for _, e := range all {
		if e.Code == "REQUEST_LIMIT_EXCEEDED" {
			return &BusyError{After: quotaPause}
		}
	}
	return nil
}

// salesforce is the adapter for Salesforce's REST API.
type salesforce struct{ *vendorClient }

// Can reports the capabilities that all vendors have.
func (s *salesforce) Can() Capabilities { return vendorCapabilities }

type salesforceRecord struct {
	Attributes struct {
		Type string `json:"type"`
	} `json:"attributes"`
	ID          string `json:"Id"`
	Name        string `json:"Name"`
	Title       string `json:"Title"`
	Company     string `json:"Company"`
	Phone       string `json:"Phone"`
	MobilePhone string `json:"MobilePhone"`
	HomePhone   string `json:"HomePhone"`
	OtherPhone  string `json:"OtherPhone"`
	Email       string `json:"Email"`
	Modified    string `json:"LastModifiedDate"`
	Account     *struct {
		Name string `json:"Name"`
	} `json:"Account"`
}

const (
	salesforcePeople = "Contact(Id, Name, Title, Phone, MobilePhone, HomePhone, OtherPhone, Email, LastModifiedDate, Account.Name), " +
		"Lead(Id, Name, Title, Company, Phone, MobilePhone, Email, LastModifiedDate)"
	salesforceAccounts = ", Account(Id, Name, Phone, LastModifiedDate)"
)

// Lookup searches phone fields of contacts, leads and accounts for digits (SOSL), or e-mail fields of contacts and
// leads.
func (s *salesforce) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	terms := []string{q.Phone.NSN}
	for _, t := range []string{q.Phone.Digits, q.Phone.Plain, onlyDigits(q.Phone.National)} {
		if t != "" && !slices.Contains(terms, t) {
			terms = append(terms, t)
		}
	}
	find := "FIND {" + strings.Join(terms, " OR ") + "} IN PHONE FIELDS RETURNING " + salesforcePeople + salesforceAccounts + " LIMIT 20"
	if q.Email != "" {
		find = "FIND {" + soslText(q.Email) + "} IN EMAIL FIELDS RETURNING " + salesforcePeople + " LIMIT 20"
	}
	var x struct {
		Found []salesforceRecord `json:"searchRecords"`
	}
	if err := s.do(ctx, apiRequest{method: http.MethodGet, path: salesforceAPI + "/search", query: url.Values{"q": {find}}, search: true},
		&x); err != nil {
		return nil, err
	}
	order := func(r salesforceRecord) int {
		return slices.Index([]string{"Contact", "Lead", "Account"}, r.Attributes.Type)
	}
	slices.SortStableFunc(x.Found, func(a, b salesforceRecord) int { return order(a) - order(b) })
	return mapSlice(x.Found, func(r salesforceRecord) contact.Record { return s.record(ctx, r) }), nil
}

// soslText writes a term for a search as one phrase, with reserved characters escaped.
func soslText(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strings.ContainsRune(`?&|!{}[]()^~*:\"'+-`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return `"` + b.String() + `"`
}

// soqlText writes a text as a literal of a query.
func soqlText(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

func (s *salesforce) record(ctx context.Context, x salesforceRecord) contact.Record {
	r := contact.Record{ExternalID: x.ID, Name: x.Name, Company: x.Company, Title: x.Title, Email: x.Email, URL: s.recordURL(ctx, x.ID)}
	if x.Account != nil {
		r.Company = x.Account.Name
	}
	if x.Attributes.Type == "Account" {
		r.Company = x.Name
	}
	for _, p := range []string{x.Phone, x.MobilePhone, x.HomePhone, x.OtherPhone} {
		if p != "" {
			r.Phones = append(r.Phones, p)
		}
	}
	r.UpdatedAt, _ = time.Parse("2006-01-02T15:04:05.000-0700", x.Modified)
	return r
}

func (s *salesforce) recordURL(ctx context.Context, id string) string {
	k, err := s.credentialSource.Credentials(ctx, "")
	if err != nil {
		return ""
	}
	return k.base + "/" + url.PathEscape(id)
}

// Upsert writes a contact, or a lead if the record is a lead.
func (s *salesforce) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (WriteResult, error) {
	if externalID == "" {
		id, err := s.findExisting(ctx, s, c)
		if err != nil {
			return WriteResult{}, err
		}
		externalID = id
	}
	p, fields, kind := contactFieldsOf(c), map[string]any{}, "Contact"
	switch {
	case strings.HasPrefix(externalID, "00Q"):
		kind = "Lead"
		setNonEmpty(fields, "Company", p.company)
	case strings.HasPrefix(externalID, "001"):
		return WriteResult{}, fmt.Errorf("%w: the record is an account, not a person", ErrRefused)
	}
	for name, text := range map[string]string{"FirstName": p.first, "LastName": p.last, "Title": p.title, "Email": p.email,
		"Phone": p.phone, "MobilePhone": p.mobile} {
		setNonEmpty(fields, name, text)
	}
	out, err := s.put(ctx, kind, externalID, fields)
	if err == nil {
		out.URL = s.recordURL(ctx, out.ExternalID)
	}
	return out, err
}

// put writes a record. If id is "", it creates one.
func (s *salesforce) put(ctx context.Context, kind, id string, fields map[string]any) (WriteResult, error) {
	w := apiRequest{method: http.MethodPost, path: salesforceAPI + "/sobjects/" + kind, body: fields}
	if id != "" {
		w.method, w.path = http.MethodPatch, w.path+"/"+url.PathEscape(id)
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := s.do(ctx, w, &made); err != nil {
		return WriteResult{}, refusedIfMissing(err)
	}
	return WriteResult{ExternalID: firstNonEmpty(id, made.ID)}, nil
}

// NeedsRecord is true: a task without a record cannot be found in Salesforce.
func (s *salesforce) NeedsRecord() bool { return true }

// LogNeedsRecord is true for the same reason.
func (s *salesforce) LogNeedsRecord() bool { return true }

// setTaskTarget links a task to a person, or to an account.
func setTaskTarget(fields map[string]any, id string) {
	if strings.HasPrefix(id, "001") {
		fields["WhatId"] = id
		return
	}
	fields["WhoId"] = id
}

// Note writes a note as a completed task. CallObject holds our id, by which a retry finds it.
func (s *salesforce) Note(ctx context.Context, _ string, n Note) (WriteResult, error) {
	if n.Again {
		if id, err := s.findWritten(ctx, n.ID); err != nil || id != "" {
			return WriteResult{ExternalID: id}, err
		}
	}
	fields := map[string]any{"Subject": "Note", "Status": "Completed", "Description": truncate(n.withAuthor(), 32000),
		"ActivityDate": n.At.UTC().Format(time.DateOnly), "CallObject": n.ID}
	setTaskTarget(fields, n.ExternalID)
	return s.put(ctx, "Task", "", fields)
}

// findWritten returns the id of the task of an earlier attempt with a lost answer; "" if there is none.
func (s *salesforce) findWritten(ctx context.Context, object string) (string, error) {
	var x struct {
		Records []struct {
			ID string `json:"Id"`
		} `json:"records"`
	}
	q := url.Values{"q": {"SELECT Id FROM Task WHERE CallObject = " + soqlText(object) + " LIMIT 1"}}
	err := s.do(ctx, apiRequest{method: http.MethodGet, path: salesforceAPI + "/query", query: q}, &x)
	if err != nil || len(x.Records) == 0 {
		return "", err
	}
	return x.Records[0].ID, nil
}

// truncate shortens a text to a number of characters.
func truncate(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// LogCall writes a call as a completed task, or changes it.
func (s *salesforce) LogCall(ctx context.Context, _ string, c CallLog) (WriteResult, error) {
	id := c.RecordID
	if id == "" && c.Again {
		var err error
		if id, err = s.findWritten(ctx, c.ID); err != nil {
			return WriteResult{}, err
		}
	}
	fields := map[string]any{"Subject": truncate(c.title(), 255), "Description": truncate(c.text(64<<10), 32000),
		"CallDurationInSeconds": c.Talk}
	setNonEmpty(fields, "CallDisposition", truncate(c.Disposition, 255))
	if id == "" {
		fields["Status"], fields["TaskSubtype"], fields["CallObject"] = "Completed", "Call", c.ID
		fields["CallType"] = map[bool]string{true: "Inbound", false: "Outbound"}[c.Direction == "inbound"]
		fields["ActivityDate"] = c.StartedAt.UTC().Format(time.DateOnly)
		setTaskTarget(fields, c.ExternalID)
	}
	return s.put(ctx, "Task", id, fields)
}
