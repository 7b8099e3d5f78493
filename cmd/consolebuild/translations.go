package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// source is the language whose texts are part of the script.
const source = "en"

// translations returns a plugin with a function for each language of a folder that loads its texts. A file there is all that a language
// needs.
func translations(folder string) (api.Plugin, error) {
	script, err := translationsScript(folder)
	return api.Plugin{Name: "translations", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: `^\./translations$`}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: "translations", Namespace: "translations"}, nil
		})
		build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: "translations"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			return api.OnLoadResult{Contents: &script, Loader: api.LoaderJS, ResolveDir: folder}, nil
		})
	}}, err
}

func translationsScript(folder string) (string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json")) // in the order of their names
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("export default {")
	for _, f := range files {
		name := filepath.Base(f)
		if language := strings.TrimSuffix(name, ".json"); language != source {
			fmt.Fprintf(&b, "%q: () => import(%q),", language, "./"+name)
		}
	}
	return b.String() + "}", nil
}
