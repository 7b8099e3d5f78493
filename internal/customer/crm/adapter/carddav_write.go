package adapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"soniq/internal/customer/contact"
)

// maxMergeAttempts bounds how often a card is read again because another client changed it at the same time.
const maxMergeAttempts = 5

// errConcurrentChange means that the card is not the one that was read (412, RFC 9110 §15.5.13).
var errConcurrentChange = errors.New("the card is changed by another client at the same time")

// Upsert writes a contact without a known base.
func (a *cardDAV) Upsert(ctx context.Context, key, externalID string, c contact.Contact) (WriteResult, error) {
	return a.Merge(ctx, key, externalID, "", c)
}

// Merge writes a contact to its card, or creates one. Changes that others made in the card are kept (RFC 6352
// §6.3.2).
func (a *cardDAV) Merge(ctx context.Context, _, externalID, base string, c contact.Contact) (WriteResult, error) {
	if externalID == "" {
		made, err := a.create(ctx, c)
		if !errors.Is(err, errConcurrentChange) {
			return made, err
		}
		externalID = made.ExternalID // the card exists: the answer to our earlier request was lost
	}
	var was *cardFields
	if base != "" {
		was = &cardFields{}
		if err := json.Unmarshal([]byte(base), was); err != nil {
			was = nil
		}
	}
	for range maxMergeAttempts {
		out, err := a.mergeCard(ctx, externalID, was, c)
		if !errors.Is(err, errConcurrentChange) {
			return out, err
		}
	}
	return WriteResult{}, errConcurrentChange
}

// create creates a card. Its name is the id of the contact, so that a retry finds it again.
func (a *cardDAV) create(ctx context.Context, c contact.Contact) (WriteResult, error) {
	u, err := url.Parse(a.s.URL)
	if err != nil {
		return WriteResult{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	at, says := u.JoinPath(c.ID+".vcf"), cardFieldsOf(c)
	out := WriteResult{ExternalID: at.EscapedPath(), Base: says.baseJSON()}
	return out, a.putCard(ctx, at.String(), newCard(c.ID, says), "If-None-Match", "*")
}

// mergeCard merges a contact into an existing card and writes it if it changed.
func (a *cardDAV) mergeCard(ctx context.Context, id string, base *cardFields, c contact.Contact) (WriteResult, error) {
	at, err := a.cardURL(id)
	if err != nil {
		return WriteResult{}, err
	}
	there, tag, err := a.getCard(ctx, at)
	if errors.Is(err, errNotFound) {
		return WriteResult{}, fmt.Errorf("%w: the card was deleted there", ErrRefused)
	}
	if err != nil {
		return WriteResult{}, err
	}
	says := there.fields()
	merged, conflicts := cardFieldsOf(c).mergeFields(says, base)
	out := WriteResult{ExternalID: id, Base: merged.baseJSON()}
	if len(conflicts) > 0 {
		out.Conflict = "changed on both sides, and left as the address book has it: " + strings.Join(conflicts, ", ")
	}
	if merged.baseJSON() == says.baseJSON() {
		return out, nil
	}
	return out, a.putCard(ctx, at, there.withFields(merged), "If-Match", tag)
}

// cardURL returns the address of a card. It is always on the server of the address book: an id cannot name another
// host.
func (a *cardDAV) cardURL(id string) (string, error) {
	u, err := url.Parse(a.s.URL)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	path, err := url.Parse(id)
	if err != nil || path.Host != "" || !strings.HasPrefix(path.Path, "/") {
		return "", fmt.Errorf("%w: not the path of a card", ErrRefused)
	}
	u.Path, u.RawPath, u.RawQuery = path.Path, path.RawPath, ""
	return u.String(), nil
}

// getCard reads a card and its ETag.
func (a *cardDAV) getCard(ctx context.Context, at string) (card, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrRefused, err)
	}
	answer, err := a.s.do(ctx, a.lookupClient, r)
	if err != nil {
		return nil, "", err
	}
	defer answer.Body.Close()
	if err := statusError(answer); err != nil {
		return nil, "", err
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, "", WithoutURL(ctx, err)
	}
	c := parseCard(string(text))
	if len(c) == 0 || !strings.EqualFold(strings.TrimSpace(c[0]), "BEGIN:VCARD") {
		return nil, "", errors.New("the answer is no card")
	}
	return c, answer.Header.Get("ETag"), nil
}

// putCard writes a card with a precondition. It returns errConcurrentChange if the precondition fails.
func (a *cardDAV) putCard(ctx context.Context, at string, c card, condition, tag string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, at, strings.NewReader(c.encode()))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	r.Header.Set("Content-Type", "text/vcard; charset=utf-8")
	if tag != "" {
		r.Header.Set(condition, tag)
	}
	answer, err := a.s.do(ctx, a.lookupClient, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode == http.StatusPreconditionFailed {
		return errConcurrentChange
	}
	if err := statusError(answer); errors.Is(err, errNotFound) {
		return fmt.Errorf("%w: there is no such address book", ErrRefused)
	} else if err != nil {
		return err
	}
	return nil
}
