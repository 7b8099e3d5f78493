package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

// NewNumbers returns the command numbers. others are commands below it that do not use the API.
func NewNumbers(others ...*cobra.Command) *cobra.Command {
	ours := []*cobra.Command{newNumbersList(), newNumbersGet(), newNumbersAssign()}
	return command.EndsWithUsage(command.Group("numbers", "list numbers, and set where calls to them go", append(ours, others...)...))
}

func numberRow(raw json.RawMessage) ([]string, error) {
	var n struct {
		ID, Number, Status, Label string
		AssignedTo                struct{ Type, ID, Name string } `json:"assigned_to"`
	}
	err := json.Unmarshal(raw, &n)
	to := strings.TrimSpace(n.AssignedTo.Type + " " + cmp.Or(n.AssignedTo.Name, n.AssignedTo.ID))
	return []string{n.Number, n.Status, to, n.Label, n.ID}, err
}

// number returns the record of a number. text is the id, the number, or its last digits.
func (c *client) number(ctx context.Context, text string) (raw json.RawMessage, err error) {
	if strings.HasPrefix(text, "num_") {
		return raw, c.do(ctx, "GET", "/numbers/"+url.PathEscape(text), nil, &raw)
	}
	digits := strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, text)
	if digits == "" {
		return nil, command.Fail(command.ExitUsage, fmt.Errorf("%q is neither a number nor the id of one", text))
	}
	var found []json.RawMessage
	var names []string
	err = c.eachRecord(ctx, "/numbers", url.Values{"q": {digits}}, 200, func(one json.RawMessage) error {
		var n struct{ Number string }
		err := json.Unmarshal(one, &n)
		if strings.HasSuffix(n.Number, digits) {
			found, names = append(found, one), append(names, n.Number)
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, command.Fail(command.ExitNotFound,
			fmt.Errorf("the organisation has no number %s; soniq numbers list shows those it has", text))
	case len(found) > 1:
		return nil, command.Fail(command.ExitUsage, fmt.Errorf("%s may be several numbers: %s", text, strings.Join(names, ", ")))
	}
	return found[0], nil
}

// userID returns the id of a user. text is the id, the extension or the e-mail address.
func (c *client) userID(ctx context.Context, text string) (string, error) {
	if strings.HasPrefix(text, "usr_") {
		return text, nil
	}
	id := ""
	err := c.eachRecord(ctx, "/users", url.Values{"q": {text}}, 200, func(raw json.RawMessage) error {
		var u struct{ ID, Extension, Email string }
		err := json.Unmarshal(raw, &u)
		if u.Extension == text || strings.EqualFold(u.Email, text) {
			id = u.ID
		}
		return err
	})
	if err == nil && id == "" {
		err = command.Fail(command.ExitNotFound, fmt.Errorf("there is no user with the extension or e-mail address %s", text))
	}
	return id, err
}
