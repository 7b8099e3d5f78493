package mcp

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"soniq/internal/platform/op"
)

// confirmTimeout is the time a person has to answer.
const confirmTimeout = 10 * time.Minute

// confirm asks the person through the client (elicitation) before an irreversible action. In all revisions the client
// answers by repeating the call with the answer and the state of the question.
func (c *toolCall) confirm() (*sdk.CallToolResult, *toolError) {
	question := c.t.question(c)
	if question.text == "" {
		return nil, nil
	}
	if !c.canAsk() {
		return nil, c.confirmedWithoutAsking(question)
	}
	if c.input.req.Params.InputResponses == nil {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"confirm": &sdk.ElicitParams{Mode: "form", Message: question.text,
			RequestedSchema: schema{"type": "object", "properties": schema{}}}}, RequestState: c.state(rand.Text(),
			c.s.cfg.Clock.Now().Add(confirmTimeout))}, nil
	}
	if !c.validState(c.input.req.Params.RequestState) {
		return nil, newToolError(op.Invalid(op.Field("requestState", "invalid", "is not of this question, or its time has passed")))
	}
	if answer, ok := c.input.req.Params.InputResponses["confirm"].(*sdk.ElicitResult); !ok || answer.Action != "accept" {
		return nil, declined()
	}
	return nil, nil
}

// confirmedWithoutAsking returns an error unless the action is allowed to a client that cannot ask.
func (c *toolCall) confirmedWithoutAsking(q question) *toolError {
	yes, _ := c.args["confirm"].(bool)
	switch {
	case q.otherwise == needsPerson:
		return personRequired(q.text)
	case q.otherwise == needsConfirm && !yes:
		return confirmationRequired(q.text)
	}
	return nil
}

// canAsk reports whether the client can show questions to its user.
func (c *toolCall) canAsk() bool {
	can := c.input.req.ClientCapabilities()
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// state returns a signed value that binds an answer to the credential, the tool, the arguments, a deadline and a
// nonce.
func (c *toolCall) state(nonce string, until time.Time) string {
	plain := nonce + "." + strconv.FormatInt(until.Unix(), 10)
	m := hmac.New(sha256.New, c.s.cfg.Key)
	for _, part := range []string{plain, c.sender.owner(), c.t.name, c.canonical()} {
		_, _ = fmt.Fprintf(m, "%d:%s", len(part), part)
	}
	return plain + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// canonical returns the arguments independent of their order and spaces.
func (c *toolCall) canonical() string {
	var v any
	d := json.NewDecoder(bytes.NewReader(c.input.arguments))
	d.UseNumber()
	_ = d.Decode(&v)
	b, _ := json.Marshal(v)
	return string(b)
}

func (c *toolCall) validState(state string) bool {
	nonce, rest, _ := strings.Cut(state, ".")
	at, _, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	until := time.Unix(seconds, 0)
	if err != nil || !hmac.Equal([]byte(state), []byte(c.state(nonce, until))) || !c.s.cfg.Clock.Now().Before(until) {
		return false
	}
	return c.s.usedNonces.claim(nonce, until)
}

// usedNonces holds the nonces of answered questions until their deadline. It is safe for concurrent use.
type usedNonces struct {
	now func() time.Time
	mu  sync.Mutex // guards all
	all map[string]time.Time
}

func newUsedNonces(now func() time.Time) *usedNonces {
	return &usedNonces{now: now, all: map[string]time.Time{}}
}

func (s *usedNonces) claim(nonce string, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for n, t := range s.all {
		if now.After(t) {
			delete(s.all, n)
		}
	}
	if _, again := s.all[nonce]; again {
		return false
	}
	s.all[nonce] = until
	return true
}

// duplicateCalls detects that a client repeats a call within a short time, because assistants repeat calls with a
// slow answer. It is safe for concurrent use.
type duplicateCalls struct {
	now func() time.Time
	mu  sync.Mutex // guards all
	all map[[32]byte]duplicateCall
}

type duplicateCall struct {
	key   string
	until time.Time
}

// duplicateWindow is the time in which an identical call is a repetition.
const duplicateWindow = 15 * time.Second

func newDuplicateCalls(now func() time.Time) *duplicateCalls {
	return &duplicateCalls{now: now, all: map[[32]byte]duplicateCall{}}
}

// key returns the idempotency key for a call without one: the key of an identical call within duplicateWindow, or a
// new one.
func (r *duplicateCalls) key(owner, what string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for k, x := range r.all {
		if now.After(x.until) {
			delete(r.all, k)
		}
	}
	id := sha256.Sum256([]byte(owner + "\n" + what))
	if x, ok := r.all[id]; ok {
		return x.key
	}
	x := duplicateCall{key: "mcp-" + rand.Text(), until: now.Add(duplicateWindow)}
	r.all[id] = x
	return x.key
}
