package adapter

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
	"soniq/internal/platform/placeholder"
)

// TrytonSettings configure a Tryton server with its module party.
type TrytonSettings struct {
	URL               string `json:"url" doc:"Of the server, such as https://erp.example.com"`
	Database          string `json:"database"`
	Username          string `json:"username"`
	Password          string `json:"password" doc:"Secret"`
	Transcripts       bool   `json:"transcripts,omitempty" doc:"Write the words of calls too, not only their summaries"`
	RecordURL         string `json:"record_url,omitempty" doc:"Where people look at a party, with {{external_id}}; in Tryton's own web client unless given"`
	RequestsPerMinute int    `json:"requests_per_minute,omitempty" doc:"How often the system may be asked; 600 unless given"`
}

func (s *TrytonSettings) check(g *egress.Guard) (wrong []op.Violation) {
	if err := g.Check(s.URL); err != nil {
		wrong = append(wrong, op.Field("settings.url", "invalid_url", err.Error()))
	}
	for name, value := range map[string]string{"database": s.Database, "username": s.Username, "password": s.Password} {
		if value == "" || len(value) > 200 {
			wrong = append(wrong, op.Field("settings."+name, "required", "must have 1 to 200 characters"))
		}
	}
	if strings.ContainsAny(s.Database, "/?#%\\") || s.Database == ".." || s.Database == "." {
		wrong = append(wrong, op.Field("settings.database", "invalid_value", "not the name of a database"))
	}
	wrong = append(wrong, checkRecordURL(s.RecordURL)...)
	if s.RequestsPerMinute < 0 || s.RequestsPerMinute > 60_000 {
		wrong = append(wrong, op.Field("settings.requests_per_minute", "invalid_value", "must be between 1 and 60000"))
	}
	return wrong
}

// tryton is the adapter for a Tryton server, over JSON-RPC.
type tryton struct {
	s       TrytonSettings
	address string // of its database
	client  *http.Client
	session trytonSession
}

func buildTryton(e *Env, raw json.RawMessage, fields map[string]string) (Adapter, []op.Violation) {
	var x TrytonSettings
	if wrong := op.DecodeSettings(raw, &x); wrong != nil {
		return nil, wrong
	}
	wrong := x.check(e.Guard)
	if len(fields) > 0 {
		wrong = append(wrong, op.Field("field_map", "unknown_field", "this provider knows where everything is"))
	}
	u, err := url.Parse(x.URL)
	if err != nil {
		return nil, wrong
	}
	return &tryton{s: x, client: e.Lookups, address: u.JoinPath(url.PathEscape(x.Database)).String() + "/"}, wrong
}

// Can reports all capabilities.
func (t *tryton) Can() Capabilities {
	return Capabilities{Lookup: true, Create: true, Update: true, Notes: true, CallLog: true}
}

// RequestsPerMinute returns the rate that the settings allow.
func (t *tryton) RequestsPerMinute() int { return t.s.RequestsPerMinute }

// trytonMechanism is a contact mechanism of a party: a number, or an e-mail address.
type trytonMechanism struct {
	ID    int    `json:"id"`
	Type  string `json:"type"`
	Value string `json:"value"`
	Party *struct {
		ID   int    `json:"id"`
		Name string `json:"name"`
	} `json:"party."`
}

// Kinds of mechanisms.
var (
	trytonPhones = []string{"phone", "mobile"}
	trytonEmails = []string{"email"}
)

// Lookup searches contact mechanisms. Tryton stores a number as E.164 if it could parse it, otherwise as typed
// without spaces.
func (t *tryton) Lookup(ctx context.Context, q contact.Query) ([]contact.Record, error) {
	where := []any{[]any{"value", "ilike", strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(q.Email)},
		[]any{"type", "in", trytonEmails}}
	if q.Email == "" {
		f := q.Phone
		where = []any{[]any{"value_compact", "in", []string{f.E164, f.Plain, f.Zeros, f.Digits, f.NSN}}, []any{"type", "in", trytonPhones}}
	}
	var found []trytonMechanism
	const most = 50
	err := t.call(ctx, "model.party.contact_mechanism.search_read", &found, where, 0, most, nil, []string{"type", "value", "party.name"})
	if err != nil {
		return nil, err
	}
	return t.records(found), nil
}

// records groups mechanisms into one record per party.
func (t *tryton) records(found []trytonMechanism) (all []contact.Record) {
	for _, m := range found[:min(len(found), 50)] {
		if m.Party == nil || m.Party.ID == 0 {
			continue
		}
		id := strconv.Itoa(m.Party.ID)
		at := slices.IndexFunc(all, func(r contact.Record) bool { return r.ExternalID == id })
		if at < 0 {
			at = len(all)
			all = append(all, contact.Record{ExternalID: id, Name: m.Party.Name, URL: t.recordURL(id)})
		}
		if slices.Contains(trytonEmails, m.Type) {
			all[at].Email = m.Value
		} else {
			all[at].Phones = append(all[at].Phones, m.Value)
		}
	}
	return all
}

func (t *tryton) recordURL(id string) string {
	if t.s.RecordURL != "" {
		return placeholder.Fill(t.s.RecordURL, map[string]string{"external_id": id}, placeholder.EscapeURL)
	}
	return strings.TrimSuffix(t.s.URL, "/") + "/#" + url.PathEscape(t.s.Database) + "/model/party.party/" + id
}

// trytonID parses the id of a record.
func trytonID(id string) (int, error) {
	n, err := strconv.Atoi(id)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("%w: %q is no id of Tryton's", ErrRefused, id)
	}
	return n, nil
}
