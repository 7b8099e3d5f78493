package adapter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"soniq/internal/customer/contact"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// ListSettings configure a list of people that is read periodically over HTTP: a CSV file, or an address book
// (CardDAV).
type ListSettings struct {
	URL            string            `json:"url" doc:"Of the file or the address book"`
	Auth           *Auth             `json:"auth,omitempty"`
	Headers        map[string]string `json:"headers,omitempty" doc:"Secret"`
	RefreshMinutes int               `json:"refresh_minutes,omitempty" doc:"60 unless given; 1 to 10080"`
}

const (
	defaultRefreshMinutes = 60
	maxListBytes          = 200 << 20 // bytes of a list
)

func (s *ListSettings) check(g *egress.Guard) (wrong []op.Violation) {
	if err := g.Check(s.URL); err != nil {
		wrong = append(wrong, op.Field("settings.url", "invalid_url", err.Error()))
	}
	if s.RefreshMinutes < 0 || s.RefreshMinutes > 10080 {
		wrong = append(wrong, op.Field("settings.refresh_minutes", "invalid_value", "must be between 1 and 10080"))
	}
	return append(append(wrong, checkHeaders(s.Headers)...), s.Auth.check()...)
}

// csvList is the adapter for a CSV file.
type csvList struct {
	s      ListSettings
	client *http.Client
}

// Can reports that a list supports lookups only.
func (l *csvList) Can() Capabilities { return Capabilities{Lookup: true} }

// RefreshInterval returns the time between two reads of the list.
func (l *csvList) RefreshInterval() time.Duration { return l.s.refreshInterval() }

func (s ListSettings) refreshInterval() time.Duration {
	if s.RefreshMinutes == 0 {
		return defaultRefreshMinutes * time.Minute
	}
	return time.Duration(s.RefreshMinutes) * time.Minute
}

// All passes every record of the list to take.
func (l *csvList) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	_, err := l.SyncSince(ctx, "", recordSink(take))
	return err
}

// SyncSince reads the whole list, unless the server reports that it is unchanged (conditional request, RFC 9110
// §8.8).
func (l *csvList) SyncSince(ctx context.Context, mark string, into ChangeSink) (string, error) {
	var was httpValidators
	_ = json.Unmarshal([]byte(mark), &was)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.s.URL, nil)
	if err != nil {
		return "", err
	}
	was.setConditions(r)
	answer, err := l.s.do(ctx, l.client, r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotModified && mark != "" {
		return mark, nil
	}
	if err := statusError(answer); err != nil {
		return "", err
	}
	if err := into.BeginFull(ctx); err != nil {
		return "", err
	}
	return validatorsOf(answer).encode(), readCSV(answer.Body, func(x contact.Record) error { return into.Put(ctx, x) })
}

// do sends one request with the credentials and headers of the settings.
func (s ListSettings) do(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "soniq")
	s.Auth.setHeader(r)
	for name, value := range s.Headers {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, WithoutURL(ctx, err)
	}
	return answer, nil
}

// httpValidators identify a version of a file on its server.
type httpValidators struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

func validatorsOf(r *http.Response) httpValidators {
	return httpValidators{ETag: r.Header.Get("ETag"), Modified: r.Header.Get("Last-Modified")}
}

// setConditions makes a request conditional on a change.
func (v httpValidators) setConditions(r *http.Request) {
	if v.ETag != "" {
		r.Header.Set("If-None-Match", v.ETag)
	}
	if v.Modified != "" {
		r.Header.Set("If-Modified-Since", v.Modified)
	}
}

func (v httpValidators) encode() string {
	if v == (httpValidators{}) {
		return ""
	}
	text, _ := json.Marshal(v)
	return string(text)
}

func newCSV(s ListSettings, client *http.Client) *csvList { return &csvList{s: s, client: client} }

// readCSV passes the rows of a table to take. A row without an id gets a hash of its content as its id.
func readCSV(body io.Reader, take func(contact.Record) error) error {
	next, err := contact.NewTable(body)
	if err != nil {
		return err
	}
	for {
		r, _, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.ExternalID == "" {
			sum := sha256.Sum256([]byte(r.Name + "\n" + r.Company + "\n" + r.Email + "\n" + strings.Join(r.Phones, "\n")))
			r.ExternalID = hex.EncodeToString(sum[:12])
		}
		if err := take(r); err != nil {
			return err
		}
	}
}
