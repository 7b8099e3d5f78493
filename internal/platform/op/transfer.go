package op

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"soniq/internal/platform/access"
	"soniq/internal/platform/limit"
)

// Uploads and downloads at once. Their limits are those of package limit.

// transferPatience is how long a transfer waits for its turn.
const transferPatience = 5 * time.Second

type transfersKey struct{}

func withTransfers(ctx context.Context, g *limit.Gate) context.Context {
	return context.WithValue(ctx, transfersKey{}, g)
}

// enterUpload waits for the turn of a request with a large body, before the body is read.
func (c *Pipeline) enterUpload(ctx context.Context) (leave func(), err *Error) {
	leave, full := c.transfers.Enter(ctx, transferPatience, limit.Claim{Limit: limit.UploadsOfOrganisation, Key: access.Org(ctx)},
		limit.Claim{Limit: limit.Uploads})
	return leave, TooManyAtOnce(full, "uploads", transferPatience)
}

// enterDownload waits for the turn of a download from an organisation. Outside of a request it does not wait.
func enterDownload(ctx context.Context, org string) (leave func(), err *Error) {
	g, ok := ctx.Value(transfersKey{}).(*limit.Gate)
	if !ok {
		return func() {}, nil
	}
	claims := []limit.Claim{{Limit: limit.DownloadsOfOrganisation, Key: org}}
	if from := ClientAddress(ctx); from.IsValid() {
		claims = append(claims, limit.Claim{Limit: limit.DownloadsOfAddress, Key: ClientKey(from)})
	}
	leave, full := g.Enter(ctx, transferPatience, claims...)
	return leave, TooManyAtOnce(full, "downloads", transferPatience)
}

// TooManyAtOnce returns the error of a limit that has no place left; nil if full is nil.
func TooManyAtOnce(full *limit.Limit, what string, retryAfter time.Duration) *Error {
	if full == nil {
		return nil
	}
	detail := "at most " + full.String() + " " + what + " at once for each " + full.Per + "; wait until one of them ends"
	e := Unavailable(full.Code, detail, strconv.FormatInt(seconds(retryAfter), 10))
	e.Extra = map[string]any{"limit": full.Name, "allowed": full.Default}
	return e
}

// signedParameters are the query parameters that a signature covers.
var signedParameters = []string{"org", "by", "expires", "signature"}

// checkSignedQuery refuses a parameter that the signature does not cover: whoever has a signed address may fetch what it names, and
// nothing else.
func checkSignedQuery(h huma.Context) *Error {
	at := h.URL()
	query, err := url.ParseQuery(at.RawQuery)
	if err != nil {
		return Fail("unauthenticated", "the signature does not cover this query")
	}
	for _, name := range signedParameters {
		if len(query[name]) > 1 {
			return Fail("unauthenticated", "the parameter "+name+" is given twice")
		}
		delete(query, name)
	}
	for name := range query {
		return Fail("unauthenticated", "the signature does not cover the parameter "+strconv.Quote(name)+"; send it with a credential")
	}
	return nil
}
