package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/placeholder"
)

// Upsert writes a contact with the template upsert, or with update if the system has the contact already and that
// template exists.
func (a *httpAdapter) Upsert(ctx context.Context, key, externalID string, c contact.Contact) (WriteResult, error) {
	w := a.s.Upsert
	if externalID != "" && a.s.Update != nil || w == nil {
		w = a.s.Update
	}
	values := map[string]string{"external_id": externalID, "contact_id": c.ID, "name": c.Name, "first_name": c.FirstName,
		"last_name": c.LastName, "company": c.Company, "title": c.Title, "tags": strings.Join(c.Tags, ",")}
	if len(c.Phones) > 0 {
		values["phone"] = c.Phones[slices.IndexFunc(c.Phones, func(p contact.Phone) bool { return p.Primary })].Number
	}
	if len(c.Emails) > 0 {
		values["email"] = c.Emails[slices.IndexFunc(c.Emails, func(e contact.Email) bool { return e.Primary })].Value
	}
	out, err := a.write(ctx, *w, key, values)
	if err == nil && out.ExternalID == "" {
		out.ExternalID = externalID
	}
	return out, err
}

// NeedsRecord reports whether the template of notes contains the external id.
func (a *httpAdapter) NeedsRecord() bool { return a.s.Note.hasPlaceholder("external_id") }

// LogNeedsRecord reports whether the template of calls contains the external id.
func (a *httpAdapter) LogNeedsRecord() bool { return a.s.CallLog.hasPlaceholder("external_id") }

func (w *WriteTemplate) hasPlaceholder(name string) bool {
	return slices.Contains(append(placeholder.Names(w.URL), placeholder.Names(w.Body)...), name)
}

// Note writes a note with its template.
func (a *httpAdapter) Note(ctx context.Context, key string, n Note) (WriteResult, error) {
	values := n.placeholderValues()
	values["note"], values["note_id"], values["author"], values["call_id"], values["created_at"] = n.Text, n.ID, n.Author, n.CallID,
		n.At.String()
	return a.write(ctx, *a.s.Note, key, values)
}

// LogsOnce reports whether the template that changes a call is missing.
func (a *httpAdapter) LogsOnce() bool { return a.s.CallUpdate == nil }

// LogCall writes a finished call with its template, or changes one with the template call_update.
func (a *httpAdapter) LogCall(ctx context.Context, key string, c CallLog) (WriteResult, error) {
	values := c.placeholderValues()
	for name, value := range map[string]string{"call_id": c.ID, "direction": c.Direction, "status": c.Status, "from": c.From, "to": c.To,
		"started_at": c.StartedAt.String(), "ended_at": c.EndedAt.String(), "duration_seconds": strconv.Itoa(c.Duration),
		"talk_seconds": strconv.Itoa(c.Talk), "summary": c.Summary, "agent": c.Agent, "disposition": c.Disposition,
		"recording_url": c.RecordingURL, "transcript": c.Transcript, "record_id": c.RecordID} {
		values[name] = value
	}
	if c.RecordID != "" {
		return a.write(ctx, *a.s.CallUpdate, key, values)
	}
	return a.write(ctx, *a.s.CallLog, key, values)
}

func (w Person) placeholderValues() map[string]string {
	return map[string]string{"external_id": w.ExternalID, "contact_id": w.ContactID, "name": w.Name, "company": w.Company, "phone": w.Phone,
		"email": w.Email}
}

func (a *httpAdapter) write(ctx context.Context, w WriteTemplate, key string, values map[string]string) (WriteResult, error) {
	method, at := w.Method, w.ID
	if method == "" {
		method = http.MethodPost
	}
	if at == "" {
		at = defaultID
	}
	doc, err := a.do(ctx, method, w.URL, w.Body, values, key)
	switch {
	case errors.Is(err, errEmptyAnswer):
		return WriteResult{}, nil
	case errors.Is(err, errNotFound):
		return WriteResult{}, fmt.Errorf("%w: it answered 404", ErrRefused)
	case err != nil:
		return WriteResult{}, err
	}
	out := WriteResult{ExternalID: a.paths[at].Text(doc)}
	if a.s.RecordURL != "" && out.ExternalID != "" {
		out.URL = placeholder.Fill(a.s.RecordURL, map[string]string{"external_id": out.ExternalID}, placeholder.EscapeURL)
	}
	return out, nil
}
