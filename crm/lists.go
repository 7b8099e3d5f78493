package crm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"soniq/contact"
	"soniq/egress"
	"soniq/op"
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
	read   func(body io.Reader, take func(contact.Record) error) error
	method string
	body   string
	depth  bool
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
	r, err := http.NewRequestWithContext(ctx, l.method, l.s.URL, strings.NewReader(l.body))
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", "soniq")
	if l.depth { // RFC 6352 §8.6
		r.Header.Set("Depth", "1")
		r.Header.Set("Content-Type", "application/xml; charset=utf-8")
	}
	l.s.Auth.dress(r)
	for name, value := range l.s.Headers {
		r.Header.Set(name, value)
	}
	answer, err := l.client.Do(r)
	if err != nil {
		return short(ctx, err)
	}
	defer answer.Body.Close()
	if err := verdict(answer); err != nil {
		return err
	}
	return l.read(answer.Body, func(x contact.Record) error { return take(ctx, x) })
}

func newCSV(s ListSettings, client *http.Client) *list {
	return &list{s: s, client: client, read: readCSV, method: http.MethodGet}
}

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

// everything asks an address book for all its cards (RFC 6352 §8.6).
const everything = `<?xml version="1.0" encoding="utf-8"?><C:addressbook-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">` +
	`<D:prop><D:getetag/><C:address-data/></D:prop><C:filter><C:prop-filter name="FN"/></C:filter></C:addressbook-query>`

func newCardDAV(s ListSettings, client *http.Client) *list {
	return &list{s: s, client: client, read: readCards, method: "REPORT", body: everything, depth: true}
}

// A card is one answer in a multi-status.
type card struct {
	Href string `xml:"href"`
	Data string `xml:"propstat>prop>address-data"`
}

// readCards gives the cards of a multi-status (RFC 4918 §13), one after the other.
func readCards(body io.Reader, take func(contact.Record) error) error {
	d := xml.NewDecoder(body)
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the answer is no address book: %w", err)
		}
		start, ok := t.(xml.StartElement)
		if !ok || start.Name.Local != "response" {
			continue
		}
		var c card
		if err := d.DecodeElement(&c, &start); err != nil {
			return fmt.Errorf("the answer is no address book: %w", err)
		}
		r, ok := contact.ReadCard(c.Data)
		if !ok {
			continue
		}
		r.ExternalID = c.Href
		if err := take(r); err != nil {
			return err
		}
	}
}
