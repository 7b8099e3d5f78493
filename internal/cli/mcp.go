package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/cli/mcpbridge"
	"soniq/internal/config"
)

// The environment variables of soniq mcp: the key under the name that desktop assistants are configured with (SONIQ_KEY works too), and the
// address of the tool server.
const (
	mcpKeyVariable = "SONIQ_API_KEY"
	mcpURLVariable = "SONIQ_MCP_URL"
)

const defaultMCPURL = "http://localhost:8080/mcp/sse"

// mcpOptions are the flags of soniq mcp and of the commands below it. All of them accept all flags.
type mcpOptions struct {
	mcpbridge.Bridge
	login     mcpbridge.LoginOptions
	scopes    string
	noBrowser bool
}

func newMCP() *cobra.Command {
	cmd := newMCPCommand("mcp", "forward a desktop assistant on standard input and output to the tool server",
		"  soniq mcp --url https://pbx.example.com/mcp/sse",
		(*mcpOptions).forward)
	cmd.AddCommand(
		newMCPCommand("login", "log in with a browser", "  soniq mcp login --url https://pbx.example.com/mcp/sse", (*mcpOptions).logIn),
		newMCPCommand("logout", "log out and revoke the tokens", "  soniq mcp logout", (*mcpOptions).logOut),
		newMCPCommand("status", "show the login and the tools", "  soniq mcp status", (*mcpOptions).status),
		newMCPCommand("doctor", "check address, login and tools", "  soniq mcp doctor --url https://pbx.example.com/mcp/sse",
			(*mcpOptions).doctor))
	return cmd
}

func newMCPCommand(use, short, example string, run func(*mcpOptions, context.Context) error) *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.complete(cmd); err != nil {
				return err
			}
			return run(&o, cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "url", "", "address of the tool server; unless given "+defaultMCPURL)
	_ = f.SetAnnotation("url", config.EnvAnnotation, []string{mcpURLVariable})
	f.BoolVar(&o.ReadOnly, "read-only", false, "only tools that change nothing")
	f.StringVar(&o.Org, "org", "", "with the key of a partner: the organisation to act in")
	f.StringVar(&o.scopes, "scopes", "", "scopes to ask for, with spaces or commas between; those that only read unless given")
	f.StringVar(&o.login.Client, "client", mcpbridge.FixedClient, "OAuth client to log in as")
	f.IntVar(&o.login.Port, "port", 0, "port on this machine to which the browser returns; 0: any")
	f.BoolVar(&o.noBrowser, "no-browser", false, "open no browser, only print the address")
	for _, flag := range []string{"scopes", "client", "port", "no-browser"} {
		f.Lookup(flag).Hidden = use != "login"
	}
	command.CompleteList(cmd, "scopes", command.Scopes()[1:]...)
	for _, free := range []string{"url", "org", "client", "port"} {
		command.CompleteFlag(cmd, free)
	}
	return command.EndsWithUsage(cmd)
}

// complete takes the key from the environment, where other programs cannot read it, and checks the address.
func (o *mcpOptions) complete(cmd *cobra.Command) error {
	o.Key, o.Out, o.Note = cmp.Or(os.Getenv(mcpKeyVariable), os.Getenv(command.KeyVariable)), os.Stdout, os.Stderr
	o.login.In, o.login.Print = os.Stdin, func(text string) { fmt.Println(text) }
	o.login.Scopes = strings.Join(strings.FieldsFunc(o.scopes, func(r rune) bool { return r == ',' || r == ' ' }), " ")
	o.login.Browser = !o.noBrowser
	u, err := mcpbridge.Address(cmp.Or(o.URL, os.Getenv(mcpURLVariable), defaultMCPURL))
	if err != nil {
		return command.UsageErrorf(cmd, "%w", err)
	}
	o.URL, o.LoginCommand = u.String(), "soniq mcp login --url "+u.String()
	o.Login, err = mcpbridge.NewLogin(u)
	return err
}

// notLoggedIn returns the error for a missing credential.
func (o *mcpOptions) notLoggedIn() error {
	return command.Fail(command.ExitAccess, errors.New("nobody is logged in: run "+o.LoginCommand+", or set "+mcpKeyVariable))
}

// hasCredential reports whether there is a key or a login.
func (o *mcpOptions) hasCredential() bool {
	k, err := o.Login.Store.Read()
	return o.Key != "" || err == nil && k != nil
}

// forward forwards messages until standard input ends.
func (o *mcpOptions) forward(ctx context.Context) error {
	if !o.hasCredential() {
		return o.notLoggedIn()
	}
	return o.Run(ctx, os.Stdin)
}

func (o *mcpOptions) logIn(ctx context.Context) error {
	if o.Key != "" {
		fmt.Fprintln(os.Stderr, "soniq mcp: "+mcpKeyVariable+" is set, and used in place of a login")
	}
	k, err := o.Login.LogIn(ctx, o.login)
	if err != nil {
		return command.Fail(command.ExitAccess, err)
	}
	fmt.Printf("Logged in to %s with %s\n", o.URL, k.Scope)
	return nil
}

func (o *mcpOptions) logOut(ctx context.Context) error {
	was, err := o.Login.LogOut(ctx)
	if err != nil {
		return err
	}
	if !was {
		fmt.Println("nobody was logged in")
		return nil
	}
	fmt.Printf("Logged out of %s: what was given is revoked\n", o.URL)
	return nil
}

// identity returns the credential as the server knows it, in a few words.
func (o *mcpOptions) identity(ctx context.Context) (string, error) {
	if o.Key != "" {
		return "with the key in the environment", nil
	}
	a, err := o.Login.Introspect(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("logged in as %s of %s, with %s; the token is renewed at %s", cmp.Or(a.Username, a.Subject), a.Org, a.Scope,
		time.Unix(a.Expires, 0).UTC().Format(time.RFC3339)), nil
}

func (o *mcpOptions) status(ctx context.Context) error {
	if !o.hasCredential() {
		return o.notLoggedIn()
	}
	as, err := o.identity(ctx)
	if err != nil {
		return command.Fail(command.ExitAccess, errors.New(o.ErrorText(err)))
	}
	tools, err := o.Tools(ctx)
	if err != nil {
		return errors.New(o.ErrorText(err))
	}
	fmt.Printf("%s: %d tools, %s\n", o.URL, len(tools), as)
	for _, t := range tools {
		fmt.Println("  " + t)
	}
	return nil
}

// doctor checks address, credential and tools, and prints a remedy for each fault.
func (o *mcpOptions) doctor(ctx context.Context) error {
	bad := false
	check := func(err error, what string) bool {
		if bad = bad || err != nil; err != nil {
			fmt.Printf("FAIL %s: %s\n", what, o.ErrorText(err))
			return false
		}
		fmt.Println("ok  ", what)
		return true
	}
	check(o.Login.CheckAddress(), "address "+o.URL)
	check(o.Login.CheckServer(ctx), "a tool server answers there")
	if o.Key != "" {
		check(nil, "a key is in the environment")
	} else if check(o.loginError(), "a person is logged in ("+o.Login.Store.File+")") {
		check(o.Login.Store.CheckMode(), "nobody else can read that file")
		as, err := o.identity(ctx)
		check(err, cmp.Or(as, "the server knows who is logged in"))
	}
	if o.hasCredential() {
		tools, err := o.Tools(ctx)
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

// loginError returns an error if there is no credential.
func (o *mcpOptions) loginError() error {
	if o.hasCredential() {
		return nil
	}
	return o.notLoggedIn()
}
