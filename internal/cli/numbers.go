package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"strings"
)

func numbersCommand(ctx context.Context, args []string) error {
	return choose(ctx, "numbers", args, []sub{
		{"list", "the organisation's numbers and where they lead", numbersList},
		{"get", "get NUMBER: everything about one", numbersGet},
		{"assign", "assign NUMBER --user U | --flow ID | --queue ID | --nobody: where calls to it go", numbersAssign},
	})
}

func numbersList(ctx context.Context, args []string) error {
	var r remote
	words, err := r.parse("numbers list", "", args, "live", nil)
	if err == nil {
		err = wants("numbers list", words)
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	return r.list(ctx, "/numbers", url.Values{}, most(0), "NUMBER STATUS LEADS_TO LABEL ID", numberRow)
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

func numbersGet(ctx context.Context, args []string) error {
	var r remote
	words, err := r.parse("numbers get", "NUMBER", args, "live", nil)
	if err == nil {
		err = wants("numbers get", words, "NUMBER")
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	raw, err := r.number(ctx, words[0])
	if err != nil {
		return err
	}
	return r.record(raw)
}

// number reads a number by its id or by itself.
func (r *remote) number(ctx context.Context, text string) (raw json.RawMessage, err error) {
	if strings.HasPrefix(text, "num_") {
		return raw, r.do(ctx, "GET", "/numbers/"+url.PathEscape(text), nil, &raw)
	}
	digits := strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, text)
	if digits == "" {
		return nil, &failure{exitUsage, fmt.Errorf("%q is neither a number nor the id of one", text)}
	}
	var found []json.RawMessage
	var names []string
	err = r.records(ctx, "/numbers", url.Values{"q": {digits}}, 200, func(one json.RawMessage) error {
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
		return nil, &failure{exitNotFound, fmt.Errorf("the organisation has no number %s; soniq numbers list shows those it has", text)}
	case len(found) > 1:
		return nil, &failure{exitUsage, fmt.Errorf("%s may be several numbers: %s", text, strings.Join(names, ", "))}
	}
	return found[0], nil
}

func numbersAssign(ctx context.Context, args []string) error {
	var r remote
	var user, flow, queue string
	var nobody bool
	words, err := r.parse("numbers assign", "NUMBER", args, "live", func(fs *flag.FlagSet) {
		fs.StringVar(&user, "user", "", "to this user's phones: id, extension or e-mail address")
		fs.StringVar(&flow, "flow", "", "to this flow")
		fs.StringVar(&queue, "queue", "", "to this queue")
		fs.BoolVar(&nobody, "nobody", false, "calls to it are not taken")
	})
	if err == nil {
		err = wants("numbers assign", words, "NUMBER")
	}
	if err != nil {
		return err
	}
	if given(user)+given(flow)+given(queue) != map[bool]int{false: 1, true: 0}[nobody] {
		return &failure{exitUsage, errors.New("numbers assign: say one of --user, --flow, --queue or --nobody")}
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	raw, err := r.number(ctx, words[0])
	if err != nil {
		return err
	}
	var n struct{ ID string }
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	body, err := r.target(ctx, user, flow, queue)
	if err != nil {
		return err
	}
	if err := r.do(ctx, "PATCH", "/numbers/"+url.PathEscape(n.ID), body, &raw); err != nil {
		return err
	}
	if r.json {
		return r.line(raw)
	}
	cells, err := numberRow(raw)
	if err != nil {
		return err
	}
	fmt.Fprintf(r.out, "%s leads to %s\n", cells[0], tidy(cells[2]))
	return nil
}

func given(text string) int {
	if text == "" {
		return 0
	}
	return 1
}

// target is the change of a number that makes calls go there; to nobody where nothing is named.
func (r *remote) target(ctx context.Context, user, flow, queue string) (map[string]any, error) {
	switch {
	case user != "":
		id, err := r.user(ctx, user)
		return map[string]any{"user_id": id}, err
	case flow != "":
		return map[string]any{"flow_id": flow}, nil
	case queue != "":
		return map[string]any{"queue_id": queue}, nil
	}
	return map[string]any{"user_id": nil, "flow_id": nil, "queue_id": nil}, nil
}

// user is the id of a user by id, extension or e-mail address.
func (r *remote) user(ctx context.Context, text string) (string, error) {
	if strings.HasPrefix(text, "usr_") {
		return text, nil
	}
	id := ""
	err := r.records(ctx, "/users", url.Values{"q": {text}}, 200, func(raw json.RawMessage) error {
		var u struct{ ID, Extension, Email string }
		err := json.Unmarshal(raw, &u)
		if u.Extension == text || strings.EqualFold(u.Email, text) {
			id = u.ID
		}
		return err
	})
	if err == nil && id == "" {
		err = &failure{exitNotFound, fmt.Errorf("there is no user with the extension or e-mail address %s", text)}
	}
	return id, err
}
