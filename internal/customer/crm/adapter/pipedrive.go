package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/op"
)

// PipedriveSettings configure Pipedrive.
type PipedriveSettings struct {
	App
	APIToken      string `json:"api_token,omitempty" doc:"Of a user, in place of an agreement; secret"`
	CompanyDomain string `json:"company_domain,omitempty" doc:"With api_token: acme, where the company is at acme.pipedrive.com"`
}

// subdomainPattern matches an account's name in the domain of a vendor.
var subdomainPattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$`)

func (s PipedriveSettings) vendorConnection() (VendorConnection, []op.Violation) {
	at := firstNonEmpty(s.LoginURL, "https://oauth.pipedrive.com")
	d := VendorConnection{app: s.App, base: "https://api.pipedrive.com", rateLimits: []rateLimit{{time.Second / 10, 20, ""},
		{time.Second / 5, 10, "search"}},
		endpoints: oauthEndpoints{authorize: at + "/oauth/authorize", token: at + "/oauth/token", revoke: at + "/oauth/revoke",
			style: oauth2.AuthStyleInHeader},
		onToken: func(g *Grant, t *oauth2.Token, _ url.Values) error {
			base, _ := t.Extra("api_domain").(string)
			g.Base = firstNonEmpty(base, g.Base)
			return nil
		},
		classifyError: func(status int, h http.Header, _ []byte) error {
			if status != http.StatusTooManyRequests {
				return nil
			}
			return &BusyError{After: parseRetryAfter(firstNonEmpty(h.Get("Retry-After"), h.Get("x-ratelimit-reset")))}
		},
		newAdapter: func(a *vendorClient) Adapter { return &pipedrive{a} }}
	if s.APIToken == "" {
		return d, nil
	}
	d.static = &Credentials{header: "x-api-token", value: s.APIToken, token: s.APIToken,
		base: firstNonEmpty(s.APIURL, "https://"+s.CompanyDomain+".pipedrive.com")}
	if s.APIURL == "" && !subdomainPattern.MatchString(s.CompanyDomain) {
		return d, []op.Violation{op.Field("settings.company_domain", "required", "give the name before .pipedrive.com")}
	}
	return d, nil
}

// pipedrive is the adapter for Pipedrive's API v2, and v1 for notes.
type pipedrive struct{ *vendorClient }

// Can reports the capabilities that all vendors have.
func (p *pipedrive) Can() Capabilities { return vendorCapabilities }

type pipedriveFound struct {
	Data struct {
		Items []struct {
			Item struct {
				ID           int64    `json:"id"`
				Name         string   `json:"name"`
				Phones       []string `json:"phones"`
				Emails       []string `json:"emails"`
				Organization struct {
					Name string `json:"name"`
				} `json:"organization"`
			} `json:"item"`
		} `json:"items"`
	} `json:"data"`
}

// Lookup searches for the national significant number, which every spelling contains, or for an e-mail address.
func (p *pipedrive) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	ask := url.Values{"term": {q.Phone.NSN}, "fields": {"phone"}, "limit": {"20"}}
	if q.Email != "" {
		ask = url.Values{"term": {q.Email}, "fields": {"email"}, "exact_match": {"true"}, "limit": {"20"}}
	}
	var x pipedriveFound
	if err := p.do(ctx, apiRequest{method: http.MethodGet, path: "/api/v2/persons/search", query: ask, search: true}, &x); err != nil {
		return nil, err
	}
	var found []contact.Record
	for _, i := range x.Data.Items {
		r := contact.Record{ExternalID: strconv.FormatInt(i.Item.ID, 10), Name: i.Item.Name, Company: i.Item.Organization.Name,
			Phones: i.Item.Phones}
		if r.URL = p.recordURL(ctx, r.ExternalID); len(i.Item.Emails) > 0 {
			r.Email = i.Item.Emails[0]
		}
		if j := slices.IndexFunc(i.Item.Emails, func(e string) bool { return strings.EqualFold(e, q.Email) }); j >= 0 {
			r.Email = i.Item.Emails[j]
		}
		found = append(found, r)
	}
	return found, nil
}

func (p *pipedrive) recordURL(ctx context.Context, id string) string {
	k, err := p.credentialSource.Credentials(ctx, "")
	if err != nil {
		return ""
	}
	return k.base + "/person/" + url.PathEscape(id)
}

type pipedriveValue struct {
	Value   string `json:"value"`
	Primary bool   `json:"primary"`
	Label   string `json:"label"`
}

type pipedrivePerson struct {
	Data struct {
		ID     int64            `json:"id"`
		Phones []pipedriveValue `json:"phones"`
		Emails []pipedriveValue `json:"emails"`
	} `json:"data"`
}

// Upsert writes a person. Numbers and addresses that exist only in Pipedrive are sent back too, because a written
// list replaces the old one.
func (p *pipedrive) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (WriteResult, error) {
	if externalID == "" {
		id, err := p.findExisting(ctx, p, c)
		if err != nil {
			return WriteResult{}, err
		}
		externalID = id
	}
	var there pipedrivePerson
	w := apiRequest{method: http.MethodPost, path: "/api/v2/persons"}
	if externalID != "" {
		w.path += "/" + url.PathEscape(externalID)
		if err := p.do(ctx, apiRequest{method: http.MethodGet, path: w.path}, &there); err != nil {
			return WriteResult{}, refusedIfMissing(err)
		}
		w.method = http.MethodPatch
	}
	phones, emails := there.Data.Phones, there.Data.Emails
	for _, x := range c.Phones {
		phones = addPipedriveValue(phones, x.Number, firstNonEmpty(x.Label, "work"),
			func(a, b string) bool { return onlyDigits(a) == onlyDigits(b) })
	}
	for _, x := range c.Emails {
		emails = addPipedriveValue(emails, x.Value, firstNonEmpty(x.Label, "work"), strings.EqualFold)
	}
	w.body = map[string]any{"name": c.Name, "phones": phones, "emails": emails}
	var made pipedrivePerson
	if err := p.do(ctx, w, &made); err != nil {
		return WriteResult{}, err
	}
	id := firstNonEmpty(externalID, strconv.FormatInt(made.Data.ID, 10))
	return WriteResult{ExternalID: id, URL: p.recordURL(ctx, id)}, nil
}

// refusedIfMissing turns errNotFound of a write into ErrRefused: a write to a deleted record is not retried.
func refusedIfMissing(err error) error {
	if errors.Is(err, errNotFound) {
		return fmt.Errorf("%w: it has no such record any more", ErrRefused)
	}
	return err
}

func onlyDigits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// addPipedriveValue adds a value that is not in the list yet.
func addPipedriveValue(all []pipedriveValue, value, name string, same func(a, b string) bool) []pipedriveValue {
	if slices.ContainsFunc(all, func(v pipedriveValue) bool { return same(v.Value, value) }) {
		return all
	}
	return append(slices.Clone(all), pipedriveValue{Value: value, Label: name, Primary: len(all) == 0})
}

// NeedsRecord is true: a note without a person cannot be found in Pipedrive.
func (p *pipedrive) NeedsRecord() bool { return true }

// LogNeedsRecord is true for the same reason.
func (p *pipedrive) LogNeedsRecord() bool { return true }

// Note writes a note on a person.
func (p *pipedrive) Note(ctx context.Context, _ string, n Note) (WriteResult, error) {
	person, err := strconv.ParseInt(n.ExternalID, 10, 64)
	if err != nil {
		return WriteResult{}, fmt.Errorf("%w: %q is no person", ErrRefused, n.ExternalID)
	}
	content := escapeHTML(n.withAuthor())
	if n.Again {
		var x struct {
			Data []struct {
				ID      int64  `json:"id"`
				Content string `json:"content"`
			} `json:"data"`
		}
		q := url.Values{"person_id": {n.ExternalID}, "sort": {"add_time DESC"}, "limit": {"50"}}
		if err := p.do(ctx, apiRequest{method: http.MethodGet, path: "/api/v1/notes", query: q}, &x); err != nil {
			return WriteResult{}, err
		}
		for _, o := range x.Data {
			if o.Content == content {
				return WriteResult{ExternalID: strconv.FormatInt(o.ID, 10)}, nil
			}
		}
	}
	return p.writeItem(ctx, apiRequest{method: http.MethodPost, path: "/api/v1/notes", body: map[string]any{"content": content,
		"person_id": person}}, "")
}

// writeItem sends a write and returns the id of the item.
func (p *pipedrive) writeItem(ctx context.Context, w apiRequest, id string) (WriteResult, error) {
	var x struct {
		Data struct {
			ID int64 `json:"id"`
		} `json:"data"`
	}
	if err := p.do(ctx, w, &x); err != nil {
		return WriteResult{}, refusedIfMissing(err)
	}
	return WriteResult{ExternalID: firstNonEmpty(id, strconv.FormatInt(x.Data.ID, 10))}, nil
}

// LogCall writes a call as a completed activity, or changes it.
func (p *pipedrive) LogCall(ctx context.Context, _ string, c CallLog) (WriteResult, error) {
	id := c.RecordID
	if id == "" && c.Again {
		var err error
		if id, err = p.findWritten(ctx, c); err != nil {
			return WriteResult{}, err
		}
	}
	at := c.StartedAt.UTC()
	body := map[string]any{"subject": c.title(), "type": "call", "done": true, "due_date": at.Format(time.DateOnly),
		"due_time": at.Format("15:04"),
		"duration": time.Time{}.Add((time.Duration(c.Talk)*time.Second + 59*time.Second).Truncate(time.Minute)).Format("15:04"),
		"note":     escapeHTML(c.text(60<<10) + "\n" + c.ID)}
	if id != "" {
		return p.writeItem(ctx, apiRequest{method: http.MethodPatch, path: "/api/v2/activities/" + url.PathEscape(id), body: body}, id)
	}
	person, err := strconv.ParseInt(c.ExternalID, 10, 64)
	if err != nil {
		return WriteResult{}, fmt.Errorf("%w: %q is no person", ErrRefused, c.ExternalID)
	}
	body["participants"] = []map[string]any{{"person_id": person, "primary": true}}
	return p.writeItem(ctx, apiRequest{method: http.MethodPost, path: "/api/v2/activities", body: body}, "")
}

// findWritten returns the id of the activity of an earlier attempt with a lost answer; "" if there is
// none.
func (p *pipedrive) findWritten(ctx context.Context, c CallLog) (string, error) {
	var x struct {
		Data []struct {
			ID   int64  `json:"id"`
			Note string `json:"note"`
		} `json:"data"`
	}
	q := url.Values{"person_id": {c.ExternalID}, "updated_since": {c.StartedAt.UTC().Format(time.RFC3339)}, "limit": {"100"}}
	if err := p.do(ctx, apiRequest{method: http.MethodGet, path: "/api/v2/activities", query: q}, &x); err != nil {
		return "", err
	}
	for _, o := range x.Data {
		if strings.Contains(o.Note, c.ID) {
			return strconv.FormatInt(o.ID, 10), nil
		}
	}
	return "", nil
}
