package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"soniq/internal/intelligence/voiceagent"
)

// NewLanguageModel returns a constructor of language models for voice agents that use the chat completions endpoint
// of an OpenAI-compatible server.
func NewAgentMind(c Choice) (func(voiceagent.Setting) voiceagent.Mind, error) {
	server, err := newServer(c, "/chat/completions")
	if err != nil {
		return nil, fmt.Errorf("assistant: %w", err)
	}
	model := c.model("gpt-4o-mini")
	return func(s voiceagent.Setting) voiceagent.Mind { return &agentMind{server: server, model: model, set: s} }, nil
}

// chatModel is a voiceagent.LanguageModel over the chat completions endpoint of an OpenAI-compatible server.
type agentMind struct {
	server *server
	model  string
	set    voiceagent.Setting
}

func (m *agentMind) Engine() string { return "openai-compatible:" + m.model }

// Phrases returns nil: a language model does not depend on a list of expected phrases.
func (m *agentMind) Phrases() []string { return nil }

// Limits of one answer of the server: tokens, tool calls, and bytes of arguments and of an event.
const (
	mostAnswerTokens = 400
	mostCalls        = 8
	mostArguments    = 8 << 10
	longestEvent     = 256 << 10
)

type chatMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	Of      string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	Index    int          `json:"index,omitempty"`
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatRequest struct {
	Model     string        `json:"model"`
	Messages  []chatMessage `json:"messages"`
	Tools     []any         `json:"tools,omitempty"`
	Stream    bool          `json:"stream"`
	MaxTokens int           `json:"max_tokens"`
}

// Reply sends the conversation to the server and passes each piece of the streamed answer to say. It returns the tool
// calls of the answer.
func (m *agentMind) Reply(ctx context.Context, told []voiceagent.Message, say func(string)) ([]voiceagent.Invocation, error) {
	messages := []chatMessage{{Role: "system", Content: m.set.Prompt()}}
	for _, x := range told {
		messages = append(messages, chatMessageOf(x))
	}
	body, err := json.Marshal(chatRequest{Model: m.model, Messages: messages, Tools: m.set.Functions(true), Stream: true, MaxTokens: mostAnswerTokens})
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, m.server.address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	if m.server.key != "" {
		r.Header.Set("Authorization", "Bearer "+m.server.key)
	}
	a, err := m.server.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", m.server.host, err)
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(a.Body, 4<<10))
		return nil, fmt.Errorf("ask %s: %w", m.server.host, &refused{status: a.StatusCode, message: complaint(text)})
	}
	return readChat(a.Body, say)
}

func chatMessageOf(x voiceagent.Message) chatMessage {
	m := chatMessage{Role: x.Role, Content: x.Text, Of: x.Of}
	for _, c := range x.Calls {
		m.Calls = append(m.Calls, chatCall{ID: c.ID, Type: "function", Function: chatFunction{c.Name, c.Arguments}})
	}
	return m
}

// chatEvent is one server-sent event of a streamed answer.
type chatEvent struct {
	Choices []struct {
		Delta struct {
			Content string     `json:"content"`
			Calls   []chatCall `json:"tool_calls"`
		} `json:"delta"`
	} `json:"choices"`
	Error *struct{ Message string } `json:"error"`
}

// readChat reads the events of a streamed answer until "[DONE]".
func readChat(from io.Reader, say func(string)) ([]voiceagent.Invocation, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 4<<10), longestEvent)
	var calls []voiceagent.Invocation
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); !ok || data == "" {
			continue
		}
		if data == "[DONE]" {
			return whole(calls)
		}
		var e chatEvent
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return nil, fmt.Errorf("the answer is not the JSON expected: %w", err)
		}
		if e.Error != nil {
			return nil, errors.New("the server says: " + cut(e.Error.Message, 300))
		}
		for _, c := range e.Choices[:min(len(e.Choices), 1)] {
			if c.Delta.Content != "" {
				say(c.Delta.Content)
			}
			var err error
			if calls, err = gather(calls, c.Delta.Calls); err != nil {
				return nil, err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return nil, errors.New("the answer broke off")
}

// mergeToolCalls adds the pieces of tool calls in one event to the calls read so far.
func gather(calls []voiceagent.Invocation, pieces []chatCall) ([]voiceagent.Invocation, error) {
	for _, p := range pieces {
		if p.Index < 0 || p.Index >= mostCalls || p.Index > len(calls) {
			return nil, errors.New("the server wants too many tools at once")
		}
		if p.Index == len(calls) {
			calls = append(calls, voiceagent.Invocation{})
		}
		c := &calls[p.Index]
		c.ID, c.Name, c.Arguments = c.ID+p.ID, c.Name+p.Function.Name, c.Arguments+p.Function.Arguments
		if len(c.Arguments) > mostArguments || len(c.Name) > 200 || len(c.ID) > 200 {
			return nil, errors.New("the arguments of a tool are too long")
		}
	}
	return calls, nil
}

// withCallIDs assigns an id to each tool call without one, because the message with the tool's result must cite it.
func whole(calls []voiceagent.Invocation) ([]voiceagent.Invocation, error) {
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	return calls, nil
}
