package remote

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/api/eventstream"
	"soniq/internal/api/webhook"
	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/platform/db"
)

// listenOptions follow the live stream and send each event to an address on this machine, as a webhook would: in the same form and signed.
type listenOptions struct {
	client
	to          string // "": events are only shown
	events      string
	timing      string
	after       string
	secret      string
	headers     map[string]string
	insecure    bool
	printSecret bool
	count       int

	prefix   string // of the headers of webhooks
	http     *http.Client
	handled  int
	rejected int // events that the address did not accept
}

func NewListen() *cobra.Command {
	o := listenOptions{headers: map[string]string{}}
	cmd := &cobra.Command{
		Use: "listen", Short: "send events to an address on this machine, signed like webhooks",
		Example: "  soniq listen --forward-to http://localhost:3000/hook --events call.ended,call.missed",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.listen(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.to, "forward-to", "", "address for the events, such as http://localhost:3000/hook; without it they are only shown")
	f.StringVar(&o.events, "events", "*", "kinds, with commas, such as call.ended,call.missed")
	f.StringVar(&o.timing, "call-ended", "enriched", "when call.ended comes: enriched or immediate")
	f.StringVar(&o.after, "after", "", "begin after this sequence instead of now; 0 begins 30 days ago")
	f.StringVar(&o.secret, "secret", "", "sign with this whsec_ secret instead of the secret that belongs to the key")
	f.Func("header", "further header 'Name: value' of each request; may be repeated", o.addHeader)
	f.BoolVar(&o.insecure, "insecure", false, "accept any certificate of --forward-to")
	f.BoolVar(&o.printSecret, "print-secret", false, "print the secret and end")
	f.IntVar(&o.count, "count", 0, "end after this number of events; with 1 if one of them was refused")
	command.CompleteList(cmd, "events", append([]string{"*"}, command.EventKinds()...)...)
	command.CompleteFlag(cmd, "call-ended", "enriched", "immediate")
	for _, free := range []string{"forward-to", "after", "secret", "header", "count"} {
		command.CompleteFlag(cmd, free)
	}
	o.addFlags(cmd, "test")
	return cmd
}

func (o *listenOptions) addHeader(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(text, "\r\n") {
		return errors.New("must be 'Name: value'")
	}
	o.headers[name] = strings.TrimSpace(value)
	return nil
}

func (o *listenOptions) check(cmd *cobra.Command) error {
	switch {
	case o.to != "" && !config.IsWebURL(o.to):
		return command.UsageErrorf(cmd, "--forward-to %q must be an address such as http://localhost:3000/hook", o.to)
	case o.timing != "enriched" && o.timing != "immediate":
		return command.UsageErrorf(cmd, "--call-ended must be enriched or immediate")
	case o.secret != "" && !webhook.IsSecret(o.secret):
		return command.UsageErrorf(cmd, "--secret must be whsec_ and base64")
	}
	for _, k := range config.SplitList(o.events) {
		if k != "*" {
			if err := checkKind(cmd, k); err != nil {
				return err
			}
		}
	}
	return nil
}

// listen checks the flags, connects, and prints the secret or follows the stream.
func (o *listenOptions) listen(cmd *cobra.Command) error {
	if err := o.check(cmd); err != nil {
		return err
	}
	done, err := o.connect(cmd)
	if err != nil {
		return err
	}
	defer done()
	o.secret = cmp.Or(o.secret, o.hookSecret, secretOf(o.key))
	if o.printSecret {
		fmt.Fprintln(o.out, o.secret)
		return nil
	}
	return o.run(cmd.Context())
}

// secretOf returns the webhook secret that belongs to a key. It is constant as long as the key is, and cannot be derived without the key.
func secretOf(key string) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte("secret of soniq listen"))
	return webhook.SecretFrom(m.Sum(nil))
}

