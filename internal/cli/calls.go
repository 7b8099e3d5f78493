package cli

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"strings"
)

func callsCommand(ctx context.Context, args []string) error {
	return choose(ctx, "calls", args, []sub{
		{"list", "calls, newest first: list [--status S] [--direction D] [--phone N] [--since 2h]", callsList},
		{"get", "get CALL: everything about one", callsGet},
		{"watch", "watch [CALL]: what happens, while it happens; of one call until it ends", callsWatch},
		{"end", "end CALL: hang up", callsEnd},
		{"dial", "dial NUMBER [--user U] [--from N] [--wait]: ring a user's phones, then the number", callsDial},
	})
}

func callsList(ctx context.Context, args []string) error {
	var r remote
	var since, until string
	var limit int
	filters := map[string]*string{}
	words, err := r.parse("calls list", "", args, "live", func(fs *flag.FlagSet) {
		for name, help := range map[string]string{"status": "only in these states, with commas, such as in_progress", "direction": "inbound, outbound or internal",
			"phone": "only with this number on either side", "tag": "only with this tag"} {
			filters[name] = fs.String(name, "", help)
		}
		fs.StringVar(&since, "since", "", "from this time on: how long ago, such as 2h, a time, or a day")
		fs.StringVar(&until, "until", "", "before this time")
		fs.IntVar(&limit, "limit", 50, "at most so many; 0: all")
	})
	if err == nil {
		err = wants("calls list", words)
	}
	if err != nil {
		return err
	}
	q := url.Values{}
	for name, v := range filters {
		if *v != "" {
			q.Set(name, *v)
		}
	}
	if err := spanOf(since, until, q.Set); err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	return r.list(ctx, "/calls", q, most(limit), "STARTED DIRECTION FROM TO STATUS TALK ID", callRow)
}

// callFacts are the members of a call that tables and lines show.
type callFacts struct {
	ID, Direction, Status string
	From                  string `json:"from_number"`
	To                    string `json:"to_number"`
	Started               string `json:"started_at"`
	Talk                  int    `json:"talk_duration_seconds"`
	EndReason             string `json:"end_reason"`
	Ended                 string `json:"ended_at"`
}

func callRow(raw json.RawMessage) ([]string, error) {
	var c callFacts
	err := json.Unmarshal(raw, &c)
	return []string{clock(c.Started), c.Direction, c.From, c.To, c.Status, fmt.Sprintf("%d s", c.Talk), c.ID}, err
}

// oneCall is what the commands about one call share: it asks for the call and prints it.
func oneCall(ctx context.Context, name string, args []string, more func(*flag.FlagSet), do func(r *remote, path string) (json.RawMessage, error)) error {
	var r remote
	words, err := r.parse("calls "+name, "CALL", args, "live", more)
	if err == nil {
		err = wants("calls "+name, words, "CALL")
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	raw, err := do(&r, "/calls/"+url.PathEscape(words[0]))
	if err != nil {
		return err
	}
	return r.record(raw)
}

func callsGet(ctx context.Context, args []string) error {
	return oneCall(ctx, "get", args, nil, func(r *remote, path string) (raw json.RawMessage, err error) {
		return raw, r.do(ctx, "GET", path, nil, &raw)
	})
}

func callsEnd(ctx context.Context, args []string) error {
	var reason string
	return oneCall(ctx, "end", args, func(fs *flag.FlagSet) {
		fs.StringVar(&reason, "reason", "", "why, for the record")
	}, func(r *remote, path string) (raw json.RawMessage, err error) {
		body := map[string]any{}
		if reason != "" {
			body["reason"] = reason
		}
		return raw, r.do(ctx, "POST", path+"/end", body, &raw)
	})
}

func callsWatch(ctx context.Context, args []string) error {
	var r remote
	words, err := r.parse("calls watch", "[CALL]", args, "live", nil)
	if err == nil && len(words) > 0 {
		err = wants("calls watch", words, "CALL")
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	if len(words) == 0 {
		return r.watch(ctx, "")
	}
	return r.watch(ctx, words[0])
}

func callsDial(ctx context.Context, args []string) error {
	var r remote
	var user, from string
	var wait bool
	words, err := r.parse("calls dial", "NUMBER", args, "live", func(fs *flag.FlagSet) {
		fs.StringVar(&user, "user", "", "whose phones ring first: id, extension or e-mail address; the key's user unless given")
		fs.StringVar(&from, "from", "", "a number of yours to show")
		fs.BoolVar(&wait, "wait", false, "tell how it goes until it ends; end with 1 where nobody was connected")
	})
	if err == nil {
		err = wants("calls dial", words, "NUMBER")
	}
	if err != nil {
		return err
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	body := map[string]any{"to": words[0]}
	if user != "" {
		if body["user_id"], err = r.user(ctx, user); err != nil {
			return err
		}
	}
	if from != "" {
		body["from"] = from
	}
	var raw json.RawMessage
	if err := r.do(ctx, "POST", "/calls", body, &raw); err != nil {
		return err
	}
	if !wait {
		return r.record(raw)
	}
	return r.dialled(ctx, raw)
}

// dialled watches a call that was just placed.
func (r *remote) dialled(ctx context.Context, raw json.RawMessage) error {
	var c callFacts
	if err := json.Unmarshal(raw, &c); err != nil {
		return err
	}
	fmt.Fprintf(r.note, "%s: %s\n", c.ID, c.Status)
	if err := r.watch(ctx, c.ID); err != nil || ctx.Err() != nil {
		return err
	}
	if err := r.do(ctx, "GET", "/calls/"+c.ID, nil, &c); err != nil {
		return err
	}
	if c.Status != "completed" {
		return &failure{exitFailed, fmt.Errorf("nobody was connected: %s", strings.TrimSpace(c.Status+" "+c.EndReason))}
	}
	return nil
}
