// Package demo is the command soniq demo: a server on this machine, and a program that uses it by the public API, with two softphones and a
// webhook receiver.
package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"soniq/internal/config"
	"soniq/internal/control"
	"soniq/internal/sandbox/softphone"
	"soniq/internal/server"
)

// The demo uses the server as a customer does: by the API, with phones and a webhook receiver. The only exceptions
// are the creation of the organisation and its key.

// Run runs the demo until the context ends, or if once is set until the scenario is over.
func Run(ctx context.Context, c config.Config, once bool) error {
	d := &demo{out: os.Stdout, color: isTerminal(os.Stdout), started: time.Now()}
	err := d.run(ctx, c, once)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		fmt.Fprintln(d.out, "\nstopped; the demo's data is gone")
		return nil
	}
	return err
}

// demo is one run of the scenario.
type demo struct {
	out      io.Writer
	color    bool
	started  time.Time
	server   *server.Server
	api      *client
	webhooks *receiver

	caller, agent person
}

// scenarioTime limits the scenario.
const scenarioTime = 3 * time.Minute

func (d *demo) run(ctx context.Context, c config.Config, once bool) error {
	data, err := os.MkdirTemp("", "soniq-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(data)
	d.banner()
	if d.server, err = server.Start(ctx, demoConfig(c, data), slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	defer d.server.Stop()
	key, err := d.newKey(ctx)
	if err != nil {
		return err
	}
	d.api = &client{base: d.server.BaseURL() + "/v1", key: key}
	d.say("platform", "ready: REST %s, SIP %s (UDP and TCP), database and recordings in %s", d.server.BaseURL(), d.server.SIPAddr(), data)
	if d.webhooks, err = newReceiver(ctx, d); err != nil {
		return err
	}
	defer d.webhooks.close()
	limited, cancel := context.WithTimeout(ctx, scenarioTime)
	callID, err := d.scenario(limited)
	cancel()
	if err != nil {
		return err
	}
	if once {
		d.say("demo", "everything worked, in %s", time.Since(d.started).Round(time.Second))
		return nil
	}
	link, err := d.server.Platform.CreateUser(ctx, control.UserRequest{Email: "you@harbor.example", First: "You", Role: "owner"})
	if err != nil {
		return err
	}
	d.printNextSteps(key, callID, link)
	return d.repeat(ctx)
}

// repeat lets the two people talk again for each line of the standard input, until the context ends.
func (d *demo) repeat(ctx context.Context) error {
	lines := make(chan struct{})
	go func() { // ends with the process: reading the standard input cannot be interrupted
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- struct{}{}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-lines:
		}
		if err := d.conversation(ctx, d.caller, d.agent); err != nil {
			return err
		}
		if _, err := d.webhooks.waitForEnd(ctx); err != nil {
			return ctx.Err()
		}
	}
}

// demoConfig returns settings that use this machine only, and a free port if the usual HTTP port is in use.
func demoConfig(c config.Config, data string) config.Config {
	c.Data, c.DB, c.File = data, "", ""
	c.SIP, c.RTPPorts, c.PublicIP, c.BaseURL = "127.0.0.1:0", "0-0", "127.0.0.1", ""
	c.AllowTargets = "127.0.0.0/8"
	if !free(c.HTTP) {
		c.HTTP = "127.0.0.1:0"
	}
	return c
}

func free(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}

// newKey creates an organisation and returns a key for it.
func (d *demo) newKey(ctx context.Context) (string, error) {
	org, err := d.server.Platform.CreateOrg(ctx, control.OrgRequest{Name: "Harbor Internet", Country: "US"})
	if err != nil {
		return "", err
	}
	return d.server.Platform.CreateKey(ctx, control.KeyRequest{Org: org, Scopes: "all", Kind: "standard", Env: "live", Name: "demo"})
}

// person is a user with the SIP account from the API.
type person struct {
	ID, Name, Extension string
	Account             softphone.Account
}

// scenario runs the call and prints its results. It returns the id of the call.
func (d *demo) scenario(ctx context.Context) (callID string, err error) {
	if err := d.webhooks.register(ctx, d.api); err != nil {
		return "", err
	}
	if d.agent, err = d.addUser(ctx, "dana@harbor.example", "Dana", "Reed"); err != nil {
		return "", err
	}
	if d.caller, err = d.addUser(ctx, "sam@harbor.example", "Sam", "Fields"); err != nil {
		return "", err
	}
	if err := d.conversation(ctx, d.caller, d.agent); err != nil {
		return "", err
	}
	if callID, err = d.webhooks.waitForEnd(ctx); err != nil {
		return "", err
	}
	return callID, d.results(ctx, callID)
}

// addUser creates a user. The response has the SIP credentials of their phone, which the API returns only once.
func (d *demo) addUser(ctx context.Context, email, first, last string) (person, error) {
	var u struct {
		ID, Name, Extension string
		SIP                 struct{ Username, Domain, Password string }
	}
	body := map[string]any{"email": email, "first_name": first, "last_name": last}
	if err := d.api.do(ctx, "POST", "/users", body, &u); err != nil {
		return person{}, fmt.Errorf("add user %s: %w", first, err)
	}
	d.say("api", "POST /users: %s has extension %s and SIP credentials", u.Name, u.Extension)
	return person{u.ID, u.Name, u.Extension, softphone.Account{Registrar: d.server.SIPAddr(), Username: u.SIP.Username,
		Domain: u.SIP.Domain, Password: u.SIP.Password}}, nil
}

func (d *demo) conversation(ctx context.Context, caller, agent person) error {
	one, err := d.phone(ctx, caller)
	if err != nil {
		return err
	}
	defer one.Close()
	two, err := d.phone(ctx, agent)
	if err != nil {
		return err
	}
	defer two.Close()
	d.say("phone", "%s dials %s", caller.Name, agent.Extension)
	mine, err := one.Call(ctx, agent.Extension)
	if err != nil {
		return err
	}
	var theirs *softphone.ActiveCall
	select {
	case theirs = <-two.Incoming:
	case <-ctx.Done():
		return ctx.Err()
	}
	err = softphone.Talk(ctx, mine, theirs, func(s softphone.Sentence) {
		who := caller.Name
		if s.Agent {
			who = agent.Name
		}
		d.speak(who, s.Text)
	})
	if err != nil {
		return err
	}
	d.say("phone", "%s hangs up; %d packets of audio were heard on this side, %d on the other", caller.Name, mine.ReceivedPackets(),
		theirs.ReceivedPackets())
	mine.HangUp()
	<-mine.Over()
	<-theirs.Over()
	return nil
}

func (d *demo) phone(ctx context.Context, p person) (*softphone.Phone, error) {
	phone, err := softphone.Open(ctx, p.Account, slog.New(slog.DiscardHandler))
	if err == nil {
		d.say("phone", "%s's telephone is registered as %s", p.Name, p.Account.Username)
	}
	return phone, err
}

func (d *demo) banner() {
	fmt.Fprintf(d.out, "soniq %s: a telephone call becomes a record, a recording, a transcript, a summary and a memory.\n"+
		"Everything you see is real: SIP and RTP on this machine, the REST API, signed webhooks.\n\n", config.Version)
}

// say prints a line of the live log.
func (d *demo) say(who, format string, args ...any) {
	at := time.Since(d.started)
	fmt.Fprintf(d.out, "%s%6.2fs  %-9s%s %s\n", d.tint("2"), at.Seconds(), who, d.tint("0"), fmt.Sprintf(format, args...))
}

func (d *demo) speak(who, text string) {
	d.say("voice", "%s%s%s: %s", d.tint("1"), who, d.tint("0"), text)
}

func (d *demo) tint(code string) string {
	if !d.color {
		return ""
	}
	return "\x1b[" + code + "m"
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && !strings.EqualFold(os.Getenv("TERM"), "dumb") && os.Getenv("NO_COLOR") == ""
}
