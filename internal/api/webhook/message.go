package webhook

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Message is the content of one attempt.
type Message struct {
	Prefix     string // of our own headers
	EventID    string
	Kind       string
	DeliveryID string
	Attempt    int // from 1
	Sequence   int64
	Body       string
	Secret     string
	Previous   string            // the previous secret during a rotation; else ""
	Headers    map[string]string // further headers; they do not replace ours
}

// Request returns the signed request to an address.
func (m Message) Request(ctx context.Context, url string, now time.Time) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	h := request.Header
	for name, value := range m.Headers {
		if !hasPrefix(name, m.Prefix) { // the prefix may be newer than the header
			h.Set(name, value)
		}
	}
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "soniq-webhooks/1.0")
	h[m.Prefix+"-event"] = []string{m.Kind}
	h[m.Prefix+"-delivery"] = []string{m.DeliveryID}
	h[m.Prefix+"-attempt"] = []string{strconv.Itoa(m.Attempt)}
	h[m.Prefix+"-sequence"] = []string{strconv.FormatInt(m.Sequence, 10)}
	secrets{m.Secret, m.Previous}.sign(h, m.Prefix, m.EventID, m.Body, now)
	return request, nil
}
