package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"soniq/internal/platform/npm"
)

// bundle returns the files of the console by name: scripts, styles and fonts with hashed names, packed with gzip where that helps;
// index.html; and licences.txt.
func bundle(app, modules string) (map[string][]byte, error) {
	root, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	packages, err := filepath.Abs(modules)
	if err != nil {
		return nil, err
	}
	routes, err := usedRoutes(app, filepath.Join("internal", "api", "rest", "testdata", "openapi.json"))
	if err != nil {
		return nil, err
	}
	languages, err := translations(filepath.Join(root, app, "words"))
	if err != nil {
		return nil, err
	}
	result := api.Build(api.BuildOptions{
		AbsWorkingDir: root,
		EntryPointsAdvanced: []api.EntryPoint{
			{InputPath: "./" + app + "/main.tsx", OutputPath: "console"},
			{InputPath: "./" + app + "/styles/console.css", OutputPath: "style"},
		},
		Outdir: "out", Bundle: true, Splitting: true, Format: api.FormatESModule, Target: api.ES2022,
		MinifyIdentifiers: true, MinifySyntax: true, MinifyWhitespace: true, LegalComments: api.LegalCommentsNone,
		EntryNames: "[name]-[hash]", ChunkNames: "[name]-[hash]", AssetNames: "[name]-[hash]",
		JSX: api.JSXAutomatic, NodePaths: []string{packages}, Charset: api.CharsetUTF8, TreeShaking: api.TreeShakingTrue,
		Define:   map[string]string{"process.env.NODE_ENV": `"production"`, "process.env.VIRT_ON": "undefined", "global": "globalThis"},
		Loader:   map[string]api.Loader{".woff2": api.LoaderFile},
		Metafile: true, Write: false, LogLevel: api.LogLevelSilent, Plugins: []api.Plugin{routes, languages},
	})
	if len(result.Errors) > 0 {
		return nil, errors.New(strings.Join(api.FormatMessages(result.Errors, api.FormatMessagesOptions{Kind: api.ErrorMessage}), "\n"))
	}
	files := map[string][]byte{}
	for _, f := range result.OutputFiles {
		name := filepath.Base(f.Path)
		if strings.HasSuffix(name, ".woff2") {
			files[name] = f.Contents
		} else {
			files[name+".gz"] = pack(f.Contents)
		}
	}
	if files["licences.txt.gz"], err = licences(result.Metafile, root, packages); err != nil {
		return nil, err
	}
	return files, addIndex(app, result.Metafile, files)
}

// generated is the import of sdk/typescript that its generator writes. The bundle gets the table from the description itself.
const generated = `generated/operations\.js$`

// usedRoutes returns a plugin with the table of the operations whose ids are literals in the sources: method and path of each.
func usedRoutes(app, description string) (api.Plugin, error) {
	text, err := os.ReadFile(description)
	if err != nil {
		return api.Plugin{}, err
	}
	var d struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(text, &d); err != nil {
		return api.Plugin{}, fmt.Errorf("%s: %w", description, err)
	}
	named, err := literals(app)
	if err != nil {
		return api.Plugin{}, err
	}
	named["events.stream"] = true // sdk/typescript asks for it itself
	table := map[string][2]string{}
	for at, methods := range d.Paths {
		for method, o := range methods {
			var operation struct{ OperationID string }
			if json.Unmarshal(o, &operation) == nil && named[operation.OperationID] {
				table[operation.OperationID] = [2]string{strings.ToUpper(method), at}
			}
		}
	}
	b, err := json.Marshal(table) // in the order of the keys
	script := "export const routes = " + string(b)
	return api.Plugin{Name: "routes", Setup: func(build api.PluginBuild) {
		build.OnResolve(api.OnResolveOptions{Filter: generated}, func(api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: "operations", Namespace: "routes"}, nil
		})
		build.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: "routes"}, func(api.OnLoadArgs) (api.OnLoadResult, error) {
			return api.OnLoadResult{Contents: &script, Loader: api.LoaderJS}, nil
		})
	}}, err
}

