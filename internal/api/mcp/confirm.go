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
const answerTime = 10 * time.Minute

// confirm asks the person through the client (elicitation) before an irreversible action. In all revisions the client
// answers by repeating the call with the answer and the state of the question.
func (c *call) confirm() (*sdk.CallToolResult, *fault) {
	question := c.t.ask(c)
	if !c.canAsk() {
		if yes, _ := c.args["confirm"].(bool); c.t.must && !yes {
			return nil, unconfirmed(question)
		}
		return nil, nil
	}
	if c.asked.req.Params.InputResponses == nil {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"confirm": &sdk.ElicitParams{Mode: "form", Message: question,
			RequestedSchema: schema{"type": "object", "properties": schema{}}}}, RequestState: c.state(rand.Text(), c.s.Now().Add(answerTime))}, nil
	}
	if !c.genuine(c.asked.req.Params.RequestState) {
		return nil, failed(op.Invalid(op.Field("requestState", "invalid", "is not of this question, or its time has passed")))
	}
	if answer, ok := c.asked.req.Params.InputResponses["confirm"].(*sdk.ElicitResult); !ok || answer.Action != "accept" {
		return nil, refusedByPerson()
	}
	return nil, nil
}

// canAsk reports whether the client can show questions to its user.
func (c *call) canAsk() bool {
	can := c.asked.req.ClientCapabilities()
	return can != nil && can.Elicitation != nil && (can.Elicitation.Form != nil || can.Elicitation.URL == nil)
}

// state returns a signed value that binds an answer to the credential, the tool, the arguments, a deadline and a
// nonce.
func (c *call) state(nonce string, until time.Time) string {
	plain := nonce + "." + strconv.FormatInt(until.Unix(), 10)
	m := hmac.New(sha256.New, c.s.Key)
	for _, part := range []string{plain, c.visit.owner(), c.t.name, c.canonical()} {
		_, _ = fmt.Fprintf(m, "%d:%s", len(part), part)
	}
	return plain + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// canonical returns the arguments independent of their order and spaces.
func (c *call) canonical() string {
	var v any
	d := json.NewDecoder(bytes.NewReader(c.asked.arguments))
	d.UseNumber()
	_ = d.Decode(&v)
	b, _ := json.Marshal(v)
	return string(b)
}

func (c *call) genuine(state string) bool {
	nonce, rest, _ := strings.Cut(state, ".")
	at, _, _ := strings.Cut(rest, ".")
	seconds, err := strconv.ParseInt(at, 10, 64)
	until := time.Unix(seconds, 0)
	if err != nil || !hmac.Equal([]byte(state), []byte(c.state(nonce, until))) || !c.s.Now().Before(until) {
		return false
	}
	return c.s.spent.first(nonce, until)
}

// usedNonces holds the nonces of answered questions until their deadline. It is safe for concurrent use.
type spent struct {
	now func() time.Time
	mu  sync.Mutex // guards all
	all map[string]time.Time
}

func newSpent(now func() time.Time) *spent { return &spent{now: now, all: map[string]time.Time{}} }

func (s *spent) first(nonce string, until time.Time) bool {
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
type repeats struct {
	now func() time.Time
	mu  sync.Mutex // guards all
	all map[[32]byte]repeat
}

type repeat struct {
	key   string
	until time.Time
}

// duplicateWindow is the time in which an identical call is a repetition.
const repeatTime = 15 * time.Second

func newRepeats(now func() time.Time) *repeats { return &repeats{now: now, all: map[[32]byte]repeat{}} }

// key returns the idempotency key for a call without one: the key of an identical call within duplicateWindow, or a
// new one.
func (r *repeats) key(owner, what string) string {
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
	x := repeat{key: "mcp-" + rand.Text(), until: now.Add(repeatTime)}
	r.all[id] = x
	return x.key
}
