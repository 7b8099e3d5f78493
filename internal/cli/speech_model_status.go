package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/speechmodel"
)

type speechModelStatusOptions struct{ settings *config.Flags }

func newSpeechModelStatus() *cobra.Command {
	var o speechModelStatusOptions
	cmd := &cobra.Command{
		Use: "status", Short: "load the installed model and show what it is", Example: "  soniq speech-model status",
		Args: command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	o.settings = command.AddSettings(cmd, "config")
	return cmd
}

func (o *speechModelStatusOptions) run(ctx context.Context, out io.Writer) error {
	if _, err := o.settings.Load(); err != nil {
		return err
	}
	dir := speechmodel.Find()
	if dir == "" {
		fmt.Fprintln(out, "pocketsphinx listens where it is installed; soniq speech-model install fetches a better model")
		return nil
	}
	s := speech.NewEnglishSherpa(nil, dir, 1)
	defer s.Close()
	if err := s.Ready(ctx); err != nil {
		return err
	}
	e := s.Engine()
	_, err := fmt.Fprintf(out, "%s %s listens with %s, in %s; each worker takes %d MB\n", e.Name, e.Version, e.Model, filepath.Dir(dir),
		s.Memory()>>20)
	return err
}
