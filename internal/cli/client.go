package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"soniq/internal/config"
	"soniq/internal/control"
)

// remote is a running soniq that a command speaks to the way customers do: by its public API, with a key.
type remote struct {
	url, key  string
	org, env  string // for a key that the running soniq is asked for
	data      string
	json      bool
	out, note io.Writer // what was asked for, and what is said about it

	minted string // id of that key
	secret string // that webhooks for it may be signed with
}

// The environment variables of these commands.
const (
	urlVariable = "SONIQ_URL"
	keyVariable = "SONIQ_KEY"
)

const defaultURL = "http://127.0.0.1:8080"

// parse reads flags and words in any order; more adds flags of the command's own. It answers the words.
func (r *remote) parse(name, words string, args []string, env string, more func(*flag.FlagSet)) ([]string, error) {
	r.out, r.note = os.Stdout, os.Stderr
	fs := flag.NewFlagSet("soniq "+name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if more != nil {
		more(fs)
	}
	fs.StringVar(&r.url, "url", os.Getenv(urlVariable), "address of the server ("+urlVariable+", default "+defaultURL+")")
	fs.StringVar(&r.key, "key", "", "API key ("+keyVariable+"); without one the soniq that runs on --data is asked for one")
	fs.StringVar(&r.data, "data", cmp.Or(os.Getenv("SONIQ_DATA"), "./soniq-data"), "folder of a soniq on this machine, where there is no key (SONIQ_DATA)")
	fs.StringVar(&r.org, "org", "", "with --data: the organisation, where there are several")
	fs.StringVar(&r.env, "env", env, "with --data: live or test, which is the sandbox")
	fs.BoolVar(&r.json, "json", false, "print JSON, a line for each record")
	help := func() {
		fmt.Fprintf(r.out, "usage: soniq %s [flags]\n\n", strings.TrimSpace(name+" "+words))
		fs.VisitAll(func(f *flag.Flag) { config.PrintFlag(r.out, f.Name, f.Usage, "", "") })
	}
	var found []string
	for {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			help()
			return nil, err
		} else if err != nil {
			return nil, &failure{exitUsage, fmt.Errorf("%s: %w; soniq %s --help lists the flags", name, err, name)}
		}
		if fs.NArg() == 0 {
			break
		}
		found, args = append(found, fs.Arg(0)), fs.Args()[1:]
	}
	if r.key == "" {
		r.key = os.Getenv(keyVariable) // not a default, which help would show
	}
	if r.env != "live" && r.env != "test" {
		return nil, &failure{exitUsage, errors.New("--env must be live or test")}
	}
	return found, nil
}

// wants fails unless there are as many words as named.
func wants(name string, words []string, names ...string) error {
	if len(words) == len(names) {
		return nil
	}
	if len(words) > len(names) {
		return &failure{exitUsage, fmt.Errorf("%s: %q is one word too many", name, words[len(names)])}
	}
	return &failure{exitUsage, fmt.Errorf("%s: say which %s: soniq %s %s", name, strings.ToLower(names[len(words)]), name, strings.Join(names, " "))}
}

// connect finds address and key. done gives back what was asked for.
func (r *remote) connect(ctx context.Context) (done func(), err error) {
	if r.key == "" {
		if err := r.borrow(ctx); err != nil {
			return nil, err
		}
	}
	r.url = strings.TrimRight(cmp.Or(r.url, defaultURL), "/")
	if !config.IsWebURL(r.url) {
		return nil, &failure{exitUsage, fmt.Errorf("--url %q must be an address such as https://voice.example.com", r.url)}
	}
	return r.giveBack, nil
}

// borrow asks the soniq that runs on the data folder for a key.
func (r *remote) borrow(ctx context.Context) error {
	var s control.Session
	err := control.Call(ctx, r.data, "session", control.SessionRequest{Org: r.org, Env: r.env}, &s)
	if errors.Is(err, control.ErrNotRunning) {
		return &failure{exitAccess, fmt.Errorf("no API key: give --key or set %s (soniq key create makes one), or name with --data the folder of a soniq that runs here; none runs on %s", keyVariable, r.data)}
	}
	if err != nil {
		return err
	}
	r.key, r.minted, r.secret, r.url = s.Key, s.KeyID, s.HookSecret, cmp.Or(r.url, s.URL)
	return nil
}

// giveBack revokes a key that was asked for.
func (r *remote) giveBack() {
	if r.minted == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = r.do(ctx, http.MethodDelete, "/api-keys/"+r.minted, nil, nil) // it expires by itself
	r.minted = ""
}

// sandbox reports whether the key is of the sandbox.
func (r *remote) sandbox() bool { return strings.Contains(r.key, "_test_") }

// at is the address of an operation.
func (r *remote) at(path string) string {
	if r.sandbox() {
		return r.url + "/sandbox/v1" + path
	}
	return r.url + "/api/v1" + path
}

// patience is how long a command waits for an answer.
const patience = 60 * time.Second

// do sends a request and reads its JSON answer into out, which may be nil.
func (r *remote) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := r.ask(ctx, method, path, in, nil)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(answer.Body).Decode(out); err != nil {
		return fmt.Errorf("the answer to %s %s cannot be read: %w", method, path, err)
	}
	return nil
}

// ask sends a request; an answer that is no success becomes an error that says what to do.
func (r *remote) ask(ctx context.Context, method, path string, in any, header http.Header) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, r.at(path), body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		q.Header[name] = values
	}
	q.Header.Set("Authorization", "Bearer "+r.key)
	q.Header.Set("User-Agent", "soniq/"+config.Version)
	if in != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, r.unreached(err)
	}
	if answer.StatusCode < 300 {
		return answer, nil
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return nil, refused(answer, text)
}

// unreached explains why nobody answered.
func (r *remote) unreached(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if errors.Is(u.Err, context.Canceled) {
			return u.Err
		}
		err = u.Err
	}
	return &failure{exitUnreached, fmt.Errorf("%s cannot be reached: %w; is soniq serve running there? --url or %s names another address", r.url, err, urlVariable)}
}
