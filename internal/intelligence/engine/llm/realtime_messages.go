package llm

import (
	"encoding/json"
	"errors"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/voiceagent"
)

// serverEvent is an event from a Realtime server; members that are not used are omitted.
type serverEvent struct {
	Type       string          `json:"type"`
	Session    *serverSession  `json:"session"`
	Item       json.RawMessage `json:"item"`
	ItemID     string          `json:"item_id"`
	Delta      string          `json:"delta"`
	Transcript string          `json:"transcript"`
	EndMS      *int            `json:"audio_end_ms"`
	Response   *serverResponse `json:"response"`
	Error      *serverError    `json:"error"`
}

type serverSession struct {
	Type       string   `json:"type"`
	Modalities []string `json:"modalities"`
	In         string   `json:"input_audio_format"`
	Out        string   `json:"output_audio_format"`
	Audio      *struct {
		Input, Output struct {
			Format struct {
				Type string `json:"type"`
			} `json:"format"`
		}
	} `json:"audio"`
}

// isBeta reports whether the session has the older beta form of the protocol.
func (s *serverSession) isBeta() bool {
	return s != nil && s.Type != "realtime" && s.Audio == nil && (s.In != "" || s.Modalities != nil)
}

type serverResponse struct {
	ID      string       `json:"id"`
	Status  string       `json:"status"`
	Output  []serverItem `json:"output"`
	Details *struct {
		Reason string       `json:"reason"`
		Error  *serverError `json:"error"`
	} `json:"status_details"`
}

type serverItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Name      string `json:"name"`
	CallID    string `json:"call_id"`
	Arguments string `json:"arguments"`
}

// serverError is an error that a Realtime server reports.
type serverError struct {
	Type    string `json:"type"`
	Code    string `json:"code"`
	Message string `json:"message"`
	EventID string `json:"event_id"`
}

func (f *serverError) Error() string {
	text := f.Message
	if text == "" {
		text = firstNonEmpty(f.Code, f.Type)
	}
	return "the server says: " + engine.TruncateText(text, 300)
}

func firstNonEmpty(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func (e *serverEvent) asError() error {
	if e.Error == nil {
		return &serverError{Message: "an error without words"}
	}
	return e.Error
}

// toolCalls returns the tools that a response asks to call, within the limits of maxToolCalls and maxArgumentBytes.
func (r *serverResponse) toolCalls() (all []voiceagent.ToolCall, err error) {
	for _, x := range r.Output {
		if x.Type != "function_call" {
			continue
		}
		if len(all) == maxToolCalls {
			return nil, errors.New("the server wants too many tools at once")
		}
		if len(x.Arguments) > maxArgumentBytes || len(x.Name) > 200 || len(x.CallID) > 200 {
			return nil, errors.New("the arguments of a tool are too long")
		}
		all = append(all, voiceagent.ToolCall{ID: x.CallID, Name: x.Name, Arguments: x.Arguments})
	}
	return all, nil
}

// failure returns why a response failed; nil if it was completed or cancelled.
func (r *serverResponse) failure() error {
	if r.Status != "failed" {
		return nil
	}
	if r.Details != nil && r.Details.Error != nil {
		return r.Details.Error
	}
	return errors.New("the server could not answer")
}
