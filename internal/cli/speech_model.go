package cli

import "github.com/spf13/cobra"

import (
	"soniq/internal/cli/command"
)

func newSpeechModel() *cobra.Command {
	return command.Group("speech-model", "the speech-recognition model", newSpeechModelInstall(), newSpeechModelStatus(),
		newSpeechModelPackages())
}
