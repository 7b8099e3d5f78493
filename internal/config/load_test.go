package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestLoad_OldNames reads settings under their earlier names: flag, environment variable and line of the file. The present name wins if one
// source has both; a stronger source wins in any case.
func TestLoad_OldNames(t *testing.T) {
	file := filepath.Join(t.TempDir(), "soniq.conf")
	if err := os.WriteFile(file, []byte("writer = off\nassistant-model = small\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(args ...string) Config {
		t.Helper()
		c, err := Parse(args...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := load("--config", file); c.Summarizer != "off" || c.VoiceAgentModel != "small" {
		t.Errorf("file: %q, %q", c.Summarizer, c.VoiceAgentModel)
	}
	if c := load("--writer", "http://a", "--assistant=off", "--assistant-key", "k"); c.Summarizer != "http://a" || c.VoiceAgent != "off" || c.VoiceAgentKey != "k" {
		t.Errorf("flags: %q, %q, %q", c.Summarizer, c.VoiceAgent, c.VoiceAgentKey)
	}
	t.Setenv("SONIQ_WRITER", "http://old")
	t.Setenv("SONIQ_ASSISTANT", "off")
	if c := load("--config", file); c.Summarizer != "http://old" || c.VoiceAgent != "off" {
		t.Errorf("environment: %q, %q", c.Summarizer, c.VoiceAgent)
	}
	t.Setenv("SONIQ_SUMMARIZER", "http://new")
	if c := load("--config", file); c.Summarizer != "http://new" {
		t.Errorf("both variables: %q", c.Summarizer)
	}
	if c := load("--writer", "off"); c.Summarizer != "off" {
		t.Errorf("old flag beside variables: %q", c.Summarizer)
	}
	_, err := Parse("--writer", "sherpa:x")
	if err == nil || !strings.Contains(err.Error(), `--summarizer "sherpa:x" must be builtin`) {
		t.Errorf("wrong value: %v", err)
	}
}

// TestNewFlags_Shown hides settings that a command does not show, and earlier names always. It leaves the command's own flags as they are.
func TestNewFlags_Shown(t *testing.T) {
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	brand := fs.String("brand", "own", "a flag of the command")
	f := NewFlags(fs, "data")
	if fs.Lookup("data").Hidden || !fs.Lookup("http").Hidden || !fs.Lookup("writer").Hidden {
		t.Error("data is hidden, or http or writer is not")
	}
	if err := fs.Parse([]string{"--brand", "mine", "--http", "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	c, err := f.Load()
	if err != nil || *brand != "mine" || c.Brand != "soniq" || c.HTTP != "127.0.0.1:1" {
		t.Errorf("brand %q and %q, http %q: %v", *brand, c.Brand, c.HTTP, err)
	}
	all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	NewFlags(all)
	if all.Lookup("http").Hidden || !all.Lookup("assistant").Hidden || all.Lookup("drain").Annotations[EnvAnnotation][0] != "SONIQ_DRAIN" {
		t.Error("http is hidden, or assistant is not, or a variable is wrong")
	}
}
