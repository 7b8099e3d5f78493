package adapter

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
	s                        CardDAVSettings
	listClient, lookupClient *http.Client
}

// Can reports lookups in the copy, and writes if the settings allow them.
func (a *cardDAV) Can() Capabilities {
	return Capabilities{Lookup: true, Create: a.s.Write, Update: a.s.Write}
}

// RefreshInterval returns the time between two requests for changes.
func (a *cardDAV) RefreshInterval() time.Duration { return a.s.refreshInterval() }

// All reads the whole address book.
func (a *cardDAV) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	return a.readAll(ctx, recordSink(take))
}

// syncState is the position for the next incremental read: a sync token, or a ctag if the server has no tokens.
type syncState struct {
	Token string `json:"token,omitempty"`
	Tag   string `json:"tag,omitempty"`
}

func (b syncState) encode() string {
	if b == (syncState{}) {
		return ""
	}
	text, _ := json.Marshal(b)
	return string(text)
}

// SyncSince reports the changes of the address book since mark, which is an encoded syncState.
func (a *cardDAV) SyncSince(ctx context.Context, mark string, into ChangeSink) (string, error) {
	var was syncState
	_ = json.Unmarshal([]byte(mark), &was)
	if was.Token != "" {
		next, err := a.changesSince(ctx, was.Token, into)
		if !errors.Is(err, errSyncToken) {
			return syncState{Token: next}.encode(), err
		}
	}
	now, err := a.fetchState(ctx)
	if err != nil {
		return "", err
	}
	if was.Tag != "" && was.Tag == now.Tag && was.Token == "" {
		return mark, nil
	}
	return now.encode(), a.readAll(ctx, into)
}

const (
	propfindSyncState = `<?xml version="1.0" encoding="utf-8"?><D:propfind xmlns:D="DAV:" xmlns:S="http://calendarserver.org/ns/">` +
		`<D:prop><D:sync-token/><S:getctag/></D:prop></D:propfind>`
	reportSyncCollection = `<?xml version="1.0" encoding="utf-8"?><D:sync-collection xmlns:D="DAV:"><D:sync-token>%s</D:sync-token>` +
		`<D:sync-level>1</D:sync-level><D:prop><D:getetag/></D:prop></D:sync-collection>`
	reportMultiget = `<?xml version="1.0" encoding="utf-8"?><C:addressbook-multiget xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">` +
		`<D:prop><D:getetag/><C:address-data/></D:prop>%s</C:addressbook-multiget>`
	reportAllCards = `<?xml version="1.0" encoding="utf-8"?><C:addressbook-query xmlns:D="DAV:" xmlns:C="urn:ietf:params:xml:ns:carddav">` +
		`<D:prop><D:getetag/><C:address-data/></D:prop><C:filter><C:prop-filter name="FN"/></C:filter></C:addressbook-query>`
	multigetBatch = 100   // cards of one multiget (RFC 6352 §8.7)
	maxSyncPages  = 1_000 // pages of a truncated answer (RFC 6578 §3.6)
)

// errSyncToken means that the server does not accept the sync token, or does not support tokens.
var errSyncToken = errors.New("the address book does not accept the sync token")

// fetchState requests the current sync token and ctag of the address book.
func (a *cardDAV) fetchState(ctx context.Context) (b syncState, err error) {
	err = a.requestMultistatus(ctx, "PROPFIND", "0", propfindSyncState, func(x davResponse) error {
		for _, p := range x.Props {
			b.Token, b.Tag = strings.TrimSpace(b.Token+p.Token), strings.TrimSpace(b.Tag+p.Tag)
		}
		return nil
	}, nil)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrAuth) &&
		!errors.As(err, new(*BusyError)) { // without token and ctag: the book is read in full every time
		return syncState{}, nil
	}
	return b, err
}

// changesSince reports the changes since a sync token, page by page, and returns the next token.
func (a *cardDAV) changesSince(ctx context.Context, token string, into ChangeSink) (string, error) {
	for range maxSyncPages {
		next, more, err := a.changesPage(ctx, token, into)
		if err != nil || !more {
			return next, err
		}
		if next == token {
			return "", errors.New("the address book returns the same page repeatedly")
		}
		token = next
	}
	return "", fmt.Errorf("the address book returns more than %d pages", maxSyncPages)
}

func (a *cardDAV) changesPage(ctx context.Context, token string, into ChangeSink) (next string, more bool, err error) {
	var changed, gone []string
	err = a.requestMultistatus(ctx, "REPORT", "0", fmt.Sprintf(reportSyncCollection, escapeXML(token)), func(x davResponse) error {
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
	case errors.Is(err, ErrRefused), errors.Is(err, ErrAuth), errors.Is(err, errNotFound), err == nil && next == "":
		return "", false, errSyncToken // 403 and 409: an old token; 400, 405, 415: no such report
	case err != nil:
		return "", false, err
	}
	for _, id := range gone {
		if err := into.Remove(ctx, id); err != nil {
			return "", false, err
		}
	}
	for some := range slices.Chunk(changed, multigetBatch) {
		if err := a.multiget(ctx, some, into); err != nil {
			return "", false, err
		}
	}
	return next, more, nil
}

// multiget reads cards by their hrefs. A card that was deleted meanwhile is reported by the next page.
func (a *cardDAV) multiget(ctx context.Context, hrefs []string, into ChangeSink) error {
	var list strings.Builder
	for _, h := range hrefs {
		list.WriteString("<D:href>" + escapeXML(h) + "</D:href>")
	}
	return a.requestMultistatus(ctx, "REPORT", "1", fmt.Sprintf(reportMultiget, list.String()),
		func(x davResponse) error { return x.put(ctx, into) }, nil)
}

// readAll reads the whole address book, one card at a time.
func (a *cardDAV) readAll(ctx context.Context, into ChangeSink) error {
	if err := into.BeginFull(ctx); err != nil {
		return err
	}
	return a.requestMultistatus(ctx, "REPORT", "1", reportAllCards, func(x davResponse) error { return x.put(ctx, into) }, nil)
}

// put passes the card of a response to the sink. A card without a name is not passed.
func (x davResponse) put(ctx context.Context, into ChangeSink) error {
	for _, p := range x.Props {
		if r, ok := contact.ParseVCard(p.Data); ok {
			r.ExternalID = cardID(x.Href)
			return into.Put(ctx, r)
		}
	}
	return nil
}

// davResponse is one response of a multistatus (RFC 4918 §14.24).
type davResponse struct {
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
func (a *cardDAV) requestMultistatus(ctx context.Context, method, depth, body string, take func(davResponse) error, token *string) error {
	r, err := http.NewRequestWithContext(ctx, method, a.s.URL, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Depth", depth)
	r.Header.Set("Content-Type", "application/xml; charset=utf-8")
	answer, err := a.s.do(ctx, a.listClient, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := statusError(answer); err != nil {
		return err
	}
	return readMultistatus(answer.Body, take, token)
}

func readMultistatus(body io.Reader, take func(davResponse) error, token *string) error {
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
			var x davResponse
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
