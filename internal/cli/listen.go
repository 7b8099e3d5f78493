package cli

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"soniq/internal/api/eventstream"
	"soniq/internal/api/webhook"
	"soniq/internal/config"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// listener is a webhook on the developer's machine, without an endpoint of its own: it follows the live stream, and sends what
// webhooks would be sent, signed as they are.
type listener struct {
	remote
	to       string // "" : only shown
	events   string
	timing   string
	after    string
	secret   string
	headers  map[string]string
	insecure bool
	print    bool
	count    int

	prefix string
	client *http.Client
	told   int
	bad    int
}

func listenCommand(ctx context.Context, args []string) error {
	l := &listener{headers: map[string]string{}}
	words, err := l.parse("listen", "", args, "test", l.flags)
	if err == nil {
		err = wants("listen", words)
	}
	if err == nil {
		err = l.check()
	}
	if err != nil {
		return err
	}
	done, err := l.connect(ctx)
	if err != nil {
		return err
	}
	defer done()
	l.secret = cmp.Or(l.secret, l.remote.secret, secretOf(l.key))
	if l.print {
		fmt.Fprintln(l.out, l.secret)
		return nil
	}
	return l.run(ctx)
}

func (l *listener) flags(fs *flag.FlagSet) {
	fs.StringVar(&l.to, "forward-to", "", "address on this machine that events are sent to, such as http://localhost:3000/hook; without it they are only shown")
	fs.StringVar(&l.events, "events", "*", "kinds, with commas, such as call.ended,call.missed")
	fs.StringVar(&l.timing, "call-ended", "enriched", "when call.ended comes: enriched or immediate")
	fs.StringVar(&l.after, "after", "", "begin behind this sequence instead of now; 0 begins 30 days ago")
	fs.StringVar(&l.secret, "secret", "", "sign with this whsec_ secret instead of one that belongs to the key")
	fs.Func("header", "further header 'Name: value' of each request; may be repeated", l.addHeader)
	fs.BoolVar(&l.insecure, "insecure", false, "take any certificate of --forward-to")
	fs.BoolVar(&l.print, "print-secret", false, "print the secret and end")
	fs.IntVar(&l.count, "count", 0, "end after so many events; with 1 where one of them was refused")
}

func (l *listener) addHeader(text string) error {
	name, value, ok := strings.Cut(text, ":")
	if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(text, "\r\n") {
		return errors.New("must be 'Name: value'")
	}
	l.headers[name] = strings.TrimSpace(value)
	return nil
}

func (l *listener) check() error {
	switch {
	case l.to != "" && !config.IsWebURL(l.to):
		return &failure{exitUsage, fmt.Errorf("--forward-to %q must be an address such as http://localhost:3000/hook", l.to)}
	case l.timing != "enriched" && l.timing != "immediate":
		return &failure{exitUsage, errors.New("--call-ended must be enriched or immediate")}
	case l.secret != "" && !webhook.IsSecret(l.secret):
		return &failure{exitUsage, errors.New("--secret must be whsec_ and base64")}
	}
	for _, k := range config.SplitList(l.events) {
		if k != "*" && !isKind(k) {
			return noKind(k)
		}
	}
	return nil
}

func isKind(name string) bool {
	for _, k := range event.Kinds() {
		if string(k) == name {
			return true
		}
	}
	return false
}

func noKind(name string) error {
	var all []string
	for _, k := range event.Kinds() {
		all = append(all, string(k))
	}
	return &failure{exitUsage, fmt.Errorf("there is no event %q; there are %s", name, strings.Join(all, ", "))}
}

// secretOf is a secret that stays the same as long as the key does, and is nobody else's.
func secretOf(key string) string {
	m := hmac.New(sha256.New, []byte(key))
	m.Write([]byte("secret of soniq listen"))
	return webhook.SecretFrom(m.Sum(nil))
}

