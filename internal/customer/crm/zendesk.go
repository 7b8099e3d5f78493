package crm

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/op"
)

// ZendeskSettings configure Zendesk Support.
type ZendeskSettings struct {
	App
	Subdomain string `json:"subdomain" doc:"acme, where the account is at acme.zendesk.com"`
	Email     string `json:"email,omitempty" doc:"Of the agent whose api_token it is"`
	APIToken  string `json:"api_token,omitempty" doc:"In place of an agreement; secret"`
}

func (s ZendeskSettings) deal() (deal, []op.Violation) {
	home := "https://" + s.Subdomain + ".zendesk.com"
	at := or(s.LoginURL, home)
	d := deal{app: s.App, base: home, pace: []pace{{300 * time.Millisecond, 20, ""}},
		door:    door{authorize: at + "/oauth/authorizations/new", token: at + "/oauth/tokens", scopes: []string{"read", "write"}, style: oauth2.AuthStyleInParams, pkce: true},
		adapter: func(a *api) Adapter { return &zendesk{a} }}
	var wrong []op.Violation
	if !label.MatchString(s.Subdomain) {
		wrong = append(wrong, op.Field("settings.subdomain", "required", "give the name before .zendesk.com"))
	}
	if (s.Email == "") != (s.APIToken == "") {
		wrong = append(wrong, op.Field("settings.api_token", "required", "email and api_token belong together"))
	}
	if s.APIToken != "" {
		d.fixed = &key{header: "Authorization", value: "Basic " + base64.StdEncoding.EncodeToString([]byte(s.Email+"/token:"+s.APIToken)), token: s.APIToken,
			base: or(s.APIURL, home)}
	}
	return d, wrong
}

// zendesk is the adapter for Zendesk's Support API. Calls and notes are tickets.
type zendesk struct{ *api }

// Can reports the capabilities that all vendors have.
func (z *zendesk) Can() Capabilities { return vendorCan }

type zendeskUser struct {
	ID      int64     `json:"id"`
	Name    string    `json:"name"`
	Email   string    `json:"email"`
	Phone   string    `json:"phone"`
	OrgID   int64     `json:"organization_id"`
	Updated time.Time `json:"updated_at"`
}

// Lookup searches users by the E.164 number, then by its national part, or by an e-mail address.
func (z *zendesk) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	terms := []string{`phone:"` + q.Phone.E164 + `"`, `phone:*` + q.Phone.NSN}
	if q.Email != "" {
		terms = []string{`email:"` + strings.ReplaceAll(q.Email, `"`, "") + `"`}
	}
	for _, t := range terms {
		found, err := z.find(ctx, t)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func (z *zendesk) find(ctx context.Context, query string) ([]contact.Record, error) {
	var x struct {
		Users         []zendeskUser `json:"users"`
		Organizations []struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		} `json:"organizations"`
	}
	q := url.Values{"query": {query}, "include": {"organizations"}, "per_page": {"20"}}
	if err := z.do(ctx, want{method: http.MethodGet, path: "/api/v2/users/search.json", query: q, search: true}, &x); err != nil {
		return nil, err
	}
	firms := map[int64]string{}
	for _, o := range x.Organizations {
		firms[o.ID] = o.Name
	}
	return mapped(x.Users, func(u zendeskUser) contact.Record {
		r := contact.Record{ExternalID: strconv.FormatInt(u.ID, 10), Name: u.Name, Email: u.Email, Company: firms[u.OrgID], UpdatedAt: u.Updated}
		if u.Phone != "" {
			r.Phones = []string{u.Phone}
		}
		r.URL = z.address(ctx, "users", r.ExternalID)
		return r
	}), nil
}

func (z *zendesk) address(ctx context.Context, kind, id string) string {
	k, err := z.keys.key(ctx, "")
	if err != nil {
		return ""
	}
	return k.base + "/agent/" + kind + "/" + url.PathEscape(id)
}

