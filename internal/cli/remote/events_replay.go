package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
)

type eventsReplayOptions struct {
	client
	since, until, kinds, delivery string
	all                           bool
}

func newEventsReplay() *cobra.Command {
	var o eventsReplayOptions
	cmd := &cobra.Command{
		Use: "replay [WEBHOOK]", Short: "send events to a webhook again",
		Long:    "Without WEBHOOK the only webhook of the organisation is used. Events that the webhook has received are left out unless --all is given.",
		Example: "  soniq events replay --since 2h\n  soniq events replay wh_… --delivery dlv_…",
		Args:    command.Words("[WEBHOOK]"), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, strings.Join(args, "")) },
	}
	f := cmd.Flags()
	f.StringVar(&o.since, "since", "", "from this time on: a duration before now such as 2h, a time, or a day")
	f.StringVar(&o.until, "until", "", "before this time; now unless given")
	f.StringVar(&o.kinds, "events", "", "only these kinds, with commas")
	f.BoolVar(&o.all, "all", false, "also events that the webhook has received")
	f.StringVar(&o.delivery, "delivery", "", "only this delivery, instead of a range")
	command.CompleteList(cmd, "events", command.EventKinds()...)
	for _, free := range []string{"since", "until", "delivery"} {
		command.CompleteFlag(cmd, free)
	}
	o.addFlags(cmd, "live")
	return cmd
}

func (o *eventsReplayOptions) run(cmd *cobra.Command, hook string) error {
	if (o.since == "") == (o.delivery == "") {
		return command.UsageErrorf(cmd, "say from when on with --since, such as --since 2h, or which --delivery")
	}
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	ctx := cmd.Context()
	if hook == "" {
		if hook, err = o.onlyWebhook(ctx); err != nil {
			return err
		}
	}
	if o.delivery != "" {
		return o.request(ctx, "POST", "/webhooks/"+url.PathEscape(hook)+"/deliveries/"+url.PathEscape(o.delivery)+"/replay", nil)
	}
	body := map[string]any{"only_failed": !o.all}
	if k := config.SplitList(o.kinds); len(k) > 0 {
		body["events"] = k
	}
	if err := setTimeRange(o.since, o.until, func(name, v string) { body[name] = v }); err != nil {
		return err
	}
	return o.replay(ctx, hook, body)
}

// onlyWebhook returns the id of the organisation's webhook. It is an error if there is none, or more than one.
func (o *eventsReplayOptions) onlyWebhook(ctx context.Context) (string, error) {
	var found []string
	err := o.eachRecord(ctx, "/webhooks", url.Values{}, 100, func(raw json.RawMessage) error {
		var w struct{ ID, URL string }
		err := json.Unmarshal(raw, &w)
		found = append(found, w.ID+" ("+printable(w.URL)+")")
		return err
	})
	switch {
	case err != nil:
		return "", err
	case len(found) == 0:
		return "", command.Fail(command.ExitNotFound, errors.New("there is no webhook; POST /webhooks creates one"))
	case len(found) > 1:
		return "", command.Fail(command.ExitUsage, fmt.Errorf("there are several webhooks; say which: %s", strings.Join(found, ", ")))
	}
	id, _, _ := strings.Cut(found[0], " ")
	return id, nil
}

// replay replays a range of events. The server queues a part of the range with each request.
func (o *eventsReplayOptions) replay(ctx context.Context, hook string, body map[string]any) error {
	total := 0
	for {
		var part struct {
			Queued int
			Next   *int64 `json:"next_after_sequence"`
		}
		if err := o.do(ctx, "POST", "/webhooks/"+url.PathEscape(hook)+"/replay", body, &part); err != nil {
			return err
		}
		if total += part.Queued; part.Next == nil {
			break
		}
		fmt.Fprintf(o.note, "%d events so far\n", total)
		body["after_sequence"] = *part.Next
	}
	if o.json {
		return o.printJSON(map[string]any{"webhook_id": hook, "queued": total})
	}
	fmt.Fprintf(o.out, "%d events are sent to %s again\n", total, hook)
	return nil
}
