package adapter

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

func (s ZendeskSettings) vendorConnection() (VendorConnection, []op.Violation) {
	home := "https://" + s.Subdomain + ".zendesk.com"
	at := firstNonEmpty(s.LoginURL, home)
	d := VendorConnection{app: s.App, base: home, rateLimits: []rateLimit{{300 * time.Millisecond, 20, ""}},
		endpoints: oauthEndpoints{authorize: at + "/oauth/authorizations/new", token: at + "/oauth/tokens",
			scopes: []string{"read", "write"}, style: oauth2.AuthStyleInParams, pkce: true},
		newAdapter: func(a *vendorClient) Adapter { return &zendesk{a} }}
	var wrong []op.Violation
	if !subdomainPattern.MatchString(s.Subdomain) {
		wrong = append(wrong, op.Field("settings.subdomain", "required", "give the name before .zendesk.com"))
	}
	if (s.Email == "") != (s.APIToken == "") {
		wrong = append(wrong, op.Field("settings.api_token", "required", "email and api_token belong together"))
	}
	if s.APIToken != "" {
		d.static = &Credentials{header: "Authorization",
			value: "Basic " + base64.StdEncoding.EncodeToString([]byte(s.Email+"/token:"+s.APIToken)), token: s.APIToken,
			base: firstNonEmpty(s.APIURL, home)}
	}
	return d, wrong
}

// zendesk is the adapter for Zendesk's Support API. Calls and notes are tickets.
type zendesk struct{ *vendorClient }

// Can reports the capabilities that all vendors have.
func (z *zendesk) Can() Capabilities { return vendorCapabilities }

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
		found, err := z.search(ctx, t)
		if err != nil || len(found) > 0 {
			return found, err
		}
	}
	return nil, nil
}

func (z *zendesk) search(ctx context.Context, query string) ([]contact.Record, error) {
	var x struct {
		Users         []zendeskUser `json:"users"`
		Organizations []struct {
			ID   int64  `json:"id"`
			Name string `json:"name"`
		} `json:"organizations"`
	}
	q := url.Values{"query": {query}, "include": {"organizations"}, "per_page": {"20"}}
	if err := z.do(ctx, apiRequest{method: http.MethodGet, path: "/api/v2/users/search.json", query: q, search: true}, &x); err != nil {
		return nil, err
	}
	firms := map[int64]string{}
	for _, o := range x.Organizations {
		firms[o.ID] = o.Name
	}
	return mapSlice(x.Users, func(u zendeskUser) contact.Record {
		r := contact.Record{ExternalID: strconv.FormatInt(u.ID, 10), Name: u.Name, Email: u.Email, Company: firms[u.OrgID],
			UpdatedAt: u.Updated}
		if u.Phone != "" {
			r.Phones = []string{u.Phone}
		}
		r.URL = z.recordURL(ctx, "users", r.ExternalID)
		return r
	}), nil
}

func (z *zendesk) recordURL(ctx context.Context, kind, id string) string {
	k, err := z.credentialSource.Credentials(ctx, "")
	if err != nil {
		return ""
	}
	return k.base + "/agent/" + kind + "/" + url.PathEscape(id)
}

// Upsert writes a user. Zendesk itself recognises an existing user by the e-mail address, or by our id of the
// contact.
func (z *zendesk) Upsert(ctx context.Context, _, externalID string, c contact.Contact) (WriteResult, error) {
	p, user := contactFieldsOf(c), map[string]any{"name": c.Name}
	if setNonEmpty(user, "phone", firstNonEmpty(p.phone, p.mobile)); externalID == "" {
		id, err := z.findExisting(ctx, z, c)
		if err != nil {
			return WriteResult{}, err
		}
		externalID = id
	}
	w := apiRequest{method: http.MethodPut, path: "/api/v2/users/" + url.PathEscape(externalID) + ".json"}
	if externalID == "" {
		w = apiRequest{method: http.MethodPost, path: "/api/v2/users/create_or_update.json"}
		user["external_id"], user["role"], user["skip_verify_email"] = c.ID, "end-user", true
		setNonEmpty(user, "email", p.email)
	}
	w.body = map[string]any{"user": user}
	var made struct {
		User zendeskUser `json:"user"`
	}
	if err := z.do(ctx, w, &made); err != nil {
		return WriteResult{}, refusedIfMissing(err)
	}
	id := firstNonEmpty(externalID, strconv.FormatInt(made.User.ID, 10))
	return WriteResult{ExternalID: id, URL: z.recordURL(ctx, "users", id)}, nil
}

