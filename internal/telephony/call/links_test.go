package call_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/telephony/call"
)

// makers knows one maker that may read, and remembers whom it was asked about.
type makers struct {
	good  access.Holder
	asked access.Holder
}

func (m *makers) CheckMaker(_ context.Context, h access.Holder) error {
	if m.asked = h; h.OrgID != m.good.OrgID || h.KeyID != m.good.KeyID || h.UserID != m.good.UserID {
		return errors.New("may not read")
	}
	return nil
}

// A signed address works for its file until it expires, as long as its maker may read. Neither its parameters nor its file can be changed.
func TestLinks_SignedAddressIsThatOfItsMaker(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	m := &makers{good: access.Holder{OrgID: "org_1", KeyID: "key_1", UserID: "usr_1"}}
	l := call.Links{BaseURL: "https://soniq.example", Key: []byte("key"), Clock: clock.Func(func() time.Time { return now }), Makers: m}
	query := func(h access.Holder) call.SignedQuery {
		address, _ := l.Sign(l.Audio("rec_1", false), h, "rec_1", time.Minute)
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		q := u.Query()
		return call.SignedQuery{Org: q.Get("org"), By: q.Get("by"), Expires: q.Get("expires"), Signature: q.Get("signature")}
	}
	good := query(m.good)
	if org, err := l.Authorize(t.Context(), "rec_1", good); org != "org_1" || err != nil || len(m.asked.Scopes) == 0 {
		t.Errorf("%s %v, asked about %+v", org, err, m.asked)
	}
	m.good.KeyID = "key_2"
	if _, err := l.Authorize(t.Context(), "rec_1", good); err == nil {
		t.Error("the address outlives the rights of its maker")
	}
	m.good.KeyID = "key_1"
	for what, change := range map[string]func(*call.SignedQuery){
		"another maker": func(q *call.SignedQuery) { q.By = "key_2.usr_1" }, "no maker": func(q *call.SignedQuery) { q.By = "" },
		"another organisation": func(q *call.SignedQuery) { q.Org = "org_2" }, "later": func(q *call.SignedQuery) { q.Expires = "99999999999" },
	} {
		q := good
		if change(&q); q == good {
			t.Fatal(what)
		}
		if _, err := l.Authorize(t.Context(), "rec_1", q); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	m.good = access.Holder{OrgID: "by\nkey_1.usr_1\norg_1"}
	if _, err := l.Authorize(t.Context(), "rec_1", call.SignedQuery{Org: m.good.OrgID, Expires: good.Expires,
		Signature: good.Signature}); err == nil {
		t.Error("parts of the signed text are moved")
	}
	m.good = access.Holder{OrgID: "org_1", KeyID: "key_1", UserID: "usr_1"}
	if _, err := l.Authorize(t.Context(), "rec_2", good); err == nil {
		t.Error("another recording is read")
	}
	m.good = access.Holder{OrgID: "org_1"} // of webhooks from before makers were recorded
	if org, err := l.Authorize(t.Context(), "rec_1", query(m.good)); org != "org_1" || err != nil {
		t.Errorf("without a maker: %s %v", org, err)
	}
	now = now.Add(2 * time.Minute)
	if _, err := l.Authorize(t.Context(), "rec_1", query(m.good)); err != nil {
		t.Errorf("a fresh one: %v", err)
	}
	if _, err := l.Authorize(t.Context(), "rec_1", good); err == nil {
		t.Error("an expired address works")
	}
}
