package remote

import (
	"encoding/json"
	"strconv"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

func NewEvents() *cobra.Command {
	return command.EndsWithUsage(command.Group("events", "list events, and send them to a webhook again", newEventsList(),
		newEventsReplay()))
}

func eventRow(raw json.RawMessage) ([]string, error) {
	var e struct {
		Sequence   int64
		Kind, ID   string
		CallID     string `json:"call_id"`
		OccurredAt string `json:"occurred_at"`
	}
	err := json.Unmarshal(raw, &e)
	return []string{strconv.FormatInt(e.Sequence, 10), localTime(e.OccurredAt), e.Kind, e.ID, e.CallID}, err
}
