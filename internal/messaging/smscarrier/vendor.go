package smscarrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/op"
)

// This file is what the adapters of single vendors have in common.

// vendorLimits bound requests to them.
var vendorLimits = egress.Limits{Connect: 5 * time.Second, Total: 20 * time.Second, Body: 256 << 10, Idle: 16}

// said is a vendor's answer.
type said struct {
	status int
	header http.Header
	raw    []byte
}

// ask makes a request. Its error says whether the message may have left: only where no connection came about it has not.
func ask(ctx context.Context, client *http.Client, r *http.Request) (said, error) {
	answer, err := client.Do(r.WithContext(ctx))
	if err != nil {
		if neverLeft(err) {
			return said{}, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
		}
		return said{}, fmt.Errorf("%w: %w", sms.ErrUnknown, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return said{}, fmt.Errorf("%w: %w", sms.ErrUnknown, err)
	}
	return said{answer.StatusCode, answer.Header, raw}, nil
}

// trouble is what an answer says that is not about the message; nil where it is. After 500, 502 and 504 nobody knows.
func (a said) trouble() error {
	switch {
	case a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable:
		return &sms.Busy{After: retryAfter(a.header), Cause: fmt.Errorf("answered with %d", a.status)}
	case a.status == http.StatusUnauthorized:
		return a.unauthorized()
	case a.status >= 500:
		return fmt.Errorf("%w: answered with %d", sms.ErrUnknown, a.status)
	}
	return nil
}

func (a said) unauthorized() error {
	return fmt.Errorf("%w: %w: answered with %d", sms.ErrUnsent, ErrAuth, a.status)
}

// read reads the answer; one that cannot be read leaves open what became of the message.
func (a said) read(to any) error {
	if err := json.Unmarshal(a.raw, to); err != nil {
		return fmt.Errorf("%w: answer %d cannot be read: %w", sms.ErrUnknown, a.status, err)
	}
	return nil
}

// refusal is a message that the vendor does not take.
func refusal(f *sms.Fault) sms.Result { return sms.Result{Status: sms.Failed, Fault: f} }

// vendorFault says in our terms what a vendor's code means.
func vendorFault(codes map[string]string, code, message string) *sms.Fault {
	word, ok := codes[code]
	if !ok {
		word = "carrier_rejected"
	}
	if message == "" {
		message = "the carrier did not deliver the message"
	}
	f := &sms.Fault{Code: word, Message: message}
	if code != "" {
		f.CarrierCode = &code
	}
	return f
}

// vendorURL checks the address of a vendor's API, or fills in the usual one.
func vendorURL(g *egress.Guard, address *string, usual string) []op.Violation {
	if *address == "" {
		*address = usual
	}
	*address = strings.TrimRight(*address, "/")
	var fault *egress.Fault
	if errors.As(g.Check(*address), &fault) {
		return []op.Violation{op.Field("settings.url", fault.Code, fault.Message)}
	}
	if strings.ContainsAny(*address, "?#") {
		return []op.Violation{op.Field("settings.url", "invalid_url", "must be the address of an API, without a query")}
	}
	return nil
}

// wantText requires a setting of one line without spaces.
func wantText(wrong *[]op.Violation, field, value string, optional bool) {
	if value == "" && optional {
		return
	}
	if value == "" || len(value) > 500 || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		*wrong = append(*wrong, op.Field("settings."+field, "invalid_value", "must be 1 to 500 printable characters without spaces"))
	}
}

// addresses are those of a message's files.
func addresses(all []sms.Media) (urls []string) {
	for _, m := range all {
		urls = append(urls, m.URL)
	}
	return urls
}

// try asks a vendor for something that needs valid credentials.
func try(ctx context.Context, client *http.Client, r *http.Request) error {
	a, err := ask(ctx, client, r)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return a.unauthorized()
	case a.status >= 300:
		return fmt.Errorf("answered with %d", a.status)
	}
	return nil
}
