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

	"soniq/internal/platform/strictjson"
)

const (
	requestTimeout   = 90 * time.Second // for one request, including the retry
	maxResponseBytes = 16 << 20
	maxRetryDelay    = 5 * time.Second // maximum delay before the retry, whatever Retry-After asks for
)

// Endpoint is one endpoint of an OpenAI-compatible server.
type Endpoint struct {
	address string
	Host    string
	key     string
	client  *http.Client
}

// StatusError is a response with a status other than 2xx.
type StatusError struct {
	Status  int
	Message string
	after   time.Duration
}

func (r *StatusError) Error() string { return fmt.Sprintf("answered %d: %s", r.Status, r.Message) }

// IsUnsupported reports whether the server rejected the form of the request (400, 415, 422 or 501): another form is
// worth trying.
func IsUnsupported(err error) bool {
	var r *StatusError
	return errors.As(err, &r) && (r.Status == 400 || r.Status == 415 || r.Status == 422 || r.Status == 501)
}

// IsTransient reports whether the same request may succeed later (408, 429, and 5xx except 501).
func (r *StatusError) IsTransient() bool {
	return r.Status == 429 || r.Status == 408 || r.Status >= 500 && r.Status != 501
}

// Post sends a request and decodes the JSON response. It retries transient errors once.
func (s *Endpoint) Post(ctx context.Context, kind string, body []byte, answer any) error {
	text, err := s.Fetch(ctx, kind, "application/json", body)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(strictjson.ShortenDamaged(text), answer); err != nil {
		return fmt.Errorf("ask %s: answer is not the JSON expected: %w", s.Host, err)
	}
	return nil
}

// Fetch sends a request and returns the body of the response. want is the Accept header. It retries transient errors
// once.
func (s *Endpoint) Fetch(ctx context.Context, kind, want string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	text, err := s.attempt(ctx, kind, want, body)
	var r *StatusError
	if errors.As(err, &r) && r.IsTransient() {
		pause := time.NewTimer(min(max(r.after, 200*time.Millisecond), maxRetryDelay))
		defer pause.Stop()
		select {
		case <-pause.C:
			text, err = s.attempt(ctx, kind, want, body)
		case <-ctx.Done():
		}
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.Host, err)
	}
	return text, nil
}

// PostJSON sends a request as JSON and decodes the JSON response.
func (s *Endpoint) PostJSON(ctx context.Context, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	return s.Post(ctx, "application/json", body, answer)
}

// attempt sends a request once and returns the body of the response.
func (s *Endpoint) attempt(ctx context.Context, kind, want string, body []byte) ([]byte, error) {
	response, err := s.send(ctx, kind, want, body)
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
		return nil, &StatusError{response.StatusCode, errorMessage(text), time.Duration(seconds) * time.Second}
	}
	return text, nil
}

// Stream sends a request for a stream of events and returns the body of the response, which the caller must close. It
// does not retry.
func (s *Endpoint) Stream(ctx context.Context, body []byte) (io.ReadCloser, error) {
	response, err := s.send(ctx, "application/json", "text/event-stream", body)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", s.Host, err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10))
		return nil, fmt.Errorf("ask %s: %w", s.Host, &StatusError{Status: response.StatusCode, Message: errorMessage(text)})
	}
	return response.Body, nil
}

func (s *Endpoint) send(ctx context.Context, kind, want string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Accept", want)
	if s.key != "" {
		request.Header.Set("Authorization", "Bearer "+s.key)
	}
	return s.client.Do(request)
}

// errorMessage returns the message in an error body, or the beginning of the body.
func errorMessage(body []byte) string {
	var e struct {
		Error struct{ Message string } `json:"error"`
	}
	if json.Unmarshal(body, &e) == nil && e.Error.Message != "" {
		return TruncateText(e.Error.Message, 300)
	}
	return TruncateText(strings.Join(strings.Fields(string(body)), " "), 300)
}
