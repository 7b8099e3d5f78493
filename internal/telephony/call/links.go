package call

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// SignedURLLife is how long a signed URL in an answer is valid.
const SignedURLLife = 5 * time.Minute

// Links makes the URLs of recordings and exports, and signs them, so that they need no credential.
type Links struct {
	BaseURL string // without a trailing slash
	Key     []byte // HMAC key
	Clock   clock.Clock
	Makers  Makers // nil: a signed URL works until it expires
}

// Makers reports whether who made a signed URL may still read what it leads to.
type Makers interface {
	// CheckMaker returns the reason why a signed URL of the holder does not work any more, or nil.
	CheckMaker(ctx context.Context, h access.Holder) error
}

// SignedQuery are the parameters of a signed URL. They replace the credential.
type SignedQuery struct {
	Org       string `query:"org" maxLength:"40"`
	By        string `query:"by" maxLength:"90" doc:"Who made the signed address"`
	Expires   string `query:"expires" maxLength:"20"`
	Signature string `query:"signature" maxLength:"64"`
}

// Prefix returns the URL of the API.
func (l Links) Prefix(sandbox bool) string {
	if sandbox {
		return l.BaseURL + "/sandbox/v1"
	}
	return l.BaseURL + "/api/v1"
}

// Audio returns the URL of a recording's audio, which needs a credential.
func (l Links) Audio(recordingID string, sandbox bool) string {
	return l.Prefix(sandbox) + "/recordings/" + recordingID + "/audio"
}

// Sign returns the URL of a file of the holder's organisation with a signature. The signature is valid until life has
// passed, and no longer than the holder may read the file. id names the file.
func (l Links) Sign(url string, maker access.Holder, id string, life time.Duration) (signed string, until db.Time) {
	end := l.Clock.Now().Add(life)
	q := SignedQuery{Org: maker.OrgID, Expires: strconv.FormatInt(end.Unix(), 10)}
	url += "?org=" + q.Org
	if maker.Recorded() {
		q.By = maker.KeyID + "." + maker.UserID
		url += "&by=" + q.By
	}
	return url + "&expires=" + q.Expires + "&signature=" + l.signature(id, q), db.At(end)
}

// signature returns the signature of a file's URL. Without a maker it is that of URLs from before makers were in them.
func (l Links) signature(id string, q SignedQuery) string {
	text := q.Org + "\n" + id + "\n" + q.Expires
	if q.By != "" {
		text = "by\n" + q.By + "\n" + text
	}
	m := hmac.New(sha256.New, l.Key)
	m.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Authorize returns the organisation of the file that the request may read: the one of a valid signature, else the one
// of the credential. The user or key that made the signature must still have a scope for calls.
func (l Links) Authorize(ctx context.Context, id string, q SignedQuery) (string, error) {
	return l.AuthorizeScopes(ctx, id, q, access.CallsRead, access.CallsWrite)
}

// AuthorizeScopes does what Authorize does, for a file that needs other scopes. The user or key that made the signature must still have one
// of them.
func (l Links) AuthorizeScopes(ctx context.Context, id string, q SignedQuery, scopes ...access.Scope) (string, error) {
	if q.Signature == "" {
		return access.Org(ctx), nil
	}
	at, err := strconv.ParseInt(q.Expires, 10, 64)
	good := hmac.Equal([]byte(q.Signature), []byte(l.signature(id, q)))
	if err != nil || !good || l.Clock.Now().Unix() > at || strings.Contains(id+q.Org+q.By, "\n") { // lines separate the signed parts
		return "", op.Fail("unauthenticated", "the signature of this address is wrong or has expired; ask for the recording again")
	}
	if l.Makers == nil {
		return q.Org, nil
	}
	key, user, _ := strings.Cut(q.By, ".")
	maker := access.Holder{OrgID: q.Org, KeyID: key, UserID: user, Scopes: scopes}
	return q.Org, l.Makers.CheckMaker(ctx, maker)
}

// setRecordingURL replaces the id of an available recording by its URL.
func (s *Service) setRecordingURL(c *Call) {
	if c.RecordingURL != nil {
		url := s.cfg.Links.Audio(*c.RecordingURL, c.Sandbox)
		c.RecordingURL = &url
	}
}
