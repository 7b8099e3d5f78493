package crash_test

import (
	"encoding/json"
	"iter"
	"net/url"
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// list reads a list to its end.
func list[T any](t *testing.T, c *rig.Client, path string) iter.Seq[T] {
	t.Helper()
	return func(yield func(T) bool) {
		cursor := ""
		for {
			separator := "?"
			if strings.Contains(path, "?") {
				separator = "&"
			}
			r := c.Do("GET", path+separator+"cursor="+url.QueryEscape(cursor), nil)
			var page struct {
				Data       []T     `json:"data"`
				NextCursor *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(r.Body, &page); err != nil || r.Status != 200 {
				t.Fatalf("GET %s: %d %v %.300s", path, r.Status, err, r.Body)
			}
			for _, x := range page.Data {
				if !yield(x) {
					return
				}
			}
			if page.NextCursor == nil {
				return
			}
			cursor = *page.NextCursor
		}
	}
}

// record is a call detail record of the API.
type record struct {
	ID        string     `json:"id"`
	CallID    string     `json:"call_id"`
	From      string     `json:"from_number"`
	Status    string     `json:"status"`
	Reason    string     `json:"end_reason"`
	Started   time.Time  `json:"started_at"`
	Answered  *time.Time `json:"answered_at"`
	Ended     time.Time  `json:"ended_at"`
	Recording *string    `json:"recording_url"`
}

// audio is a recording of the API.
type audio struct {
	ID        string    `json:"id"`
	CallID    string    `json:"call_id"`
	Status    string    `json:"status"`
	SHA256    *string   `json:"sha256"`
	SizeBytes int       `json:"size_bytes"`
	Started   time.Time `json:"started_at"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// delivery is a webhook delivery to the receiver.
type delivery struct {
	ID, Status string
	Event      string `json:"event"`
}
