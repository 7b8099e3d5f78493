package adapter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"soniq/internal/customer/contact"
)

// Copies the contacts of Dynamics 365 into the phone index: in full once, then incrementally with change tracking.

// dynamicsMaxPages bounds the pages of one read: a million contacts.
const dynamicsMaxPages = 2000

// RefreshInterval returns the time between two copies of the contacts.
func (d *dynamics) RefreshInterval() time.Duration {
	if d.refreshMinutes == 0 {
		return defaultRefreshMinutes * time.Minute
	}
	return time.Duration(d.refreshMinutes) * time.Minute
}

// All passes all contacts to take.
func (d *dynamics) All(ctx context.Context, take func(context.Context, contact.Record) error) error {
	_, err := d.readPages(ctx, url.Values{"$select": {dynamicsFields}}, recordSink(take))
	return err
}

// SyncSince reports the changes since mark, which is a delta token of the vendor's change tracking. If the token is
// too old, or change tracking is off, it reads all contacts.
func (d *dynamics) SyncSince(ctx context.Context, mark string, into ChangeSink) (string, error) {
	if mark != "" {
		next, err := d.readPages(ctx, url.Values{"$select": {dynamicsFields}, "$deltatoken": {mark}}, into)
		if !errors.Is(err, ErrRefused) {
			return next, err
		}
	}
	if err := into.BeginFull(ctx); err != nil {
		return "", err
	}
	return d.readPages(ctx, url.Values{"$select": {dynamicsFields}}, into)
}

// readPages reads all pages and returns the next delta token. The vendor's link to the next page is followed only
// within its API for contacts.
func (d *dynamics) readPages(ctx context.Context, q url.Values, into ChangeSink) (mark string, err error) {
	for range dynamicsMaxPages {
		w := apiRequest{method: http.MethodGet, path: dynamicsAPI + "/contacts", query: q,
			header: map[string]string{"Prefer": "odata.track-changes,odata.maxpagesize=500," + dynamicsPrefer}}
		var page dynamicsPage
		if err := d.do(ctx, w, &page); err != nil {
			return "", err
		}
		for _, x := range page.Value {
			if err := d.applyChange(ctx, x, into); err != nil {
				return "", err
			}
		}
		if page.Next == "" {
			return deltaToken(page.Delta), nil
		}
		next, err := url.Parse(page.Next)
		if err != nil || next.Path != dynamicsAPI+"/contacts" {
			return "", errors.New("its next page is none of contacts")
		}
		q = next.Query()
	}
	return "", fmt.Errorf("it has more than %d pages", dynamicsMaxPages)
}

func (d *dynamics) applyChange(ctx context.Context, x dynamicsContact, into ChangeSink) error {
	if !strings.HasSuffix(x.Context, "/$deletedEntity") {
		return into.Put(ctx, d.record(x))
	}
	return into.Remove(ctx, x.DeletedID)
}

// deltaToken returns the token in a delta link; "" if change tracking is off.
func deltaToken(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return ""
	}
	return u.Query().Get("$deltatoken")
}
