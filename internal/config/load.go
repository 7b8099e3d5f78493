package config

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// This file reads the settings from the command line, the environment and the configuration file.

// EnvAnnotation is the annotation of a flag that holds the name of its environment variable.
const EnvAnnotation = "soniq_env"

// Setting describes one field of Config.
type Setting struct {
	Index    int
	Flag     string
	Secret   bool
	old      string // earlier name, "" if there is none
	initial  string
	help     string
	typeName string
}

// Settings returns every setting, in the order of the fields of Config.
func Settings() []Setting {
	t := reflect.TypeFor[Config]()
	all := make([]Setting, t.NumField())
	for i := range all {
		tag := t.Field(i).Tag
		all[i] = Setting{Index: i, Flag: tag.Get("flag"), Secret: tag.Get("secret") == "true", old: tag.Get("old"),
			initial: tag.Get("default"), help: tag.Get("help"), typeName: strings.ToLower(t.Field(i).Type.Name())}
	}
	return all
}

// names returns the names of a setting, the preferred one last.
func (s *Setting) names() []string {
	if s.old == "" {
		return []string{s.Flag}
	}
	return []string{s.old, s.Flag}
}

// variable returns the environment variable of a setting.
func variable(name string) string {
	return "SONIQ_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
}

// Flags holds the settings that are given on a command line.
type Flags struct{ given map[string]string }

// NewFlags adds every setting to the flags of a command, except those that the command has a flag of its own for. Help and completion show
// the settings in shown, or all if shown is empty. Earlier names are accepted and never shown.
func NewFlags(fs *pflag.FlagSet, shown ...string) *Flags {
	f := &Flags{map[string]string{}}
	for _, s := range Settings() {
		v := &flagValue{s, f.given}
		add := func(name string, hidden bool) {
			if fs.Lookup(name) == nil {
				fs.AddFlag(&pflag.Flag{Name: name, Usage: s.help, Value: v, DefValue: s.initial, Hidden: hidden,
					Annotations: map[string][]string{EnvAnnotation: {variable(name)}}})
			}
		}
		add(s.Flag, len(shown) > 0 && !slices.Contains(shown, s.Flag))
		if s.old != "" {
			add(s.old, true)
		}
	}
	return f
}

// flagValue is the value of a setting on the command line. fill checks it, to report all mistakes at once.
type flagValue struct {
	setting Setting
	given   map[string]string
}

func (v *flagValue) Set(text string) error { v.given[v.setting.Flag] = text; return nil }
func (v *flagValue) Type() string          { return v.setting.typeName }
func (v *flagValue) String() string {
	if text, ok := v.given[v.setting.Flag]; ok {
		return text
	}
	return v.setting.initial
}

// Load returns the settings: each from its flag, else from the environment, else from the configuration file, else its default. The error
// names every setting that is wrong.
func (f *Flags) Load() (c Config, err error) {
	file, err := readFile(cmp.Or(f.given["config"], os.Getenv(variable("config"))))
	if err != nil {
		return c, err
	}
	return c, errors.Join(c.fill(f.given, file)...)
}

// Parse returns the settings for arguments that are flags of settings only.
func Parse(args ...string) (c Config, err error) {
	fs := pflag.NewFlagSet("settings", pflag.ContinueOnError)
	f := NewFlags(fs)
	if err := fs.Parse(args); err != nil {
		return c, err
	}
	return f.Load()
}

// fill takes each setting from its strongest source, and returns an error for everything that is wrong.
func (c *Config) fill(given, file map[string]string) []error {
	var wrong []error
	v := reflect.ValueOf(c).Elem()
	for _, s := range Settings() {
		text, source := s.initial, "default"
		for _, name := range s.names() {
			if t, ok := file[name]; ok {
				text, source = t, "configuration file"
				delete(file, name)
			}
		}
		for _, name := range s.names() {
			if t, ok := os.LookupEnv(variable(name)); ok {
				text, source = t, variable(name)
			}
		}
		if t, ok := given[s.Flag]; ok {
			text, source = t, "--"+s.Flag
		}
		value, err := clean(text, s.Secret)
		if err == nil {
			err = put(v.Field(s.Index), value)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %q is not valid for %s: %w", source, text, s.Flag, err))
		}
	}
	for name := range file {
		wrong = append(wrong, fmt.Errorf("configuration file: there is no setting %q; run soniq help serve for the list", name))
	}
	wrong = append(wrong, c.check()...)
	for i, err := range wrong {
		wrong[i] = c.RedactError(err)
	}
	return wrong
}

func put(field reflect.Value, text string) error {
	switch field.Interface().(type) {
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return errors.New("it must be a time such as 30s")
		}
		field.SetInt(int64(d))
		return nil
	case int:
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return errors.New("it must be a whole number")
		}
		field.SetInt(int64(n))
		return nil
	}
	field.SetString(text)
	return nil
}

// readFile reads lines "name = value". A line that begins with # is a comment.
func readFile(path string) (map[string]string, error) {
	values := map[string]string{}
	if path == "" {
		return values, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration file: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s line %d: expected name = value", path, n)
		}
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if _, given := values[name]; given {
			return nil, fmt.Errorf("%s line %d: %s is given twice; remove one of the lines", path, n, name)
		}
		if before, _, found := strings.Cut(value, " #"); found && strings.Count(before, `"`)%2+strings.Count(before, "'")%2 == 0 {
			return nil, fmt.Errorf("%s line %d: # in the value of %s; put a comment on a line of its own, or the value in quotes", path, n, name)
		}
		values[name] = value
	}
	return values, lines.Err()
}