// Upsert writes a user. Zendesk itself recognises an existing user by the e-mail address, or by our id of the
// contact.
func (z *zendesk) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (Written, error) {
	p, user := personOf(c), map[string]any{"name": c.Name}
	if set(user, "phone", or(p.phone, p.mobile)); externalID == "" {
		id, err := z.known(ctx, z, c)
		if err != nil {
			return Written{}, err
		}
		externalID = id
	}
	w := want{method: http.MethodPut, path: "/api/v2/users/" + url.PathEscape(externalID) + ".json"}
	if externalID == "" {
		w = want{method: http.MethodPost, path: "/api/v2/users/create_or_update.json"}
		user["external_id"], user["role"], user["skip_verify_email"] = c.ID, "end-user", true
		set(user, "email", p.email)
	}
	w.body = map[string]any{"user": user}
	var made struct {
		User zendeskUser `json:"user"`
	}
	if err := z.do(ctx, w, &made); err != nil {
		return Written{}, unknownRecord(err)
	}
	id := or(externalID, strconv.FormatInt(made.User.ID, 10))
	return Written{ExternalID: id, URL: z.address(ctx, "users", id)}, nil
}

// NeedsRecord is true: a ticket has a requester.
func (z *zendesk) NeedsRecord() bool { return true }

// LogNeedsRecord is true for the same reason.
func (z *zendesk) LogNeedsRecord() bool { return true }

// Note writes a private comment: to the ticket of the note's call, or to a new ticket if there is none.
func (z *zendesk) Note(ctx context.Context, key string, n Note) (Written, error) {
	if n.CallID != "" {
		id, err := z.ticket(ctx, n.CallID)
		if err != nil {
			return Written{}, err
		}
		if id != "" {
			return z.put(ctx, key, id, map[string]any{"comment": private(n.byline())})
		}
	}
	if n.Again {
		if id, err := z.ticket(ctx, n.ID); err != nil || id != "" {
			return Written{ExternalID: id}, err
		}
	}
	return z.open(ctx, key, n.Whom, "Note", n.byline(), n.ID)
}

func private(text string) map[string]any {
	return map[string]any{"body": cut(text, 60000), "public": false}
}

// findTicket returns the id of the ticket with our id; "" if there is none.
func (z *zendesk) ticket(ctx context.Context, ours string) (string, error) {
	var x struct {
		Tickets []struct {
			ID int64 `json:"id"`
		} `json:"tickets"`
	}
	err := z.do(ctx, want{method: http.MethodGet, path: "/api/v2/tickets.json", query: url.Values{"external_id": {ours}}}, &x)
	if err != nil || len(x.Tickets) == 0 {
		return "", err
	}
	return strconv.FormatInt(x.Tickets[0].ID, 10), nil
}

// createTicket creates a ticket. Requests with the same key create one ticket.
func (z *zendesk) open(ctx context.Context, key string, w Whom, subject, text, ours string) (Written, error) {
	requester, err := strconv.ParseInt(w.ExternalID, 10, 64)
	if err != nil {
		return Written{}, fmt.Errorf("%w: %q is no user", ErrRefused, w.ExternalID)
	}
	return z.put(ctx, key, "", map[string]any{"requester_id": requester, "subject": cut(subject, 150), "external_id": ours, "comment": private(text),
		"tags": []string{"telephone"}})
}

func (z *zendesk) put(ctx context.Context, key, id string, ticket map[string]any) (Written, error) {
	w := want{method: http.MethodPost, path: "/api/v2/tickets.json", body: map[string]any{"ticket": ticket}, header: map[string]string{"Idempotency-Key": key}}
	if id != "" {
		w.method, w.path, w.header = http.MethodPut, "/api/v2/tickets/"+url.PathEscape(id)+".json", nil
	}
	var made struct {
		Ticket struct {
			ID int64 `json:"id"`
		} `json:"ticket"`
	}
	if err := z.do(ctx, w, &made); err != nil {
		return Written{}, unknownRecord(err)
	}
	out := Written{ExternalID: or(id, strconv.FormatInt(made.Ticket.ID, 10))}
	out.URL = z.address(ctx, "tickets", out.ExternalID)
	return out, nil
}

// LogCall creates a ticket for a call. A later change is added as a private comment, because comments cannot be
// changed.
func (z *zendesk) LogCall(ctx context.Context, key string, c CallLog) (Written, error) {
	id := c.RecordID
	if id == "" && c.Again {
		var err error
		if id, err = z.ticket(ctx, c.ID); err != nil {
			return Written{}, err
		}
	}
	if id == "" {
		return z.open(ctx, key, c.Whom, c.title(), c.text(60000), c.ID)
	}
	return z.put(ctx, key, id, map[string]any{"comment": private(c.text(60000))})
}
