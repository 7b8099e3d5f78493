package crm

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"soniq/internal/customer/contact"
)

// CardDAVSettings configure an address book (RFC 6352).
type CardDAVSettings struct {
	ListSettings
	Write bool `json:"write,omitempty" doc:"Contacts are written to the address book too"`
}

// cardDAV is the adapter for an address book. Changes are read with sync tokens (RFC 6578). Without tokens the book
// is read in full, unless its ctag is unchanged.
type cardDAV struct {
	s             CardDAVSettings
	lists, asking *http.Client
}

// Can reports lookups in the copy, and writes if the settings allow them.
func (a *cardDAV) Can() Capabilities {
	return Capabilities{Lookup: true, Create: a.s.Write, Update: a.s.Write}
}

// RefreshInterval returns the time between two requests for changes.
func (a *cardDAV) Every() time.Duration { return a.s.every() }

// All reads the whole address book.
func (a *cardDAV) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	return a.whole(ctx, Changes{Put: take, Whole: func(context.Context) error { return nil }})
}

// syncState is the position for the next incremental read: a sync token, or a ctag if the server has no tokens.
type bookmark struct {
	Token string `json:"token,omitempty"`
	Tag   string `json:"tag,omitempty"`
}

func (b bookmark) text() string {
	if b == (bookmark{}) {
		return ""
	}
	text, _ := json.Marshal(b)
	return string(text)
}

// SyncSince reports the changes of the address book since mark, which is an encoded syncState.
func (a *cardDAV) Follow(ctx context.Context, mark string, into Changes) (string, error) {
	var was bookmark
	_ = json.Unmarshal([]byte(mark), &was)
	if was.Token != "" {
		next, err := a.since(ctx, was.Token, into)
		if !errors.Is(err, errToken) {
			return bookmark{Token: next}.text(), err
		}
	}
	now, err := a.state(ctx)
	if err != nil {
		return "", err
	}
	if was.Tag != "" && was.Tag == now.Tag && was.Token == "" {
		return mark, nil
	}
	return now.text(), a.whole(ctx, into)
}

const (
	davState = `<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:" xmlns:S="http://calendarserver.org/ns/">` +
		`<D:prop><D:sync-token/><S:getctag/></D:prop></D:propfind>`
	davSince = `<?xml version="1.0" encoding="utf-8"?><D:sync-collection xmlns:D="DAV:"><D:sync-token>%s</D:sync-token>` +
		`<D:sync-level>1</D:sync-level><D:prop><D:getetag/></D:prop></D:sync-collection>`
	davSome = `<?xml version="1.0" encoding="utf-8"?><C:addressbook-multiget xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">` +
		`<D:prop><D:getetag/><C:address-data/></D:prop>%s</C:addressbook-multiget>`
	davAll = `<?xml version="1.0" encoding="utf-8"?><C:addressbook-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">` +
		`<D:prop><D:getetag/><C:address-data/></D:prop><C:filter><C:prop-filter name="FN"/></C:filter></C:addressbook-query>`
	cardsAtOnce = 100   // cards of one multiget (RFC 6352 §8.7)
	maxParts    = 1_000 // pages of a truncated answer (RFC 6578 §3.6)
)

// errSyncToken means that the server does not accept the sync token, or does not support tokens.
var errToken = errors.New("the address book does not accept the sync token")

// fetchState requests the current sync token and ctag of the address book.
func (a *cardDAV) state(ctx context.Context) (b bookmark, err error) {
	err = a.report(ctx, "PROPFIND", "0", davState, func(x davAnswer) error {
		for _, p := range x.Props {
			b.Token, b.Tag = strings.TrimSpace(b.Token+p.Token), strings.TrimSpace(b.Tag+p.Tag)
		}
		return nil
	}, nil)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrAuth) && !errors.As(err, new(*Busy)) { // without token and ctag: the book is read in full every time
		return bookmark{}, nil
	}
	return b, err
}

// changesSince reports the changes since a sync token, page by page, and returns the next token.
func (a *cardDAV) since(ctx context.Context, token string, into Changes) (string, error) {
	for range maxParts {
		next, more, err := a.part(ctx, token, into)
		if err != nil || !more {
			return next, err
		}
		if next == token {
			return "", errors.New("the address book returns the same page repeatedly")
		}
		token = next
	}
	return "", fmt.Errorf("the address book returns more than %d pages", maxParts)
}

