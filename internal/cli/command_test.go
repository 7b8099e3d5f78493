package cli

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"soniq/internal/cli/command"
)

// run executes a command line and returns what it wrote to both outputs.
func run(t *testing.T, args ...string) (out, note string, err error) {
	t.Helper()
	var o, n bytes.Buffer
	root := NewCommand()
	root.SetOut(&o)
	root.SetErr(&n)
	root.SetArgs(command.DoubleDashes(root, args))
	err = root.ExecuteContext(context.Background())
	return o.String(), n.String(), err
}

// tree calls visit for a command and all below it.
func tree(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, c := range cmd.Commands() {
		tree(c, visit)
	}
}

// TestHelp_SameFormWithExample prints the help of every visible command: summary, usage, example.
func TestHelp_SameFormWithExample(t *testing.T) {
	tree(NewCommand(), func(c *cobra.Command) {
		if hidden(c) {
			return
		}
		words := strings.Fields(c.CommandPath())[1:]
		out, note, err := run(t, append(words, "--help")...)
		if err != nil || note != "" {
			t.Errorf("%s --help: %v, %q", c.CommandPath(), err, note)
		}
		for _, w := range []string{c.CommandPath() + ": " + c.Short + "\n", "\nusage: " + c.CommandPath(), "\nexample:\n  soniq"} {
			if !strings.Contains(out, w) && !strings.Contains(out, "source <(soniq completion") {
				t.Errorf("%s --help does not have %q:\n%s", c.CommandPath(), w, out)
			}
		}
		if same, _, _ := run(t, append([]string{"help"}, words...)...); same != out {
			t.Errorf("soniq help %s differs from --help", strings.Join(words, " "))
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if shown := strings.Contains(out, "  --"+f.Name+" "); shown == f.Hidden && f.Name != "help" && f.Name != "version" {
				t.Errorf("%s --help: --%s is shown: %v", c.CommandPath(), f.Name, shown)
			}
		})
	})
}

func hidden(c *cobra.Command) bool { return c.Hidden || c.HasParent() && hidden(c.Parent()) }

// oldSpellings maps the commands of earlier versions to their present names.
var oldSpellings = map[string]string{
	"org create": "admin orgs create", "key create": "admin keys create", "users add": "admin users add", "users password": "admin users password",
	"outbound stop": "admin outbound stop", "outbound start": "admin outbound start", "outbound status": "admin outbound status",
	"stock add": "numbers add-block", "port set": "numbers port-status",
	"hearing install": "speech-model install", "hearing status": "speech-model status", "hearing packages": "speech-model packages",
}

// TestOldNames_SameFlagsHidden compares each command under its old name with the present one: same flags and words, not listed.
func TestOldNames_SameFlagsHidden(t *testing.T) {
	root := NewCommand()
	for old, now := range oldSpellings {
		a, rest, err := root.Find(strings.Fields(old))
		if err != nil || len(rest) > 0 {
			t.Errorf("%s: %v", old, err)
			continue
		}
		b, _, _ := root.Find(strings.Fields(now))
		if !slices.Equal(flagNames(a), flagNames(b)) || usageExitOf(a) != usageExitOf(b) || a.Short != b.Short {
			t.Errorf("%s is not %s: %v, %v", old, now, flagNames(a), flagNames(b))
		}
		if !hidden(a) || hidden(b) {
			t.Errorf("%s hidden: %v; %s hidden: %v", old, hidden(a), now, hidden(b))
		}
	}
	out, _, _ := run(t)
	for old := range oldSpellings {
		first, _, _ := strings.Cut(old, " ")
		if strings.Contains(out, "soniq "+first+" ") {
			t.Errorf("soniq help lists %s", first)
		}
	}
}

func usageExitOf(c *cobra.Command) string { return c.Annotations[command.UsageExit] }

func flagNames(c *cobra.Command) (all []string) {
	c.Flags().VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	slices.Sort(all)
	return all
}

