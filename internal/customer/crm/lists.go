package crm

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

// ListSettings describe a list of people that is read now and then: a CSV file, or an address book (CardDAV).
type ListSettings struct {
	URL            string            `json:"url" doc:"Of the file or the address book"`
	Auth           *Auth             `json:"auth,omitempty"`
	Headers        map[string]string `json:"headers,omitempty" doc:"Secret"`
	RefreshMinutes int               `json:"refresh_minutes,omitempty" doc:"60 unless given; 1 to 10080"`
}

const (
	defaultRefresh = 60
	listLimit      = 200 << 20 // bytes of a list
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

// A list reads a list of people.
type list struct {
	s      ListSettings
	client *http.Client
}

// Can says that a list is only looked into.
func (l *list) Can() Capabilities { return Capabilities{Lookup: true} }

// Every is how often the list is read.
func (l *list) Every() time.Duration { return l.s.every() }

func (s ListSettings) every() time.Duration {
	if s.RefreshMinutes == 0 {
		return defaultRefresh * time.Minute
	}
	return time.Duration(s.RefreshMinutes) * time.Minute
}

// All reads the list.
func (l *list) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	_, err := l.Follow(ctx, "", Changes{Put: take, Whole: func(context.Context) error { return nil }})
	return err
}

// Follow reads the list where it is another than it was, as far as its server tells (RFC 9110 §8.8).
func (l *list) Follow(ctx context.Context, mark string, into Changes) (string, error) {
	var was validators
	_ = json.Unmarshal([]byte(mark), &was)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, l.s.URL, nil)
	if err != nil {
		return "", err
	}
	was.ask(r)
	answer, err := l.s.do(ctx, l.client, r)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotModified && mark != "" {
		return mark, nil
	}
	if err := verdict(answer); err != nil {
		return "", err
	}
	if err := into.Whole(ctx); err != nil {
		return "", err
	}
	return validatorsOf(answer).mark(), readCSV(answer.Body, func(x contact.Record) error { return into.Put(ctx, x) })
}

// do makes one request with what the settings add to it.
func (s ListSettings) do(ctx context.Context, client *http.Client, r *http.Request) (*http.Response, error) {
	r.Header.Set("User-Agent", "soniq")
	s.Auth.dress(r)
	for name, value := range s.Headers {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, short(ctx, err)
	}
	return answer, nil
}

// validators are what a server tells one state of a file from another by.
type validators struct {
	ETag     string `json:"etag,omitempty"`
	Modified string `json:"modified,omitempty"`
}

func validatorsOf(r *http.Response) validators {
	return validators{ETag: r.Header.Get("ETag"), Modified: r.Header.Get("Last-Modified")}
}

// ask asks for what is new only.
func (v validators) ask(r *http.Request) {
	if v.ETag != "" {
		r.Header.Set("If-None-Match", v.ETag)
	}
	if v.Modified != "" {
		r.Header.Set("If-Modified-Since", v.Modified)
	}
}

func (v validators) mark() string {
	if v == (validators{}) {
		return ""
	}
	text, _ := json.Marshal(v)
	return string(text)
}

func newCSV(s ListSettings, client *http.Client) *list { return &list{s: s, client: client} }

// readCSV gives the lines of a table. One without an id is known by what it says.
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
