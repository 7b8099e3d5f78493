package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	requestTimeout   = 90 * time.Second // for one request, including the retry
	maxResponseBytes = 16 << 20
	maxRetryDelay    = 5 * time.Second // maximum delay before the retry, whatever Retry-After asks for
)

// apiEndpoint is one endpoint of an OpenAI-compatible server.
type apiEndpoint struct {
	address string
	host    string
	key     string
	client  *http.Client
}

// statusError is a response with a status other than 2xx.
type statusError struct {
	status  int
	message string
	after   time.Duration
}

func (r *statusError) Error() string { return fmt.Sprintf("answered %d: %s", r.status, r.message) }

// isUnsupported reports whether the server rejected the form of the request (400, 415, 422 or 501): another form is
// worth trying.
func isUnsupported(err error) bool {
	var r *statusError
	return errors.As(err, &r) && (r.status == 400 || r.status == 415 || r.status == 422 || r.status == 501)
}

// isTransient reports whether the same request may succeed later (408, 429, and 5xx except 501).
func (r *statusError) isTransient() bool {
	return r.status == 429 || r.status == 408 || r.status >= 500 && r.status != 501
}

// post sends a request and decodes the JSON response. It retries transient errors once.
func (s *apiEndpoint) post(ctx context.Context, kind string, body []byte, answer any) error {
	text, err := s.fetch(ctx, kind, "application/json", body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("ask %s: answer is not the JSON expected: %w", s.host, err)
	}
	return nil
}

// fetch sends a request and returns the body of the response. want is the Accept header. It retries transient errors
// once.
func (s *apiEndpoint) fetch(ctx context.Context, kind, want string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	text, err := s.attempt(ctx, kind, want, body)
	var r *statusError
	if errors.As(err, &r) && r.isTransient() {
		pause := time.NewTimer(min(max(r.after, 200*time.Millisecond), maxRetryDelay))
		defer pause.Stop()
		select {
		case <-pause.C:
			text, err = s.attempt(ctx, kind, want, body)
		case <-ctx.Done():
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.host, err)
	}
	return text, nil
}

func (s *apiEndpoint) postJSON(ctx context.Context, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return s.post(ctx, "application/json", body, answer)
}

func (s *apiEndpoint) attempt(ctx context.Context, kind, want string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Accept", want)
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponseBytes))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode < 200 || response.StatusCode > 299 {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		return nil, &statusError{response.StatusCode, errorMessage(text), time.Duration(seconds) * time.Second}
	}
	return text, nil
}

// errorMessage returns the message in an error body, or the beginning of the body.
func errorMessage(body []byte) string {
	var e struct {
		Error struct{ Message string } `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		return truncateText(e.Error.Message, 300)
	}
	return truncateText(strings.Join(strings.Fields(string(body)), " "), 300)
}
