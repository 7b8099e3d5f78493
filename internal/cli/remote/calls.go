package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

func NewCalls() *cobra.Command {
	return command.EndsWithUsage(command.Group("calls", "list, watch, end and place calls", newCallsList(), newCallsGet(), newCallsWatch(),
		newCallsEnd(), newCallsDial()))
}

// callFields are the members of a call that tables and lines show.
type callFields struct {
	ID, Direction, Status string
	From                  string `json:"from_number"`
	To                    string `json:"to_number"`
	Started               string `json:"started_at"`
	Talk                  int    `json:"talk_duration_seconds"`
	EndReason             string `json:"end_reason"`
	Ended                 string `json:"ended_at"`
}

func callRow(raw json.RawMessage) ([]string, error) {
	var c callFields
	err := json.Unmarshal(raw, &c)
	return []string{localTime(c.Started), c.Direction, c.From, c.To, c.Status, fmt.Sprintf("%d s", c.Talk), c.ID}, err
}

// callPath returns the path of a call.
func callPath(id string) string { return "/calls/" + url.PathEscape(id) }

// request sends a request and prints the record in the response.
func (c *client) request(ctx context.Context, method, path string, body any) error {
	var raw json.RawMessage
	if err := c.do(ctx, method, path, body, &raw); err != nil {
		return err
	}
	return c.printRecord(raw)
}