// NeedsRecord is true: a ticket has a requester.
func (z *zendesk) NeedsRecord() bool { return true }

// LogNeedsRecord is true for the same reason.
func (z *zendesk) LogNeedsRecord() bool { return true }

// Note writes a private comment: to the ticket of the note's call, or to a new ticket if there is none.
func (z *zendesk) Note(ctx context.Context, key string, n Note) (WriteResult, error) {
	if n.CallID != "" {
		id, err := z.findTicket(ctx, n.CallID)
		if err != nil {
			return WriteResult{}, err
		}
		if id != "" {
			return z.putTicket(ctx, key, id, map[string]any{"comment": privateComment(n.withAuthor())})
		}
	}
	if n.Again {
		if id, err := z.findTicket(ctx, n.ID); err != nil || id != "" {
			return WriteResult{ExternalID: id}, err
		}
	}
	return z.createTicket(ctx, key, n.Person, "Note", n.withAuthor(), n.ID)
}

func privateComment(text string) map[string]any {
	return map[string]any{"body": truncate(text, 60000), "public": false}
}

// findTicket returns the id of the ticket with our id; "" if there is none.
func (z *zendesk) findTicket(ctx context.Context, ours string) (string, error) {
	var x struct {
		Tickets []struct {
			ID int64 `json:"id"`
		} `json:"tickets"`
	}
	err := z.do(ctx, apiRequest{method: http.MethodGet, path: "/api/v2/tickets.json", query: url.Values{"external_id": {ours}}}, &x)
	if err != nil || len(x.Tickets) == 0 {
		return "", err
	}
	return strconv.FormatInt(x.Tickets[0].ID, 10), nil
}

// createTicket creates a ticket. Requests with the same key create one ticket.
func (z *zendesk) createTicket(ctx context.Context, key string, w Person, subject, text, ours string) (WriteResult, error) {
	requester, err := strconv.ParseInt(w.ExternalID, 10, 64)
	if err != nil {
		return WriteResult{}, fmt.Errorf("%w: %q is no user", ErrRefused, w.ExternalID)
	}
	return z.putTicket(ctx, key, "", map[string]any{"requester_id": requester, "subject": truncate(subject, 150), "external_id": ours,
		"comment": privateComment(text), "tags": []string{"telephone"}})
}

func (z *zendesk) putTicket(ctx context.Context, key, id string, ticket map[string]any) (WriteResult, error) {
	w := apiRequest{method: http.MethodPost, path: "/api/v2/tickets.json", body: map[string]any{"ticket": ticket},
		header: map[string]string{"Idempotency-Key": key}}
	if id != "" {
		w.method, w.path, w.header = http.MethodPut, "/api/v2/tickets/"+url.PathEscape(id)+".json", nil
	}
	var made struct {
		Ticket struct {
			ID int64 `json:"id"`
		} `json:"ticket"`
	}
	if err := z.do(ctx, w, &made); err != nil {
		return WriteResult{}, refusedIfMissing(err)
	}
	out := WriteResult{ExternalID: firstNonEmpty(id, strconv.FormatInt(made.Ticket.ID, 10))}
	out.URL = z.recordURL(ctx, "tickets", out.ExternalID)
	return out, nil
}

// LogCall creates a ticket for a call. A later change is added as a private comment, because comments cannot be
// changed.
func (z *zendesk) LogCall(ctx context.Context, key string, c CallLog) (WriteResult, error) {
	id := c.RecordID
	if id == "" && c.Again {
		var err error
		if id, err = z.findTicket(ctx, c.ID); err != nil {
			return WriteResult{}, err
		}
	}
	if id == "" {
		return z.createTicket(ctx, key, c.Person, c.title(), c.text(60000), c.ID)
	}
	return z.putTicket(ctx, key, id, map[string]any{"comment": privateComment(c.text(60000))})
}
