// Package remote has the commands that use a running soniq by its public API, one file for each.
package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"soniq/internal/cli/command"
	"soniq/internal/config"
	"soniq/internal/control"
)

// client uses a running soniq as customers do: by its public API, with a key.
type client struct {
	url, key  string
	org, env  string // of the key to ask for
	data      string
	json      bool
	out, note io.Writer // standard output for records, standard error for notes about them

	tempKeyID  string // id of the key that the running soniq created for this command, "" if there is none
	hookSecret string // webhook secret that belongs to that key
}

const (
	defaultURL  = "http://127.0.0.1:8080"
	defaultData = "./soniq-data"
)

// addFlags adds the flags with which a command finds server and key. env is the default of --env.
func (c *client) addFlags(cmd *cobra.Command, env string) {
	command.EndsWithUsage(cmd)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&c.url, "url", "", "address of the server; unless given "+defaultURL)
	f.StringVar(&c.key, "key", "", "API key; without one the soniq that runs on --data is asked for one")
	f.StringVar(&c.data, "data", "", "folder of a soniq on this machine, if there is no key; unless given "+defaultData)
	f.StringVar(&c.org, "org", "", "with --data: the organisation, if there are several")
	f.StringVar(&c.env, "env", env, "with --data: live, or test for the sandbox")
	f.BoolVar(&c.json, "json", false, "print JSON, a line for each record")
	for flag, variable := range map[string]string{"url": command.URLVariable, "key": command.KeyVariable, "data": command.DataVariable} {
		_ = f.SetAnnotation(flag, config.EnvAnnotation, []string{variable})
	}
	for _, flag := range []string{"url", "key", "data", "org", "env", "json"} {
		_ = f.SetAnnotation(flag, command.ConnectionAnnotation, []string{"true"})
	}
	_ = cmd.MarkFlagDirname("data")
	command.CompleteFlag(cmd, "url")
	command.CompleteFlag(cmd, "key")
	command.CompleteFlag(cmd, "org")
	command.CompleteFlag(cmd, "env", "live", "test")
}

// connect finds address and key. done revokes a key that was created for this command.
func (c *client) connect(cmd *cobra.Command) (done func(), err error) {
	c.out, c.note = cmd.OutOrStdout(), cmd.ErrOrStderr()
	c.url, c.key = cmp.Or(c.url, os.Getenv(command.URLVariable)), cmp.Or(c.key, os.Getenv(command.KeyVariable))
	c.data = cmp.Or(c.data, os.Getenv(command.DataVariable), defaultData)
	if c.env != "live" && c.env != "test" {
		return nil, command.UsageErrorf(cmd, "--env must be live or test")
	}
	if c.key == "" {
		if err := c.requestKey(cmd.Context()); err != nil {
			return nil, err
		}
	}
	c.url = strings.TrimRight(cmp.Or(c.url, defaultURL), "/")
	if !config.IsWebURL(c.url) {
		return nil, command.UsageErrorf(cmd, "--url %q must be an address such as https://voice.example.com", c.url)
	}
	return c.revokeKey, nil
}

// requestKey asks the soniq that runs on the data folder for a key.
func (c *client) requestKey(ctx context.Context) error {
	var s control.Session
	err := control.Call(ctx, c.data, "session", control.SessionRequest{Org: c.org, Env: c.env}, &s)
	if errors.Is(err, control.ErrNotRunning) {
		return command.Fail(command.ExitAccess, fmt.Errorf(
			"no API key: give --key or set %s (soniq admin keys create makes one), or name with --data "+
				"the folder of a soniq that runs here; none runs on %s", command.KeyVariable, c.data))
	}
	if err != nil {
		return err
	}
	c.key, c.tempKeyID, c.hookSecret, c.url = s.Key, s.KeyID, s.HookSecret, cmp.Or(c.url, s.URL)
	return nil
}

// revokeKey revokes the key that requestKey returned. If this fails, the key is valid until it expires.
func (c *client) revokeKey() {
	if c.tempKeyID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = c.do(ctx, http.MethodDelete, "/api-keys/"+c.tempKeyID, nil, nil)
	c.tempKeyID = ""
}

// sandbox reports whether the key belongs to the sandbox.
func (c *client) sandbox() bool { return strings.Contains(c.key, "_test_") }

// at returns the URL of an operation.
func (c *client) at(path string) string {
	if c.sandbox() {
		return c.url + "/sandbox/v1" + path
	}
	return c.url + "/api/v1" + path
}

// requestTimeout limits a request with its response.
const requestTimeout = 60 * time.Second

// do sends a request and decodes the JSON response into out. If out is nil the response is discarded.
func (c *client) do(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	response, err := c.send(ctx, method, path, in, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(out); err != nil {
		return fmt.Errorf("the answer to %s %s cannot be read: %w", method, path, err)
	}
	return nil
}

// send sends a request and returns the response. A status other than success is an error with a remedy.
func (c *client) send(ctx context.Context, method, path string, in any, header http.Header) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.at(path), body)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		q.Header[name] = values
	}
	q.Header.Set("Authorization", "Bearer "+c.key)
	q.Header.Set("User-Agent", "soniq/"+config.Version)
	if in != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		return nil, c.unreached(err)
	}
	if response.StatusCode < 300 {
		return response, nil
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	return nil, command.ReadProblem(response, text)
}

// unreached returns the error for a server that did not answer.
func (c *client) unreached(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		if errors.Is(u.Err, context.Canceled) {
			return u.Err
		}
		err = u.Err
	}
	return command.Fail(command.ExitUnreached, fmt.Errorf(
		"%s cannot be reached: %w; is soniq serve running there? --url or %s names another address", c.url, err, command.URLVariable))
}
