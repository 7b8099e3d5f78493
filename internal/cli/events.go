package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"

	"soniq/internal/config"
)

// sub is a command below another.
type sub struct {
	name, help string
	run        func(ctx context.Context, args []string) error
}

// choose runs the command that the first word names.
func choose(ctx context.Context, command string, args []string, all []sub) error {
	if len(args) > 0 {
		for _, s := range all {
			if s.name == args[0] {
				return s.run(ctx, args[1:])
			}
		}
	}
	var text strings.Builder
	for _, s := range all {
		fmt.Fprintf(&text, "  soniq %s %-8s %s\n", command, s.name, s.help)
	}
	if len(args) > 0 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
		fmt.Print(text.String())
		return flag.ErrHelp
	}
	return &failure{exitUsage, fmt.Errorf("%s: say what to do:\n%s", command, strings.TrimRight(text.String(), "\n"))}
}

func eventsCommand(ctx context.Context, args []string) error {
	return choose(ctx, "events", args, []sub{
		{"list", "what happened, in its order: list [--kind K] [--call ID] [--since 2h] [--after SEQUENCE]", eventsList},
		{"replay", "send events to a webhook again: replay [WEBHOOK] --since 2h [--all], or replay WEBHOOK --delivery ID", eventsReplay},
	})
}

func eventsList(ctx context.Context, args []string) error {
	var r remote
	var kind, call, since, until, after string
	var limit int
	words, err := r.parse("events list", "", args, "live", func(fs *flag.FlagSet) {
		fs.StringVar(&kind, "kind", "", "only these kinds, with commas")
		fs.StringVar(&call, "call", "", "only of this call")
		fs.StringVar(&since, "since", "", "from this time on: how long ago, such as 2h, a time, or a day")
		fs.StringVar(&until, "until", "", "before this time")
		fs.StringVar(&after, "after", "", "only behind this sequence")
		fs.IntVar(&limit, "limit", 50, "at most so many; 0: all")
	})
	if err == nil {
		err = wants("events list", words)
	}
	if err != nil {
		return err
	}
	q := url.Values{}
	for name, v := range map[string]string{"kind": strings.Join(config.SplitList(kind), ","), "call_id": call, "after_sequence": after} {
		if v != "" {
			q.Set(name, v)
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
	return r.list(ctx, "/events", q, most(limit), "SEQUENCE TIME EVENT ID CALL", eventRow)
}

// most is a limit; 0 is none.
func most(limit int) int {
	if limit <= 0 {
		return math.MaxInt
	}
	return limit
}

func eventRow(raw json.RawMessage) ([]string, error) {
	var e struct {
		Sequence   int64
		Kind, ID   string
		CallID     string `json:"call_id"`
		OccurredAt string `json:"occurred_at"`
	}
	err := json.Unmarshal(raw, &e)
	return []string{strconv.FormatInt(e.Sequence, 10), clock(e.OccurredAt), e.Kind, e.ID, e.CallID}, err
}

func eventsReplay(ctx context.Context, args []string) error {
	var r remote
	var since, until, kinds, delivery string
	var all bool
	words, err := r.parse("events replay", "[WEBHOOK]", args, "live", func(fs *flag.FlagSet) {
		fs.StringVar(&since, "since", "", "from this time on: how long ago, such as 2h, a time, or a day")
		fs.StringVar(&until, "until", "", "before this time; now unless given")
		fs.StringVar(&kinds, "events", "", "only these kinds, with commas")
		fs.BoolVar(&all, "all", false, "also events that the webhook has received")
		fs.StringVar(&delivery, "delivery", "", "only this delivery, instead of a range")
	})
	if err != nil {
		return err
	}
	if (since == "") == (delivery == "") {
		return &failure{exitUsage, errors.New("events replay: say from when on with --since, such as --since 2h, or which --delivery")}
	}
	done, err := r.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	hook, err := r.hook(ctx, words)
	if err != nil {
		return err
	}
	if delivery != "" {
		var answer json.RawMessage
		if err := r.do(ctx, "POST", "/webhooks/"+url.PathEscape(hook)+"/deliveries/"+url.PathEscape(delivery)+"/replay", nil, &answer); err != nil {
			return err
		}
		return r.record(answer)
	}
	body := map[string]any{"only_failed": !all}
	if k := config.SplitList(kinds); len(k) > 0 {
		body["events"] = k
	}
	if err := spanOf(since, until, func(name, v string) { body[name] = v }); err != nil {
		return err
	}
	return r.replay(ctx, hook, body)
}

// hook is the webhook that was named, or the only one there is.
func (r *remote) hook(ctx context.Context, words []string) (string, error) {
	if len(words) > 0 {
		return words[0], wants("events replay", words, "WEBHOOK")
	}
	var found []string
	err := r.records(ctx, "/webhooks", url.Values{}, 100, func(raw json.RawMessage) error {
		var w struct{ ID, URL string }
		err := json.Unmarshal(raw, &w)
		found = append(found, w.ID+" ("+tidy(w.URL)+")")
		return err
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", &failure{exitNotFound, errors.New("there is no webhook")}
	case len(found) > 1:
		return "", &failure{exitUsage, fmt.Errorf("there are several webhooks; say which: %s", strings.Join(found, ", "))}
	}
	id, _, _ := strings.Cut(found[0], " ")
	return id, nil
}

// replay asks for the range piece by piece.
func (r *remote) replay(ctx context.Context, hook string, body map[string]any) error {
	total := 0
	for {
		var piece struct {
			Queued int
			Next   *int64 `json:"next_after_sequence"`
		}
		if err := r.do(ctx, "POST", "/webhooks/"+url.PathEscape(hook)+"/replay", body, &piece); err != nil {
			return err
		}
		if total += piece.Queued; piece.Next == nil {
			break
		}
		fmt.Fprintf(r.note, "%d events so far\n", total)
		body["after_sequence"] = *piece.Next
	}
	if r.json {
		return r.line(map[string]any{"webhook_id": hook, "queued": total})
	}
	fmt.Fprintf(r.out, "%d events are sent to %s again\n", total, hook)
	return nil
}
