package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/platform/strictjson"
)

// NewLanguageModel returns a constructor of language models for voice agents that use the chat completions endpoint
// of an OpenAI-compatible server.
func NewLanguageModel(c engine.Config) (func(voiceagent.ConversationSettings) voiceagent.LanguageModel, error) {
	server, err := engine.NewEndpoint(c, "/chat/completions")
	if err != nil {
		return nil, fmt.Errorf("assistant: %w", err)
	}
	model := c.ModelOrDefault("gpt-4o-mini")
	return func(s voiceagent.ConversationSettings) voiceagent.LanguageModel {
		return &chatModel{endpoint: server, model: model, setting: s}
	}, nil
}

// chatModel is a voiceagent.LanguageModel over the chat completions endpoint of an OpenAI-compatible server.
type chatModel struct {
	endpoint *engine.Endpoint
	model    string
	setting  voiceagent.ConversationSettings
}

func (m *chatModel) Engine() string { return "openai-compatible:" + m.model }

// Phrases returns nil: a language model does not depend on a list of expected phrases.
func (m *chatModel) Phrases() []string { return nil }

// Limits of one answer of the server: tokens, tool calls, and bytes of arguments and of an event.
const (
	maxAnswerTokens  = 400
	maxToolCalls     = 8
	maxArgumentBytes = 8 << 10
	maxEventBytes    = 256 << 10
)

type chatMessage struct {
	Role       string     `json:"role"`
	Content    string     `json:"content"`
	ToolCalls  []chatCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
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
func (m *chatModel) Reply(ctx context.Context, told []voiceagent.Message, say func(string)) ([]voiceagent.ToolCall, error) {
	messages := []chatMessage{{Role: "system", Content: m.setting.SystemPrompt()}}
	for _, x := range told {
		messages = append(messages, chatMessageOf(x))
	}
	body, err := json.Marshal(chatRequest{Model: m.model, Messages: messages, Tools: m.setting.ToolSchemas(true), Stream: true,
		MaxTokens: maxAnswerTokens})
	if err != nil {
		return nil, err
	}
	answer, err := m.endpoint.Stream(ctx, body)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return readChat(answer, say)
}

func chatMessageOf(x voiceagent.Message) chatMessage {
	m := chatMessage{Role: x.Role, Content: x.Text, ToolCallID: x.ToolCallID}
	for _, c := range x.ToolCalls {
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: c.ID, Type: "function", Function: chatFunction{c.Name, c.Arguments}})
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
func readChat(from io.Reader, say func(string)) ([]voiceagent.ToolCall, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, 4<<10), maxEventBytes)
	var calls []voiceagent.ToolCall
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if data = strings.TrimSpace(data); !ok || data == "" {
			continue
		}
		if data == "[DONE]" {
			return withCallIDs(calls)
		}
		var e chatEvent
		if err := json.Unmarshal(strictjson.ShortenDamaged([]byte(data)), &e); err != nil {
			return nil, fmt.Errorf("the answer is not the JSON expected: %w", err)
		}
		if e.Error != nil {
			return nil, errors.New("the server says: " + engine.TruncateText(e.Error.Message, 300))
		}
		for _, c := range e.Choices[:min(len(e.Choices), 1)] {
			if c.Delta.Content != "" {
				say(c.Delta.Content)
			}
			var err error
			if calls, err = mergeToolCalls(calls, c.Delta.Calls); err != nil {
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
func mergeToolCalls(calls []voiceagent.ToolCall, pieces []chatCall) ([]voiceagent.ToolCall, error) {
	for _, p := range pieces {
		if p.Index < 0 || p.Index >= maxToolCalls || p.Index > len(calls) {
			return nil, errors.New("the server wants too many tools at once")
		}
		if p.Index == len(calls) {
			calls = append(calls, voiceagent.ToolCall{})
		}
		c := &calls[p.Index]
		c.ID, c.Name, c.Arguments = c.ID+p.ID, c.Name+p.Function.Name, c.Arguments+p.Function.Arguments
		if len(c.Arguments) > maxArgumentBytes || len(c.Name) > 200 || len(c.ID) > 200 {
			return nil, errors.New("the arguments of a tool are too long")
		}
	}
	return calls, nil
}

// withCallIDs assigns an id to each tool call without one, because the message with the tool's result must cite it.
func withCallIDs(calls []voiceagent.ToolCall) ([]voiceagent.ToolCall, error) {
	for i := range calls {
		if calls[i].ID == "" {
			calls[i].ID = fmt.Sprintf("call_%d", i)
		}
	}
	return calls, nil
}