// run follows the stream until the context or --count ends it.
func (o *listenOptions) run(ctx context.Context) error {
	var me struct {
		Organization struct{ Name string }
		Environment  string
	}
	if err := o.do(ctx, "GET", "/me", nil, &me); err != nil {
		return err
	}
	var catalogue struct {
		Prefix string `json:"header_prefix"`
	}
	if err := o.do(ctx, "GET", "/webhooks/events", nil, &catalogue); err != nil {
		return err
	}
	o.prefix = cmp.Or(catalogue.Prefix, "x-service")
	o.http = &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	},
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: o.insecure}}}
	source := map[string]string{"live": "", "test": "the sandbox of "}[me.Environment] + me.Organization.Name
	started := false
	err := o.follow(ctx, o.query(), func() {
		if !started {
			o.printStart(source)
		}
		started = true
	}, func(m streamEvent) error { return o.handle(ctx, m) })
	if err == nil && o.count > 0 && o.rejected > 0 {
		return command.Fail(command.ExitFailed, fmt.Errorf("%d of %d events were refused", o.rejected, o.handled))
	}
	return err
}

func (o *listenOptions) query() url.Values {
	q := url.Values{"format": {"webhook"}, "call_ended_timing": {o.timing}}
	if o.after != "" {
		q.Set("after_sequence", o.after)
	}
	if kinds := config.SplitList(o.events); len(kinds) > 0 && !strings.Contains(o.events, "*") {
		q.Set("events", strings.Join(kinds, ","))
	}
	return q
}

// printStart prints the source of the events and the signing secret.
func (o *listenOptions) printStart(source string) {
	fmt.Fprintf(o.note, "listening to %s at %s\n", printable(source), o.url)
	fmt.Fprintf(o.note, "signing secret: %s\n", o.secret)
	if o.to != "" {
		fmt.Fprintf(o.note, "forwarding to %s; Ctrl-C ends\n", o.to)
	}
}

// forwarded is one event and the outcome of forwarding it.
type forwarded struct {
	Time       string `json:"time"`
	Event      string `json:"event"`
	ID         string `json:"id"`
	Sequence   int64  `json:"sequence"`
	Status     int    `json:"status,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty"`
	Answer     string `json:"response,omitempty"` // its beginning, if the event was refused
	Body       any    `json:"body"`
}

// handle forwards one event and prints the outcome.
func (o *listenOptions) handle(ctx context.Context, m streamEvent) error {
	var h eventstream.WebhookMessage
	if err := json.Unmarshal([]byte(m.data), &h); err != nil {
		return fmt.Errorf("an event of the stream cannot be read: %w", err)
	}
	started := time.Now()
	x := forwarded{Time: started.Format(time.RFC3339), Event: m.event, ID: h.ID, Sequence: h.Sequence, Body: json.RawMessage(h.Body)}
	if o.to != "" {
		o.forward(ctx, m.event, h, &x)
		x.DurationMS = time.Since(started).Milliseconds()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.handled++; x.Error != "" || x.Status >= 300 {
		o.rejected++
	}
	if err := o.show(x, started); err != nil {
		return err
	}
	if o.handled == o.count {
		return errStop
	}
	return nil
}

func (o *listenOptions) forward(ctx context.Context, kind string, h eventstream.WebhookMessage, x *forwarded) {
	q, err := webhook.Message{Prefix: o.prefix, EventID: h.ID, Kind: kind, DeliveryID: db.NewID("dlv"), Attempt: 1, Sequence: h.Sequence,
		Body: h.Body, Secret: o.secret, Headers: o.headers}.Request(ctx, o.to, time.Now())
	if err != nil {
		x.Error = err.Error()
		return
	}
	response, err := o.http.Do(q)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		x.Error = err.Error()
		return
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 2<<10))
	if x.Status = response.StatusCode; x.Status >= 300 {
		x.Answer = strings.TrimSpace(string(body))
	}
}

func (o *listenOptions) show(x forwarded, at time.Time) error {
	if o.json {
		return o.printJSON(x)
	}
	text := fmt.Sprintf("%s  %-19s %s", at.Format("15:04:05"), x.Event, x.ID)
	switch {
	case x.Error != "":
		text += "  → " + printable(x.Error)
	case x.Status != 0:
		text += fmt.Sprintf("  → %d %s  %d ms", x.Status, http.StatusText(x.Status), x.DurationMS)
	}
	if x.Answer != "" {
		text += "  " + printable(x.Answer[:min(len(x.Answer), 120)])
	}
	_, err := fmt.Fprintln(o.out, text)
	return err
}
