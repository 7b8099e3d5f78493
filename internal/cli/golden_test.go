package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
)

var update = flag.Bool("update", false, "rewrite docs/cli.md")

// TestGoldenReference compares docs/cli.md with the help of every command. make golden rewrites it.
func TestGoldenReference(t *testing.T) {
	for _, v := range []string{command.URLVariable, command.KeyVariable, command.DataVariable, mcpURLVariable, mcpKeyVariable} {
		t.Setenv(v, "https://changed.example.com") // the reference does not depend on the environment
	}
	path := filepath.Join("..", "..", "docs", "cli.md")
	got := reference()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("docs/cli.md is not current; if the change is intended: make golden, and look at the difference")
	}
}

// reference returns the text of docs/cli.md.
func reference() []byte {
	var b bytes.Buffer
	fmt.Fprint(&b, "# Commands\n\nGenerated from `soniq help` by `make golden`. `make man` writes the same as man pages, and `soniq completion` prints the\n"+
		"completion script of a shell.\n\n"+
		"A setting is taken from its flag, else from its environment variable, else from the file of `--config`, else from its default. All commands\n"+
		"of the server and the operator accept all settings of `soniq serve`; their help shows those with an effect.\n\n"+
		"Earlier names still work: ")
	fmt.Fprint(&b, "`org create` and `key create` (now `admin orgs create`, `admin keys create`), `users add|password` and\n"+
		"`outbound stop|start|status` (now below `admin`), `stock add` (`numbers add-block`), `port set` (`numbers port-status`), `hearing …`\n"+
		"(`speech-model …`), `--writer…` (`--summarizer…`) and `--assistant…` (`--voice-agent…`), with their environment variables.\n")
	tree(NewCommand(), func(c *cobra.Command) {
		if hidden(c) {
			return
		}
		fmt.Fprintf(&b, "\n## %s\n\n```text\n", c.CommandPath())
		command.WriteHelp(&b, c)
		fmt.Fprint(&b, "```\n")
	})
	return []byte(strings.ReplaceAll(b.String(), "\n\n```\n", "\n```\n"))
}
