package webhook

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/event"
	"soniq/internal/platform/op"
)

// check returns all violations of a webhook's settings. The prefix is that of our own headers.
func (s *Service) check(e *endpoint, headers map[string]string, prefix string) []op.Violation {
	var wrong []op.Violation
	if err := s.cfg.Guard.Check(e.URL); err != nil {
		wrong = append(wrong, op.Field("url", urlCode(err), err.Error()))
	}
	wrong = append(wrong, checkEvents(e.Events)...)
	return append(wrong, checkHeaders(headers, prefix)...)
}

func urlCode(err error) string {
	var f *egress.Fault
	if errors.As(err, &f) {
		return f.Code
	}
	return "invalid_url"
}

func checkEvents(events []string) []op.Violation {
	var wrong []op.Violation
	for i, k := range events {
		if k != "*" && !slices.Contains(event.Kinds(), event.Kind(k)) {
			wrong = append(wrong, op.Field(fmt.Sprintf("events[%d]", i), "unknown_event",
				fmt.Sprintf("there is no event %.60q; GET /webhooks/events lists them", k)))
		}
	}
	if len(events) == 0 {
		wrong = append(wrong, op.Field("events", "required", "name at least one kind of event, or *"))
	}
	return wrong
}

const (
	maxHeaders     = 20
	maxHeaderValue = 1000
)

// reservedHeaders are the headers that an owner cannot set.
var reservedHeaders = []string{"Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding", "Connection", "Upgrade",
	"Trailer", "Te", "Keep-Alive", "Proxy-Connection", "Expect", "User-Agent", "Traceparent",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}

func checkHeaders(headers map[string]string, prefix string) []op.Violation {
	var wrong []op.Violation
	if len(headers) > maxHeaders {
		wrong = append(wrong, op.Field("headers", "too_many", fmt.Sprintf("at most %d", maxHeaders)))
	}
	for name, value := range headers {
		field := "headers." + name
		switch canonical := http.CanonicalHeaderKey(name); {
		case !isToken(name):
			wrong = append(wrong, op.Field(field, "invalid_header", "not a header name"))
		case slices.Contains(reservedHeaders, canonical), hasPrefix(name, prefix),
			strings.HasPrefix(canonical, "Proxy-"):
			wrong = append(wrong, op.Field(field, "reserved_header", "this header is set by the platform"))
		case !isFieldValue(value):
			wrong = append(wrong, op.Field(field, "invalid_header", fmt.Sprintf("not a header value of at most %d characters",
				maxHeaderValue)))
		}
	}
	slices.SortFunc(wrong, func(a, b op.Violation) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}

// isToken reports whether a name has the syntax of a header name (RFC 9110 §5.6.2).
func isToken(name string) bool {
	for _, c := range []byte(name) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		digit := c >= '0' && c <= '9'
		if !letter && !digit && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != "" && len(name) <= 100
}

// isFieldValue reports whether a value has the syntax of a header value in ASCII (RFC 9110 §5.5). Control
// characters, in particular line ends, are not allowed.
func isFieldValue(value string) bool {
	for _, c := range []byte(value) {
		if c < ' ' && c != '\t' || c > '~' {
			return false
		}
	}
	return len(value) <= maxHeaderValue
}
