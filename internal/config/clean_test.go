package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Quotes and space around a value are no part of it, from every source. A quote at one end is a mistake, but not in a secret.
//
// https://github.com/moby/moby/issues/36110
// https://github.com/moby/moby/issues/46773
func TestClean(t *testing.T) {
	file := filepath.Join(t.TempDir(), "soniq.conf")
	for text, want := range map[string]string{
		`brand`: "brand", ` brand `: "brand", "brand\r\n": "brand", `"brand"`: "brand", `'brand'`: "brand", ` "brand" `: "brand", `""`: "",
		`"a" <b@c> "d"`: `"a" <b@c> "d"`, `"Voice" <v@x>`: `"Voice" <v@x>`, `it's`: `it's`,
	} {
		t.Setenv("SONIQ_BRAND", text)
		if c, err := Parse(); err != nil || c.Brand != want {
			t.Errorf("variable %q: %q, %v", text, c.Brand, err)
		}
	}
	if err := os.Unsetenv("SONIQ_BRAND"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SONIQ_TURN_SECRET", `"abc`)
	if c, err := Parse(); err != nil || c.TURNSecret != `"abc` {
		t.Errorf("a secret that begins with a quote: %q, %v", c.TURNSecret, err)
	}
	for line, want := range map[string]string{
		`brand = "mine`: "quote at one end", "brand = mine # ours": "line 1: # in the value", `brand = "mine" # ours`: "line 1: # in the value", "brand = a\nbrand = b": "line 2: brand is given twice",
		"brnad = mine": `no setting "brnad"`,
	} {
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Parse("--config", file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	for line, want := range map[string]string{"\ufeffbrand = mine": "mine", `brand = "a #b"`: "a #b", "brand=a#b\r": "a#b"} {
		if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if c, err := Parse("--config", file); err != nil || c.Brand != want {
			t.Errorf("%q: %q, %v", line, c.Brand, err)
		}
	}
}

// No text that is shown has a password in any form.
func TestRedact(t *testing.T) {
	for _, text := range []string{
		"postgres://soniq:hush@db/soniq", "postgresq://soniq:hush@db", "postgres://soniq:hu/hush@db/soniq", "postgres://db/soniq?password=hush&sslmode=off",
		"host=db password=hush user=soniq", "host=db password='hu hush'", "smtps://a:hush@mail", "https://a:hush@engine/v1?api_key=hush",
	} {
		if got := Redact(text); strings.Contains(got, "hush") {
			t.Errorf("%s is shown as %s", text, got)
		}
		for _, name := range []string{"--db", "--smtp", "--voice", "--http", "--public-ip", "--base-url"} {
			if _, err := Parse(name, text); err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("%s %s: %v", name, text, err)
			}
		}
	}
	for _, text := range []string{"https://voice.example.org/base", "stun:a:3478,turn:b", "Voice <v@example.org>", "20000-29999"} {
		if got := Redact(text); got != text {
			t.Errorf("%s is shown as %s", text, got)
		}
	}
}

// Variables that look like settings are named, those of Kubernetes and of our commands are not.
func TestUnknownVariables(t *testing.T) {
	for _, name := range []string{"SONIQ_HTTPP", "SONIQ_RTP_PORT", "soniq_http", "SONIQ_HTTP", "SONIQ_WRITER", "SONIQ_KEY", "SONIQ_PORT",
		"SONIQ_PORT_8080_TCP_ADDR", "SONIQ_SERVICE_HOST", "SONIQ_SERVICE_PORT_HTTP", "SONIQ_WEB_SERVICE_HOST"} {
		t.Setenv(name, "")
	}
	if got := UnknownVariables(); !slices.Equal(got, []string{"SONIQ_HTTPP", "SONIQ_RTP_PORT", "soniq_http"}) {
		t.Errorf("got %v", got)
	}
}

// What serve refuses, every command that reads the settings refuses.
func TestCheck_Listeners(t *testing.T) {
	for _, args := range [][]string{{"--https", "8443"}, {"--smpp", "a:b"}, {"--sip-tls", "127.0.0.1:5061", "--tls-cert", "/nowhere"},
		{"--sip-tls", "127.0.0.1:5061", "--tls-cert", "/nowhere", "--tls-key", "/nowhere"}, {"--trusted-proxies", "10.0.0.1"},
		{"--sip-edges", "edge"}} {
		if _, err := Parse(args...); err == nil || !strings.Contains(err.Error(), args[len(args)-2][:6]) &&
			!strings.Contains(err.Error(), "--tls-key") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
