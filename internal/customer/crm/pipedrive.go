package crm

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
var label = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9-]{0,62}$`)

func (s PipedriveSettings) deal() (deal, []op.Violation) {
	at := or(s.LoginURL, "https://oauth.pipedrive.com")
	d := deal{app: s.App, base: "https://api.pipedrive.com", pace: []pace{{time.Second / 10, 20, ""}, {time.Second / 5, 10, "search"}},
		door: door{authorize: at + "/oauth/authorize", token: at + "/oauth/token", revoke: at + "/oauth/revoke", style: oauth2.AuthStyleInHeader},
		learn: func(g *grant, t *oauth2.Token, _ url.Values) error {
			base, _ := t.Extra("api_domain").(string)
			g.Base = or(base, g.Base)
			return nil
		},
		verdict: func(status int, h http.Header, _ []byte) error {
			if status != http.StatusTooManyRequests {
				return nil
			}
			return &Busy{After: retryAfter(or(h.Get("Retry-After"), h.Get("x-ratelimit-reset")))}
		},
		adapter: func(a *api) Adapter { return &pipedrive{a} }}
	if s.APIToken == "" {
		return d, nil
	}
	d.fixed = &key{header: "x-api-token", value: s.APIToken, token: s.APIToken, base: or(s.APIURL, "https://"+s.CompanyDomain+".pipedrive.com")}
	if s.APIURL == "" && !label.MatchString(s.CompanyDomain) {
		return d, []op.Violation{op.Field("settings.company_domain", "required", "give the name before .pipedrive.com")}
	}
	return d, nil
}

// pipedrive is the adapter for Pipedrive's API v2, and v1 for notes.
type pipedrive struct{ *api }

// Can reports the capabilities that all vendors have.
func (p *pipedrive) Can() Capabilities { return vendorCan }

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
	if err := p.do(ctx, want{method: http.MethodGet, path: "/api/v2/persons/search", query: ask, search: true}, &x); err != nil {
		return nil, err
	}
	var found []contact.Record
	for _, i := range x.Data.Items {
		r := contact.Record{ExternalID: strconv.FormatInt(i.Item.ID, 10), Name: i.Item.Name, Company: i.Item.Organization.Name, Phones: i.Item.Phones}
		if r.URL = p.address(ctx, r.ExternalID); len(i.Item.Emails) > 0 {
			r.Email = i.Item.Emails[0]
		}
		if j := slices.IndexFunc(i.Item.Emails, func(e string) bool { return strings.EqualFold(e, q.Email) }); j >= 0 {
			r.Email = i.Item.Emails[j]
		}
		found = append(found, r)
	}
	return found, nil
}

func (p *pipedrive) address(ctx context.Context, id string) string {
	k, err := p.keys.key(ctx, "")
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
func (p *pipedrive) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (Written, error) {
	if externalID == "" {
		id, err := p.known(ctx, p, c)
		if err != nil {
			return Written{}, err
		}
		externalID = id
	}
	var there pipedrivePerson
	w := want{method: http.MethodPost, path: "/api/v2/persons"}
	if externalID != "" {
		w.path += "/" + url.PathEscape(externalID)
		if err := p.do(ctx, want{method: http.MethodGet, path: w.path}, &there); err != nil {
			return Written{}, unknownRecord(err)
		}
		w.method = http.MethodPatch
	}
	phones, emails := there.Data.Phones, there.Data.Emails
	for _, x := range c.Phones {
		phones = pipedriveWith(phones, x.Number, or(x.Label, "work"), func(a, b string) bool { return digits(a) == digits(b) })
	}
	for _, x := range c.Emails {
		emails = pipedriveWith(emails, x.Value, or(x.Label, "work"), strings.EqualFold)
	}
	w.body = map[string]any{"name": c.Name, "phones": phones, "emails": emails}
	var made pipedrivePerson
	if err := p.do(ctx, w, &made); err != nil {
		return Written{}, err
	}
	id := or(externalID, strconv.FormatInt(made.Data.ID, 10))
	return Written{ExternalID: id, URL: p.address(ctx, id)}, nil
}

// refusedIfMissing turns errNotFound of a write into ErrRefused: a write to a deleted record is not retried.
func unknownRecord(err error) error {
	if errors.Is(err, errNothing) {
		return fmt.Errorf("%w: it has no such record any more", ErrRefused)
	}
	return err
}

func digits(text string) string {
	return strings.Map(func(r rune) rune {
		if r < '0' || r > '9' {
			return -1
		}
		return r
	}, text)
}

// addPipedriveValue adds a value that is not in the list yet.
func pipedriveWith(all []pipedriveValue, value, name string, same func(a, b string) bool) []pipedriveValue {
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
func (p *pipedrive) Note(ctx context.Context, _ string, n Note) (Written, error) {
	person, err := strconv.ParseInt(n.ExternalID, 10, 64)
	if err != nil {
		return Written{}, fmt.Errorf("%w: %q is no person", ErrRefused, n.ExternalID)
	}
	content := inHTML(n.byline())
	if n.Again {
		var x struct {
			Data []struct {
				ID      int64  `json:"id"`
				Content string `json:"content"`
			} `json:"data"`
		}
		q := url.Values{"person_id": {n.ExternalID}, "sort": {"add_time DESC"}, "limit": {"50"}}
		if err := p.do(ctx, want{method: http.MethodGet, path: "/api/v1/notes", query: q}, &x); err != nil {
			return Written{}, err
		}
		for _, o := range x.Data {
			if o.Content == content {
				return Written{ExternalID: strconv.FormatInt(o.ID, 10)}, nil
			}
		}
	}
	return p.made(ctx, want{method: http.MethodPost, path: "/api/v1/notes", body: map[string]any{"content": content, "person_id": person}}, "")
}

// writeItem sends a write and returns the id of the item.
func (p *pipedrive) made(ctx context.Context, w want, id string) (Written, error) {
	var x struct {
		Data struct {
			ID int64 `json:"id"`
		} `json:"data"`
	}
	if err := p.do(ctx, w, &x); err != nil {
		return Written{}, unknownRecord(err)
	}
	return Written{ExternalID: or(id, strconv.FormatInt(x.Data.ID, 10))}, nil
}

// LogCall writes a call as a completed activity, or changes it.
func (p *pipedrive) LogCall(ctx context.Context, _ string, c CallLog) (Written, error) {
	id := c.RecordID
	if id == "" && c.Again {
		var err error
		if id, err = p.before(ctx, c); err != nil {
			return Written{}, err
		}
	}
	at := c.StartedAt.UTC()
	body := map[string]any{"subject": c.title(), "type": "call", "done": true, "due_date": at.Format(time.DateOnly), "due_time": at.Format("15:04"),
		"duration": time.Time{}.Add((time.Duration(c.Talk)*time.Second + 59*time.Second).Truncate(time.Minute)).Format("15:04"),
		"note":     inHTML(c.text(60<<10) + "\n" + c.ID)}
	if id != "" {
		return p.made(ctx, want{method: http.MethodPatch, path: "/api/v2/activities/" + url.PathEscape(id), body: body}, id)
	}
	person, err := strconv.ParseInt(c.ExternalID, 10, 64)
	if err != nil {
		return Written{}, fmt.Errorf("%w: %q is no person", ErrRefused, c.ExternalID)
	}
	body["participants"] = []map[string]any{{"person_id": person, "primary": true}}
	return p.made(ctx, want{method: http.MethodPost, path: "/api/v2/activities", body: body}, "")
}

// findWritten returns the id of the activity of an earlier attempt with a lost answer; "" if there is
// none.
func (p *pipedrive) before(ctx context.Context, c CallLog) (string, error) {
	var x struct {
		Data []struct {
			ID   int64  `json:"id"`
			Note string `json:"note"`
		} `json:"data"`
	}
	q := url.Values{"person_id": {c.ExternalID}, "updated_since": {c.StartedAt.UTC().Format(time.RFC3339)}, "limit": {"100"}}
	if err := p.do(ctx, want{method: http.MethodGet, path: "/api/v2/activities", query: q}, &x); err != nil {
		return "", err
	}
	for _, o := range x.Data {
		if strings.Contains(o.Note, c.ID) {
			return strconv.FormatInt(o.ID, 10), nil
		}
	}
	return "", nil
}