var literal = regexp.MustCompile(`"([a-z_]+(?:\.[a-z_]+)+)"`)

// literals returns the strings in the sources that have the form of an operation id.
func literals(app string) (map[string]bool, error) {
	named := map[string]bool{}
	err := filepath.WalkDir(app, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".ts") && !strings.HasSuffix(name, ".tsx") {
			return err
		}
		text, err := os.ReadFile(name)
		for _, m := range literal.FindAllSubmatch(text, -1) {
			named[string(m[1])] = true
		}
		return err
	})
	return named, err
}

// metafile is the report of esbuild about a build: the files that it read and wrote.
type metafile struct {
	Inputs  map[string]struct{}
	Outputs map[string]struct {
		EntryPoint string
		Imports    []struct{ Path, Kind string }
	}
}

// licences returns the licence texts of the packages in the bundle.
func licences(meta, root, packages string) ([]byte, error) {
	var m metafile
	if err := json.Unmarshal([]byte(meta), &m); err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for input := range m.Inputs {
		at, err := filepath.Rel(packages, filepath.Join(root, filepath.FromSlash(input)))
		if err != nil || strings.HasPrefix(at, "..") {
			continue
		}
		parts := strings.Split(filepath.ToSlash(at), "/")
		if strings.HasPrefix(parts[0], "@") {
			parts[0] += "/" + parts[1]
		}
		used[parts[0]] = true
	}
	var b bytes.Buffer
	b.WriteString("The web console contains these packages.\n")
	for _, name := range slices.Sorted(maps.Keys(used)) {
		text, err := licence(filepath.Join(packages, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		_, _ = fmt.Fprintf(&b, "\n==== %s\n\n%s\n", name, text)
	}
	return pack(b.Bytes()), nil
}

// licence returns version, licence and licence text of a package.
func licence(folder string) (string, error) {
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return "", err
	}
	var p struct{ Version, License string }
	if err := json.Unmarshal(text, &p); err != nil {
		return "", err
	}
	head := "version " + p.Version + ", " + p.License + "\n"
	for _, name := range []string{"LICENSE", "LICENSE.md", "LICENSE.txt", "license", "LICENCE"} {
		if text, err := os.ReadFile(filepath.Join(folder, name)); err == nil {
			return head + "\n" + string(text), nil
		}
	}
	return head, nil
}

// addIndex adds index.html, which loads the script and its static imports, and the styles. The meta element names the build, so that a page
// can tell that there is another one.
func addIndex(app, meta string, files map[string][]byte) error {
	var m metafile
	if err := json.Unmarshal([]byte(meta), &m); err != nil {
		return err
	}
	template, err := os.ReadFile(filepath.Join(app, "index.html"))
	if err != nil {
		return err
	}
	script, style, preload := "", "", ""
	for _, at := range slices.Sorted(maps.Keys(m.Outputs)) {
		switch o := m.Outputs[at]; {
		case strings.HasSuffix(o.EntryPoint, "/main.tsx"):
			script = path.Base(at)
			for _, i := range o.Imports {
				if i.Kind == "import-statement" {
					preload += `<link rel="modulepreload" href="/console/assets/` + html.EscapeString(path.Base(i.Path)) + `">`
				}
			}
		case strings.HasSuffix(o.EntryPoint, ".css"):
			style = path.Base(at)
		}
	}
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		sum.Write([]byte(name))
		sum.Write(files[name])
	}
	page := strings.NewReplacer("SCRIPT", script, "STYLE", style, "<!--PRELOAD-->", preload,
		"BUILD", hex.EncodeToString(sum.Sum(nil))[:16]).Replace(string(template))
	files["index.html"] = []byte(page)
	return nil
}

func pack(content []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = w.Write(content)                               // a buffer accepts everything
	_ = w.Close()
	return b.Bytes()
}

// write replaces the files of a folder. Files of an earlier build are removed.
func write(files map[string][]byte, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := npm.WriteFile(filepath.Join(folder, name), content); err != nil {
			return err
		}
	}
	present, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, f := range present {
		if files[f.Name()] == nil {
			if err := os.Remove(filepath.Join(folder, f.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}
