package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// shownCalls limits the number of calls of an organisation that a failed test prints.
const shownCalls = 3

// verbose reports whether a failed test also prints the output of phones: SONIQ_TEST_VERBOSE is set.
func verbose() bool { return os.Getenv("SONIQ_TEST_VERBOSE") != "" }

// showCalls logs the timelines of the newest calls of the client's organisation if the test has failed. It logs none
// if the server does not answer.
func (c *Client) showCalls() {
	if !c.T.Failed() || c.Server.command == nil {
		return
	}
	for _, path := range []string{"/calls?limit=", "/calls/live?limit="} {
		var page struct{ Data []struct{ ID string } }
		if c.peek(path+fmt.Sprint(shownCalls), &page) != nil {
			continue
		}
		for _, call := range page.Data[:min(len(page.Data), shownCalls)] {
			c.T.Logf("timeline of %s:\n%s", call.ID, c.timeline(call.ID))
		}
	}
}

// timeline returns the steps of a call, one per line.
func (c *Client) timeline(callID string) string {
	var page struct {
		Data []struct {
			At     time.Time
			Kind   string
			Detail json.RawMessage
		}
	}
	if err := c.peek("/calls/"+callID+"/events?limit=200", &page); err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, step := range page.Data {
		fmt.Fprintf(&text, "  %s %s %s\n", step.At.Format("15:04:05.000"), step.Kind, step.Detail)
	}
	return text.String()
}

// peek reads a resource without failing the test.
func (c *Client) peek(path string, out any) error {
	r, err := http.NewRequest("GET", "http://"+c.Server.HTTP+c.Prefix+path, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+c.Key)
	if c.As != "" {
		r.Header.Set("On-Behalf-Of", c.As)
	}
	answer, err := (&http.Client{Timeout: 5 * time.Second}).Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", path, answer.Status)
	}
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, out)
}
