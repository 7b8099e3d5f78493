// Command consolebuild builds the web console into internal/api/console/assets/built, where the build of soniq embeds it.
//
//	consolebuild [--modules folder] [--types]
//
// package-lock.json pins the npm packages by version and SHA-512. They are kept in the user's cache folder, so a second build needs no
// network. npm_config_registry names another npm registry. Node and npm are not needed. The same sources make the same files.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	app     = "internal/api/console/app"
	output  = "internal/api/console/assets/built"
	modules = "build/console/node_modules"
	timeout = 5 * time.Minute // of all packages together
)

func main() {
	installed := flag.String("modules", "", "use the packages in this folder, which npm ci made")
	types := flag.Bool("types", false, "fetch the packages with types as well, which only the check of types needs, and build nothing")
	flag.Parse()
	if err := run(*installed, *types); err != nil {
		fmt.Fprintln(os.Stderr, "consolebuild:", err)
		os.Exit(1)
	}
}

func run(installed string, types bool) error {
	folder := installed
	if folder == "" {
		folder = modules
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		if err := install(ctx, filepath.Join(app, "package-lock.json"), folder, types); err != nil {
			return err
		}
	}
	if types {
		return nil
	}
	files, err := bundle(app, folder)
	if err != nil {
		return err
	}
	return write(files, output)
}
