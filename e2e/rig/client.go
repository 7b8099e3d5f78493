package rig

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
)

// Org makes an organisation and a key of it that may do everything (env live or test).
func (s *Server) Org(env string) *Client {
	s.T.Helper()
	org := s.control("org.create", map[string]string{"Name": "Org of " + s.T.Name(), "Country": "US"})
	return s.Key(org, env, "all")
}

// Key makes a key of an organisation and returns a client that uses it.
func (s *Server) Key(org, env, scopes string) *Client {
	s.T.Helper()
	key := s.control("key.create", map[string]string{"Org": org, "Scopes": scopes, "Kind": "standard", "Env": env, "Name": "command line"})
	prefix := "/api/v1"
	if env == "test" {
		prefix = "/sandbox/v1"
	}
	c := &Client{T: s.T, Server: s, Org: org, Key: key, Prefix: prefix}
	s.T.Cleanup(c.showCalls)
	return c
}

// A Client uses the API with a key.
type Client struct {
	T      testing.TB
	Server *Server
	Org    string
	Key    string
	Prefix string
	As     string // the child organisation it acts in (On-Behalf-Of); "" for its own
}

// Response holds a response of the API.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// JSON reads the body into a map.
func (r Response) JSON() map[string]any {
	var m map[string]any
	_ = json.Unmarshal(r.Body, &m)
	return m
}

// Do sends a request and returns the response, whatever its status. The body may be nil, a value to encode, or raw
// []byte.
func (c *Client) Do(method, path string, body any, header ...string) Response {
	c.T.Helper()
	var reader io.Reader
	switch b := body.(type) {
	case nil:
	case []byte:
		reader = bytes.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			c.T.Fatal(err)
		}
		reader = bytes.NewReader(encoded)
	}
	r, err := http.NewRequest(method, "http://"+c.Server.HTTP+c.Prefix+path, reader)
	if err != nil {
		c.T.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.Key)
	if c.As != "" {
		r.Header.Set("On-Behalf-Of", c.As)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	return Response{answer.StatusCode, answer.Header, b}
}

// Want calls Do and fails the test unless the response has the status. It decodes the response into out unless out is
// nil.
func (c *Client) Want(status int, method, path string, body, out any) {
	c.T.Helper()
	r := c.Do(method, path, body)
	if r.Status != status {
		c.T.Fatalf("%s %s: got %d, want %d: %s", method, path, r.Status, status, r.Body)
	}
	if out != nil {
		if err := json.Unmarshal(r.Body, out); err != nil {
			c.T.Fatalf("%s %s: %v in %s", method, path, err, r.Body)
		}
	}
}

// User is a user with the phone that the API created for them.
type User struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Extension string `json:"extension"`
	SIP       Login  `json:"sip"`
}

// AddUser adds a user with a phone.
func (c *Client) AddUser(first string) User {
	c.T.Helper()
	var u User
	c.Want(201, "POST", "/users", map[string]any{"email": strings.ToLower(first) + "@example.com", "first_name": first}, &u)
	return u
}
