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
	"soniq/internal/platform/strictjson"
)

// Code that the adapters of single vendors (Telnyx, Twilio) share: requests, response errors, settings.

// vendorLimits bounds the time and size of requests to vendors.
var vendorLimits = egress.Limits{Connect: 5 * time.Second, Total: 20 * time.Second, Body: 256 << 10, Idle: 16}

// vendorResponse is a response of a vendor.
type vendorResponse struct {
	status int
	header http.Header
	raw    []byte
}

// doRequest sends a request. The error is sms.ErrUnsent only if no connection was established; otherwise the message
// may have been sent.
func doRequest(ctx context.Context, client *http.Client, r *http.Request) (vendorResponse, error) {
	answer, err := client.Do(r.WithContext(ctx))
	if err != nil {
		if failedBeforeSend(err) {
			return vendorResponse{}, fmt.Errorf("%w: %w", sms.ErrUnsent, err)
		}
		return vendorResponse{}, fmt.Errorf("%w: %w", sms.ErrOutcomeUnknown, err)
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		return vendorResponse{}, fmt.Errorf("%w: %w", sms.ErrOutcomeUnknown, err)
	}
	return vendorResponse{answer.StatusCode, answer.Header, raw}, nil
}

// generalError returns the error of a response that does not concern the message; nil if it does. After 500, 502 and
// 504 the outcome is unknown.
func (a vendorResponse) generalError() error {
	switch {
	case a.status == http.StatusTooManyRequests, a.status == http.StatusServiceUnavailable:
		return &sms.BusyError{After: retryAfter(a.header), Cause: fmt.Errorf("answered with %d", a.status)}
	case a.status == http.StatusUnauthorized:
		return a.authError()
	case a.status >= 500:
		return fmt.Errorf("%w: answered with %d", sms.ErrOutcomeUnknown, a.status)
	}
	return nil
}

func (a vendorResponse) authError() error {
	return fmt.Errorf("%w: %w: answered with %d", sms.ErrUnsent, ErrAuth, a.status)
}

// decode decodes the response. If it fails, the outcome of the message is unknown.
func (a vendorResponse) decode(to any) error {
	if err := json.Unmarshal(strictjson.WithoutDamaged(a.raw), to); err != nil {
		return fmt.Errorf("%w: answer %d cannot be read: %w", sms.ErrOutcomeUnknown, a.status, err)
	}
	return nil
}

// refusedResult returns the result for a message that the vendor refuses.
func refusedResult(f *sms.Fault) sms.Result { return sms.Result{Status: sms.Failed, Fault: f} }

// vendorFault maps a vendor's error code to a fault.
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

// checkVendorURL validates the address of a vendor's API, or sets the default.
func checkVendorURL(g *egress.Guard, address *string, usual string) []op.Violation {
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

// requireText requires a setting of one line without spaces.
func requireText(wrong *[]op.Violation, field, value string, optional bool) {
	if value == "" && optional {
		return
	}
	if value == "" || len(value) > 500 || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
		*wrong = append(*wrong, op.Field("settings."+field, "invalid_value", "must be 1 to 500 printable characters without spaces"))
	}
}

// mediaURLs returns the addresses of a message's attachments.
func mediaURLs(all []sms.Media) (urls []string) {
	for _, m := range all {
		urls = append(urls, m.URL)
	}
	return urls
}

// testRequest sends a request that needs valid credentials.
func testRequest(ctx context.Context, client *http.Client, r *http.Request) error {
	a, err := doRequest(ctx, client, r)
	switch {
	case err != nil:
		return err
	case a.status == http.StatusUnauthorized, a.status == http.StatusForbidden:
		return a.authError()
	case a.status >= 300:
		return fmt.Errorf("answered with %d", a.status)
	}
	return nil
}
