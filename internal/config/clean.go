package config

import (
	"errors"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
)

// This file cleans the text of settings, hides secrets in texts that are shown, and finds misspelt environment variables.

// clean returns a value without the space and the pair of quotes around it. Values in env files of containers and in files of secrets often
// have them. A single quote at one end is an error; a secret may have it.
func clean(text string, secret bool) (string, error) {
	text = strings.TrimSpace(text)
	for _, quote := range []string{`"`, `'`} {
		inner, begins := strings.CutPrefix(text, quote)
		_, ends := strings.CutSuffix(text, quote)
		n := strings.Count(text, quote)
		switch {
		case begins && ends && n == 2:
			return strings.TrimSuffix(inner, quote), nil
		case (begins || ends) && n%2 == 1 && !secret:
			return "", errors.New("it has a quote at one end only")
		}
	}
	return text, nil
}

// hidden stands in place of a secret.
const hidden = "(hidden)"

var (
	// credentials are the user and password of a URL, also of one that is not well-formed.
	credentials = regexp.MustCompile(`(://)\S*@`)
	// assigned are passwords in a connection string of PostgreSQL, and in queries.
	assigned = regexp.MustCompile(`(?i)((?:password|passwd|passfile|pwd|secret|token|key)\s*=\s*)('[^']*'?|"[^"]*"?|[^&\s'"]+)`)
)

// Redact returns a text in which the passwords of URLs and connection strings are hidden.
func Redact(text string) string {
	return assigned.ReplaceAllString(credentials.ReplaceAllString(text, "${1}"+hidden+"@"), "${1}"+hidden)
}

// redactedError is an error whose text is redacted.
type redactedError struct{ error }

func (e redactedError) Error() string { return Redact(e.error.Error()) }
func (e redactedError) Unwrap() error { return e.error }

// RedactError returns an error in whose text no password of a setting is shown. nil remains nil.
func (c *Config) RedactError(err error) error {
	if err == nil {
		return nil
	}
	for _, secret := range c.secrets() {
		if strings.Contains(err.Error(), secret) {
			return errors.New(Redact(strings.ReplaceAll(err.Error(), secret, hidden)))
		}
	}
	return redactedError{err}
}

// secrets returns the passwords in the addresses of other servers.
func (c *Config) secrets() (all []string) {
	for _, address := range []string{c.DB, c.SMTP, c.Transcriber, c.Summarizer, c.Embedder, c.Voice, c.VoiceAgent} {
		u, err := url.Parse(address)
		if err != nil {
			continue
		}
		password, _ := u.User.Password()
		for _, p := range []string{password, url.QueryEscape(password), u.Query().Get("password")} {
			if len(p) > 2 {
				all = append(all, p)
			}
		}
	}
	return all
}

// foreign are the beginnings of variables of other programs: those that Kubernetes sets for a service named soniq, and those of our tests.
var foreign = regexp.MustCompile(`^SONIQ_(PORT(_\d+_.*)?|SERVICE_(HOST|PORT.*)|(E2E|TEST|EVAL|BENCH|SOAK|SETUP|FUZZ|UPDATE)(_.*)?|` +
	`[A-Z_]*_SERVICE_(HOST|PORT.*))$`)

// commandVariables are the variables of commands that are no settings.
var commandVariables = []string{"SONIQ_URL", "SONIQ_KEY", "SONIQ_MCP_URL", "SONIQ_MCP_KEY", "SONIQ_MCP_HOME", "SONIQ_API_KEY"}

// UnknownVariables returns the names of environment variables that begin with SONIQ_ and are no settings, sorted.
func UnknownVariables() (all []string) {
	known := slices.Clone(commandVariables)
	for _, s := range Settings() {
		for _, name := range s.names() {
			known = append(known, variable(name))
		}
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(strings.ToUpper(name), "SONIQ_") && !slices.Contains(known, name) && !foreign.MatchString(name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
