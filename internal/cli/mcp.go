package cli

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"soniq/internal/cli/mcpbridge"
)

// The environment variables of soniq mcp: the key as desktop assistants are configured with it (the variable of the other commands is good
// too), and the address of the tool server.
const (
	desktopKey = "SONIQ_API_KEY"
	desktopURL = "SONIQ_MCP_URL"
)

// desktop is soniq mcp as it was asked for.
type desktop struct {
	mcpbridge.Bridge
	wish mcpbridge.Wish
}

// desktopCommand forwards until standard input ends, or says and changes what lets it in.
func desktopCommand(ctx context.Context, args []string) error {
	actions := map[string]func(*desktop, context.Context) error{"login": (*desktop).logIn, "logout": (*desktop).logOut, "status": (*desktop).status,
		"doctor": (*desktop).doctor}
	do := (*desktop).forward
	if len(args) > 0 && actions[args[0]] != nil {
		do, args = actions[args[0]], args[1:]
	}
	d, err := newDesktop(args)
	if err != nil {
		return err
	}
	return do(d, ctx)
}

// newDesktop reads the command line. A key comes from the environment, where other programs cannot read it.
func newDesktop(args []string) (*desktop, error) {
	d := &desktop{Bridge: mcpbridge.Bridge{Key: cmp.Or(os.Getenv(desktopKey), os.Getenv(keyVariable)), Out: os.Stdout, Note: os.Stderr}}
	d.wish = mcpbridge.Wish{In: os.Stdin, Tell: func(text string) { fmt.Println(text) }}
	f := flag.NewFlagSet("mcp", flag.ContinueOnError)
	f.Usage = func() {
		fmt.Fprintln(f.Output(), "usage: soniq mcp [login|logout|status|doctor] [flags]")
		f.PrintDefaults()
	}
	f.StringVar(&d.URL, "url", cmp.Or(os.Getenv(desktopURL), "http://localhost:8080/mcp/sse"), "address of the tool server ("+desktopURL+")")
	f.BoolVar(&d.ReadOnly, "read-only", false, "only tools that change nothing")
	f.StringVar(&d.Org, "org", "", "of a partner's key: the organisation to act in")
	scopes := f.String("scopes", "", "login: what to ask the person for, with spaces or commas between; what only reads unless given")
	f.StringVar(&d.wish.Client, "client", mcpbridge.FixedClient, "login: OAuth client to log in as")
	f.IntVar(&d.wish.Port, "port", 0, "login: port on this machine that the browser is led back to; 0: any")
	closed := f.Bool("no-browser", false, "login: open no browser, only print the address")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, &failure{exitUsage, fmt.Errorf("mcp: %q is one word too many", f.Arg(0))}
	}
	d.wish.Scopes, d.wish.Browser = strings.Join(strings.FieldsFunc(*scopes, func(r rune) bool { return r == ',' || r == ' ' }), " "), !*closed
	u, err := mcpbridge.Address(d.URL)
	if err != nil {
		return nil, &failure{exitUsage, err}
	}
	d.URL, d.Again = u.String(), "soniq mcp login --url "+u.String()
	d.Login, err = mcpbridge.NewLogin(u)
	return d, err
}

// nobody is why there is no credential.
func (d *desktop) nobody() error {
	return &failure{exitAccess, errors.New("nobody is logged in: run " + d.Again + ", or set " + desktopKey)}
}

// known reports whether there is something that lets us in.
func (d *desktop) known() bool {
	k, err := d.Login.Store.Read()
	return d.Key != "" || err == nil && k != nil
}

func (d *desktop) forward(ctx context.Context) error {
	if !d.known() {
		return d.nobody()
	}
	return d.Run(ctx, os.Stdin)
}

func (d *desktop) logIn(ctx context.Context) error {
	if d.Key != "" {
		fmt.Fprintln(os.Stderr, "soniq mcp: "+desktopKey+" is set, and used in place of a login")
	}
	k, err := d.Login.Begin(ctx, d.wish)
	if err != nil {
		return &failure{exitAccess, err}
	}
	fmt.Printf("Logged in to %s with %s\n", d.URL, k.Scope)
	return nil
}

func (d *desktop) logOut(ctx context.Context) error {
	was, err := d.Login.End(ctx)
	if err != nil {
		return err
	}
	if !was {
		fmt.Println("nobody was logged in")
		return nil
	}
	fmt.Printf("Logged out of %s: what was given is revoked\n", d.URL)
	return nil
}

// as says who we are for the server.
func (d *desktop) as(ctx context.Context) (string, error) {
	if d.Key != "" {
		return "with the key in the environment", nil
	}
	a, err := d.Login.Who(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("logged in as %s of %s, with %s; the token is renewed at %s", cmp.Or(a.Username, a.Subject), a.Org, a.Scope,
		time.Unix(a.Expires, 0).UTC().Format(time.RFC3339)), nil
}

func (d *desktop) status(ctx context.Context) error {
	if !d.known() {
		return d.nobody()
	}
	as, err := d.as(ctx)
	if err != nil {
		return &failure{exitAccess, errors.New(d.Trouble(err))}
	}
	tools, err := d.Tools(ctx)
	if err != nil {
		return errors.New(d.Trouble(err))
	}
	fmt.Printf("%s: %d tools, %s\n", d.URL, len(tools), as)
	for _, t := range tools {
		fmt.Println("  " + t)
	}
	return nil
}

// doctor checks address, credential and tools, and says what to fix.
func (d *desktop) doctor(ctx context.Context) error {
	bad := false
	check := func(err error, what string) bool {
		if bad = bad || err != nil; err != nil {
			fmt.Printf("FAIL %s: %s\n", what, d.Trouble(err))
			return false
		}
		fmt.Println("ok  ", what)
		return true
	}
	check(d.Login.Safe(), "address "+d.URL)
	check(d.Login.Found(ctx), "a tool server answers there")
	if d.Key != "" {
		check(nil, "a key is in the environment")
	} else if check(d.missing(), "a person is logged in ("+d.Login.Store.File+")") {
		check(d.Login.Store.Shared(), "nobody else can read that file")
		as, err := d.as(ctx)
		check(err, cmp.Or(as, "the server knows who is logged in"))
	}
	if d.known() {
		tools, err := d.Tools(ctx)
		if err == nil && len(tools) == 0 {
			err = errors.New("it holds no scope that a tool needs")
		}
		check(err, fmt.Sprintf("%d tools", len(tools)))
	}
	if bad {
		return ErrFailed
	}
	return nil
}

func (d *desktop) missing() error {
	if d.known() {
		return nil
	}
	return d.nobody()
}