// TestOldNames_SameOutput runs a command without a server under both names.
func TestOldNames_SameOutput(t *testing.T) {
	data := t.TempDir()
	now, _, err := run(t, "speech-model", "packages")
	old, _, err2 := run(t, "hearing", "packages")
	if err != nil || err2 != nil || now != old || !strings.Contains(now, "@") {
		t.Errorf("packages: %q, %q, %v, %v", now, old, err, err2)
	}
	for _, name := range []string{"org create", "admin orgs create"} {
		_, _, err := run(t, append(strings.Fields(name), "--data", data)...)
		if err == nil || !strings.HasPrefix(err.Error(), name+": --name is missing") || command.ExitCode(err) != 1 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUsage_Errors types commands wrongly. Errors name the cause, suggest the nearest name, and have the exit code of the command.
func TestUsage_Errors(t *testing.T) {
	for line, want := range map[string]struct {
		code int
		text string
	}{
		"nonsense":                   {1, `there is no command "nonsense"; soniq serve starts the platform; soniq help lists all commands`},
		"cals list":                  {1, `there is no command "cals"; did you mean soniq calls?`},
		"orgs create":                {1, "did you mean soniq admin orgs?"},
		"dial +12025550143":          {1, "did you mean soniq calls dial?"},
		"help nonsense":              {1, `there is no command "nonsense"`},
		"help asr-worker":            {1, `there is no command "asr-worker"`},
		"--nonsense":                 {1, "there is no flag --nonsense; soniq --help lists the flags"},
		"-x":                         {1, "there is no flag -x"},
		"calls":                      {2, "calls: say what to do:\n  soniq calls dial"},
		"calls lst":                  {2, "did you mean soniq calls list?"},
		"calls lst --foo":            {2, `calls: there is no command "lst"`},
		"calls list --statsu ringin": {2, "calls list: there is no flag --statsu; did you mean --status? soniq calls list --help lists the flags"},
		"calls list --status":        {2, "calls list: --status needs a value"},
		"calls list --limit many":    {2, `calls list: --limit "many" is not valid: it must be a whole number`},
		"calls list all":             {2, `calls list: "all" is one word too many; soniq calls list --help shows the usage`},
		"calls get":                  {2, "calls get: say which call: soniq calls get CALL"},
		"calls watch a b":            {2, `"b" is one word too many`},
		"calls list --env prod":      {2, "--env must be live or test"},
		"calls list --since later":   {2, "--since"},
		"events replay":              {2, "events replay: say from when on with --since"},
		"trigger call.endd":          {2, `there is no event "call.endd"; did you mean call.ended?`},
		"listen --header x":          {2, "must be 'Name: value'"},
		"mcp logn":                   {2, `mcp: "logn" is one word too many; did you mean soniq mcp login?`},
		"mcp --urll x":               {2, "did you mean --url?"},
		"admin":                      {1, "admin: say what to do:\n  soniq admin clock"},
		"admin org create":           {1, "did you mean soniq admin orgs?"},
		"org delete":                 {1, "soniq org create"},
		"users":                      {1, "soniq users add"},
		"users add":                  {1, "users add: say which email: soniq users add EMAIL"},
		"outbound":                   {1, "outbound: say what to do"},
		"outbound halt":              {1, `there is no command "halt"`},
		"stock add":                  {1, "stock add: --org, --trunk and --from are needed"},
		"port set":                   {1, "port set: --org, --id and --status are needed"},
		"numbers add-block":          {1, "numbers add-block: --org, --trunk and --from are needed"},
		"admin keys create --nmae x": {1, "there is no flag --nmae; did you mean --name?"},
		"serve somewhere":            {1, `serve: "somewhere" is one word too many`},
		"serve --max-calls many":     {1, `--max-calls: "many" is not valid for max-calls`},
		"backup":                     {1, "backup: --to is missing"},
		"completion tcsh":            {1, `"tcsh"`},
	} {
		_, _, err := run(t, strings.Fields(line)...)
		if err == nil || command.ExitCode(err) != want.code || !strings.Contains(err.Error(), want.text) {
			t.Errorf("soniq %s: exit %d, %v; want %d, %s", line, command.ExitCode(err), err, want.code, want.text)
		}
		if errors.Is(err, ErrFailed) {
			t.Errorf("soniq %s: the reason is not printed", line)
		}
	}
}

// TestFlags_OneDash types long flags with one dash, as the standard flag package accepted them.
func TestFlags_OneDash(t *testing.T) {
	root := NewCommand()
	for line, want := range map[string]string{
		"serve -data x":                          "serve --data x",
		"serve -data=x -http y":                  "serve --data=x --http y",
		"calls list -json -limit 3":              "calls list --json --limit 3",
		"org create -name -x- --country DE":      "org create --name -x- --country DE",
		"admin orgs create --name -nothing":      "admin orgs create --name -nothing",
		"migrate -status":                        "migrate --status",
		"calls dial -- -123":                     "calls dial -- -123",
		"sherpa-worker -model x":                 "sherpa-worker -model x",
		"__complete calls list -st":              "__complete calls list -st",
		"calls list -h":                          "calls list -h",
		"org create -help":                       "org create --help",
		"mcp login -no-browser -url http://here": "mcp login --no-browser --url http://here",
	} {
		if got := command.DoubleDashes(root, strings.Fields(line)); !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: %v, want %s", line, got, want)
		}
	}
	if out, _, err := run(t, "hearing", "install", "-help"); err != nil || !strings.Contains(out, "--registry") {
		t.Errorf("-help: %v %s", err, out)
	}
}

// TestWorkers_KeepTheirNames finds the commands that the server starts as processes. They take their arguments as they are.
func TestWorkers_KeepTheirNames(t *testing.T) {
	root := NewCommand()
	for _, name := range []string{"asr-worker", "sherpa-worker", "tts-worker"} {
		c, rest, err := root.Find([]string{name, "-x"})
		if err != nil || c.Name() != name || !c.Hidden || !c.DisableFlagParsing || len(rest) != 1 {
			t.Errorf("%s: %v %v", name, c, err)
		}
	}
}
