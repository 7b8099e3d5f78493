package cli

import "github.com/spf13/cobra"

func newSpeechModel() *cobra.Command {
	return group("speech-model", "the speech-recognition model", newSpeechModelInstall(), newSpeechModelStatus(), newSpeechModelPackages())
}
