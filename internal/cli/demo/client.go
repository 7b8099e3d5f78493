package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// client uses a soniq by its public API.
type client struct {
	base, key string
}

// do sends a request and decodes the JSON response into out. If out is nil the response is discarded.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.key)
	if in != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := (&http.Client{Timeout: 30 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 300 {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4096))
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, bytes.TrimSpace(text))
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(out)
}
