package cli

import (
	"os"

	"github.com/spf13/cobra"

	"soniq/internal/intelligence/engine/speech"
)

// newWorkers returns the commands that the server starts as processes of its own: speech recognition and speech synthesis. They are hidden.
func newWorkers() []*cobra.Command {
	return []*cobra.Command{
		newWorker("asr-worker", func([]string) int { return speech.RunSphinxWorker(os.Stdin, os.Stdout) }),
		newWorker("sherpa-worker", func(args []string) int { return speech.RunSherpaWorker(args, os.Stdin, os.Stdout) }),
		newWorker("tts-worker", func([]string) int { return speech.RunFliteWorker(os.Stdin, os.Stdout) }),
	}
}

func newWorker(use string, run func(args []string) int) *cobra.Command {
	return &cobra.Command{Use: use, Short: "a process of the server", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if code := run(args); code != 0 {
				return ErrFailed
			}
			return nil
		}}
}