func (l *listener) run(ctx context.Context) error {
	var me struct {
		Organization struct{ Name string }
		Environment  string
	}
	if err := l.do(ctx, "GET", "/me", nil, &me); err != nil {
		return err
	}
	var catalogue struct {
		Prefix string `json:"header_prefix"`
	}
	if err := l.do(ctx, "GET", "/webhooks/events", nil, &catalogue); err != nil {
		return err
	}
	l.prefix = cmp.Or(catalogue.Prefix, "x-service")
	l.client = &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: l.insecure}}}
	where := map[string]string{"live": "", "test": "the sandbox of "}[me.Environment] + me.Organization.Name
	said := false
	err := l.follow(ctx, l.query(), func() {
		if !said {
			l.greet(where)
		}
		said = true
	}, func(m message) error { return l.handle(ctx, m) })
	if err == nil && l.count > 0 && l.bad > 0 {
		return &failure{exitFailed, fmt.Errorf("%d of %d events were refused", l.bad, l.told)}
	}
	return err
}

func (l *listener) query() url.Values {
	q := url.Values{"format": {"webhook"}, "call_ended_timing": {l.timing}}
	if l.after != "" {
		q.Set("after_sequence", l.after)
	}
	if kinds := config.SplitList(l.events); len(kinds) > 0 && !strings.Contains(l.events, "*") {
		q.Set("events", strings.Join(kinds, ","))
	}
	return q
}

func (l *listener) greet(where string) {
	fmt.Fprintf(l.note, "listening to %s at %s\n", tidy(where), l.url)
	fmt.Fprintf(l.note, "signing secret: %s\n", l.secret)
	if l.to != "" {
		fmt.Fprintf(l.note, "forwarding to %s; Ctrl-C ends\n", l.to)
	}
}

// result is what became of one event.
type forwarded struct {
	Time       string `json:"time"`
	Event      string `json:"event"`
	ID         string `json:"id"`
	Sequence   int64  `json:"sequence"`
	Status     int    `json:"status,omitempty"`
	DurationMS int64  `json:"duration_ms"`
	Error      string `json:"error,omitempty"`
	Answer     string `json:"response,omitempty"` // the beginning, where it was refused
	Body       any    `json:"body"`
}

// handle sends one event on and shows what was answered.
func (l *listener) handle(ctx context.Context, m message) error {
	var h eventstream.WebhookMessage
	if err := json.Unmarshal([]byte(m.data), &h); err != nil {
		return fmt.Errorf("an event of the stream cannot be read: %w", err)
	}
	started := time.Now()
	x := forwarded{Time: started.Format(time.RFC3339), Event: m.event, ID: h.ID, Sequence: h.Sequence, Body: json.RawMessage(h.Body)}
	if l.to != "" {
		l.forward(ctx, m.event, h, &x)
		x.DurationMS = time.Since(started).Milliseconds()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if l.told++; x.Error != "" || x.Status >= 300 {
		l.bad++
	}
	if err := l.show(x, started); err != nil {
		return err
	}
	if l.told == l.count {
		return errEnough
	}
	return nil
}

func (l *listener) forward(ctx context.Context, kind string, h eventstream.WebhookMessage, x *forwarded) {
	q, err := webhook.Message{Prefix: l.prefix, EventID: h.ID, Kind: kind, DeliveryID: db.NewID("dlv"), Attempt: 1, Sequence: h.Sequence,
		Body: h.Body, Secret: l.secret, Headers: l.headers}.Request(ctx, l.to, time.Now())
	if err != nil {
		x.Error = err.Error()
		return
	}
	answer, err := l.client.Do(q)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		x.Error = err.Error()
		return
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 2<<10))
	if x.Status = answer.StatusCode; x.Status >= 300 {
		x.Answer = strings.TrimSpace(string(body))
	}
}

func (l *listener) show(x forwarded, at time.Time) error {
	if l.json {
		return l.line(x)
	}
	text := fmt.Sprintf("%s  %-19s %s", at.Format("15:04:05"), x.Event, x.ID)
	switch {
	case x.Error != "":
		text += "  → " + tidy(x.Error)
	case x.Status != 0:
		text += fmt.Sprintf("  → %d %s  %d ms", x.Status, http.StatusText(x.Status), x.DurationMS)
	}
	if x.Answer != "" {
		text += "  " + tidy(x.Answer[:min(len(x.Answer), 120)])
	}
	_, err := fmt.Fprintln(l.out, text)
	return err
}