func (a *cardDAV) part(ctx context.Context, token string, into Changes) (next string, more bool, err error) {
	var changed, gone []string
	err = a.report(ctx, "REPORT", "0", fmt.Sprintf(davSince, escapeXML(token)), func(x davAnswer) error {
		switch {
		case strings.Contains(x.Status, " 507"):
			more = true
		case strings.Contains(x.Status, " 404"):
			gone = append(gone, cardID(x.Href))
		case !strings.HasSuffix(x.Href, "/"):
			changed = append(changed, x.Href)
		}
		if len(changed)+len(gone) > contact.MaxEntries {
			return fmt.Errorf("a connection may bring %d people", contact.MaxEntries)
		}
		return nil
	}, &next)
	switch {
	case errors.Is(err, ErrRefused), errors.Is(err, ErrAuth), errors.Is(err, errNothing), err == nil && next == "":
		return "", false, errToken // 403 and 409: an old token; 400, 405, 415: no such report
	case err != nil:
		return "", false, err
	}
	for _, id := range gone {
		if err := into.Gone(ctx, id); err != nil {
			return "", false, err
		}
	}
	for some := range slices.Chunk(changed, cardsAtOnce) {
		if err := a.some(ctx, some, into); err != nil {
			return "", false, err
		}
	}
	return next, more, nil
}

// multiget reads cards by their hrefs. A card that was deleted meanwhile is reported by the next page.
func (a *cardDAV) some(ctx context.Context, hrefs []string, into Changes) error {
	var list strings.Builder
	for _, h := range hrefs {
		list.WriteString("<D:href>" + escapeXML(h) + "</D:href>")
	}
	return a.report(ctx, "REPORT", "1", fmt.Sprintf(davSome, list.String()), func(x davAnswer) error { return x.put(ctx, into) }, nil)
}

// readAll reads the whole address book, one card at a time.
func (a *cardDAV) whole(ctx context.Context, into Changes) error {
	if err := into.Whole(ctx); err != nil {
		return err
	}
	return a.report(ctx, "REPORT", "1", davAll, func(x davAnswer) error { return x.put(ctx, into) }, nil)
}

// put passes the card of a response to the sink. A card without a name is not passed.
func (x davAnswer) put(ctx context.Context, into Changes) error {
	for _, p := range x.Props {
		if r, ok := contact.ReadCard(p.Data); ok {
			r.ExternalID = cardID(x.Href)
			return into.Put(ctx, r)
		}
	}
	return nil
}

// davResponse is one response of a multistatus (RFC 4918 §14.24).
type davAnswer struct {
	Href   string    `xml:"href"`
	Status string    `xml:"status"`
	Props  []davProp `xml:"propstat>prop"`
}

type davProp struct {
	Token string `xml:"sync-token"`
	Tag   string `xml:"getctag"`
	Data  string `xml:"address-data"`
}

// cardID returns the id of a card: the path of its address, normalised because servers write it in several forms.
func cardID(href string) string {
	u, err := url.Parse(strings.TrimSpace(href))
	if err != nil {
		return href
	}
	return u.EscapedPath()
}

func escapeXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text))
	return b.String()
}

// requestMultistatus sends a request whose answer is a multistatus, and passes its responses to take one by one. If
// token is not nil, it is set to the sync token of the answer.
func (a *cardDAV) report(ctx context.Context, method, depth, body string, take func(davAnswer) error, token *string) error {
	r, err := http.NewRequestWithContext(ctx, method, a.s.URL, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Depth", depth)
	r.Header.Set("Content-Type", "application/xml; charset=utf-8")
	answer, err := a.s.do(ctx, a.lists, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := verdict(answer); err != nil {
		return err
	}
	return readMultistatus(answer.Body, take, token)
}

func readMultistatus(body io.Reader, take func(davAnswer) error, token *string) error {
	d := xml.NewDecoder(body)
	for root := ""; ; {
		t, err := d.Token()
		if errors.Is(err, io.EOF) && root == "multistatus" {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the answer is no address book: %w", err)
		}
		start, ok := t.(xml.StartElement)
		switch {
		case !ok:
		case root == "":
			if root = start.Name.Local; root != "multistatus" {
				return errors.New("the answer is no address book")
			}
		case start.Name.Local == "response":
			var x davAnswer
			if err := d.DecodeElement(&x, &start); err != nil {
				return fmt.Errorf("the answer is no address book: %w", err)
			}
			if err := take(x); err != nil {
				return err
			}
		case start.Name.Local == "sync-token" && token != nil:
			if err := d.DecodeElement(token, &start); err != nil {
				return fmt.Errorf("the answer is no address book: %w", err)
			}
		}
	}
}
