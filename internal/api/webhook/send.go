package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/egress"
)

// Error codes of attempts.
const (
	faultDNS       = "dns"
	faultConnect   = "connect"
	faultTLS       = "tls"
	faultTimeout   = "timeout"
	faultStatus    = "status"
	faultSignature = "signature_rejected"
	faultBlocked   = "blocked_address"
	faultRedirect  = "redirect"
)

// maxStoredBody is the number of bytes of a response that are stored. drainLimit is the number that is read, so that the
// connection can be reused.
const (
	maxStoredBody = 2 << 10
	drainLimit    = 32 << 10
)

// attemptResult is the result of one request.
type attemptResult struct {
	at              db.Time
	took            time.Duration
	status          int // 0 without a response
	body            string
	fault           string // "" for a success
	deliveryControl string // the response header webhook-delivery
	retryAfter      time.Duration
}

func (r attemptResult) ok() bool { return r.fault == "" }

// send makes one attempt. It returns an error if the request could not be made for a reason other than the endpoint.
func (s *Service) send(ctx context.Context, e *endpoint, d *delivery) (attemptResult, error) {
	started := s.cfg.Clock.Now()
	r := attemptResult{at: db.At(started)}
	if e.ForcedFailures > 0 {
		if forced, err := s.takeForcedFailure(ctx, e); err != nil || forced != 0 {
			r.status, r.fault, r.body = forced, faultOfStatus(forced), forcedBody
			return r, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.TimeoutSeconds)*time.Second)
	defer cancel()
	request, err := s.request(ctx, e, d, started)
	if err != nil {
		return r, err
	}
	s.inFlight.Store(d.ID, d.WebhookID)
	defer s.inFlight.Delete(d.ID)
	defer s.trackUnproven(e.ID)()
	response, err := s.client.Do(request)
	if err != nil {
		r.took, r.fault = s.cfg.Clock.Now().Sub(started), faultOf(err)
		return r, nil
	}
	defer response.Body.Close()
	r.status, r.fault = response.StatusCode, faultOfStatus(response.StatusCode)
	r.deliveryControl = response.Header.Get("Webhook-Delivery")
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		r.retryAfter = retryAfter(response.Header.Get("Retry-After"), started)
	}
	r.body = readBody(response.Body)
	r.took = s.cfg.Clock.Now().Sub(started)
	return r, nil
}

func (s *Service) request(ctx context.Context, e *endpoint, d *delivery, now time.Time) (*http.Request, error) {
	own, err := s.headers(e)
	if err != nil {
		return nil, err
	}
	k, err := s.secrets(e, now)
	if err != nil {
		return nil, err
	}
	prefix, err := s.headerPrefix(ctx, e.Org)
	if err != nil {
		return nil, err
	}
	return Message{Prefix: prefix, EventID: d.EventID, Kind: d.Kind, DeliveryID: d.ID, Attempt: d.Attempts + 1, Sequence: d.Sequence,
		Body: d.Body, Secret: k.current, Previous: k.previous, Headers: own}.Request(ctx, e.URL, now)
}

// readBody returns the first 2 KB of a body as valid text for the database. It drains the rest, up to a limit, so
// that the connection can be reused.
func readBody(from io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(from, maxStoredBody))
	_, _ = io.Copy(io.Discard, io.LimitReader(from, drainLimit))
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\x00", "")
}

func faultOfStatus(status int) string {
	switch {
	case status >= 200 && status < 300:
		return ""
	case status >= 300 && status < 400:
		return faultRedirect
	case status == http.StatusUnauthorized:
		return faultSignature
	}
	return faultStatus
}

func faultOf(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, egress.ErrBlocked):
		return faultBlocked
	case errors.As(err, &dns):
		return faultDNS
	case errors.As(err, &timeout) && timeout.Timeout():
		return faultTimeout
	case isTLS(err):
		return faultTLS
	}
	return faultConnect
}

func isTLS(err error) bool {
	var record tls.RecordHeaderError
	var certificate *tls.CertificateVerificationError
	var alert tls.AlertError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	return errors.As(err, &record) || errors.As(err, &certificate) || errors.As(err, &alert) || errors.As(err, &unknown) ||
		errors.As(err, &name) || strings.Contains(err.Error(), "server gave HTTP response to HTTPS client")
}

// retryAfter parses Retry-After: seconds or a date (RFC 9110 §10.2.3). Other values return 0.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil && seconds > 0 {
		return time.Duration(min(seconds, 7*24*3600)) * time.Second
	}
	if t, err := http.ParseTime(text); err == nil && t.After(now) {
		return t.Sub(now)
	}
	return 0
}
