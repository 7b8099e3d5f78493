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

// CardDAVSettings describe an address book (RFC 6352).
type CardDAVSettings struct {
	ListSettings
	Write bool `json:"write,omitempty" doc:"Contacts are written to the address book too"`
}

// A cardDAV is an address book. What changes in it is followed by its tokens (RFC 6578); where it has none it is read whole, unless
// its tag says that nothing changed.
type cardDAV struct {
	s             CardDAVSettings
	lists, asking *http.Client
}

// Can says what an address book is for.
func (a *cardDAV) Can() Capabilities {
	return Capabilities{Lookup: true, Create: a.s.Write, Update: a.s.Write}
}

// Every is how often the address book is asked what has changed.
func (a *cardDAV) Every() time.Duration { return a.s.every() }

// All reads the whole address book.
func (a *cardDAV) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	return a.whole(ctx, Changes{Put: take, Whole: func(context.Context) error { return nil }})
}

// A bookmark is where following an address book goes on.
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

// Follow tells what changed in the address book.
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
	cardsAtOnce = 100   // that are asked for by their names (RFC 6352 §8.7)
	maxParts    = 1_000 // of an answer that is cut (RFC 6578 §3.6)
)

// errToken says that the address book does not go on from a token, or knows none.
var errToken = errors.New("the address book does not go on from there")

// state asks for the token and the tag of the address book as it is.
func (a *cardDAV) state(ctx context.Context) (b bookmark, err error) {
	err = a.report(ctx, "PROPFIND", "0", davState, func(x davAnswer) error {
		for _, p := range x.Props {
			b.Token, b.Tag = strings.TrimSpace(b.Token+p.Token), strings.TrimSpace(b.Tag+p.Tag)
		}
		return nil
	}, nil)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrAuth) && !errors.As(err, new(*Busy)) { // it tells neither: it is read whole every time
		return bookmark{}, nil
	}
	return b, err
}

// since tells what changed since a token, part by part, and returns the next.
func (a *cardDAV) since(ctx context.Context, token string, into Changes) (string, error) {
	for range maxParts {
		next, more, err := a.part(ctx, token, into)
		if err != nil || !more {
			return next, err
		}
		if next == token {
			return "", errors.New("the address book gives the same part again and again")
		}
		token = next
	}
	return "", fmt.Errorf("the address book gives more than %d parts", maxParts)
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

// some reads cards by their names; of one that went meanwhile the next part tells.
func (a *cardDAV) some(ctx context.Context, hrefs []string, into Changes) error {
	var list strings.Builder
	for _, h := range hrefs {
		list.WriteString("<D:href>" + escapeXML(h) + "</D:href>")
	}
	return a.report(ctx, "REPORT", "1", fmt.Sprintf(davSome, list.String()), func(x davAnswer) error { return x.put(ctx, into) }, nil)
}

// whole reads the whole address book, one card after the other.
func (a *cardDAV) whole(ctx context.Context, into Changes) error {
	if err := into.Whole(ctx); err != nil {
		return err
	}
	return a.report(ctx, "REPORT", "1", davAll, func(x davAnswer) error { return x.put(ctx, into) }, nil)
}

// put takes the card of an answer; one that names nobody is taken for gone.
func (x davAnswer) put(ctx context.Context, into Changes) error {
	for _, p := range x.Props {
		if r, ok := contact.ReadCard(p.Data); ok {
			r.ExternalID = cardID(x.Href)
			return into.Put(ctx, r)
		}
	}
	return nil
}

// A davAnswer is one response of a multi-status (RFC 4918 §14.24).
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

// cardID is how a card is known: the path of its address, in whatever way the server writes it.
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

// report makes a request whose answer is a multi-status, and gives its responses one by one; token takes the one for next time.
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
