// Package cli has the commands of the program, one file for each. Commands use the public API or the control socket; serve, demo and the
// commands of an operator without a running server build a server in their own process.
package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"soniq/internal/cli/demo"
)

// command is one command of the program.
type command struct {
	name   string
	help   string
	hidden bool
	run    func(ctx context.Context, args []string) error
}

func commands() []command {
	return []command{
		{"serve", "run the platform", false, serveCommand},
		{"demo", "run it on this machine with two robot phones that call each other", false, demo.Command},
		{"org", "org create --name N [--country CC]: make an organisation, print its id", false, orgCommand},
		{"key", "key create --org ID --scopes all|a,b [--kind standard|partner] [--env live|test] [--name N]: make an API key, print it", false, keyCommand},
		{"users", "users add|password EMAIL: make a user, or a link with which one chooses a password; print the link", false, usersCommand},
		{"outbound", "outbound stop|start|status [--calls]: stop outbound calls of the whole installation, or let them go out again", false, outboundCommand},
		{"listen", "listen --forward-to URL: send events to an address on this machine, signed like webhooks", false, listenCommand},
		{"trigger", "trigger EVENT: tell the sandbox a sample of an event", false, triggerCommand},
		{"events", "events list|replay: what happened, and sending it again", false, eventsCommand},
		{"calls", "calls list|get|watch|end|dial", false, callsCommand},
		{"numbers", "numbers list|get|assign", false, numbersCommand},
		{"devices", "devices list|add|address|resync: phones, and where they fetch their configuration", false, devicesCommand},
		{"mcp", "forward a desktop assistant on standard input and output to the tool server of a running soniq", false, desktopCommand},
		{"stock", "stock add --org ID --trunk ID --from N [--to N]: free numbers of a block, for numbers.search and numbers.create", false, stockCommand},
		{"port", "port set --org ID --id ID --status S [--trunk ID]: say how far numbers are that come from another carrier", false, portCommand},
		{"hearing", "hearing install: fetch the model with which calls are understood best here; hearing status: which one listens; hearing packages: what it is made of", false, hearingCommand},
		{"doctor", "check ports, database, disk and engines, and say what to fix", false, doctorCommand},
		{"migrate", "bring the database up to date; --status only shows what is pending", false, migrateCommand},
		{"backup", "backup --to FOLDER: copy database, keys and recordings while the platform runs", false, backupCommand},
		{"version", "print the version", false, versionCommand},
		{"asr-worker", "", true, workerCommand},
		{"sherpa-worker", "", true, sherpaCommand},
		{"tts-worker", "", true, voiceCommand},
	}
}

// ErrFailed is returned by a command that has already printed what is wrong. The exit code is 1.
var ErrFailed = errors.New("failed")

// Run executes the command that the arguments name. It returns flag.ErrHelp after printing help, and ErrFailed if the command has already
// printed the reason.
func Run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		return help(ctx, args)
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, args[1:])
		}
	}
	return noCommand(args[0])
}

func noCommand(name string) error {
	return fmt.Errorf("there is no command %q; soniq serve starts the platform, soniq help lists all there is", name)
}

func help(ctx context.Context, args []string) error {
	if len(args) > 1 {
		for _, c := range commands() {
			if c.name == args[1] && !c.hidden {
				err := c.run(ctx, []string{"--help"})
				if errors.Is(err, flag.ErrHelp) {
					return nil
				}
				return err
			}
		}
		return noCommand(args[1])
	}
	usage(os.Stdout)
	return nil
}

func usage(w io.Writer) {
	fmt.Fprintln(w, "soniq: a telephony platform in one binary")
	fmt.Fprintln(w)
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  soniq %-10s %s\n", c.name, c.help)
		}
	}
	fmt.Fprintln(w, "\nsoniq help COMMAND lists its flags. Start with: soniq demo")
	fmt.Fprintln(w, "listen, trigger, events, calls, numbers and devices speak to a running soniq with an API key (--key or "+keyVariable+"); they end with 0,")
	fmt.Fprintln(w, "1 refused, 2 wrong usage, 3 no access, 4 not found, 5 not reached.")
}
