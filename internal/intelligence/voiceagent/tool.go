package voiceagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of tools.
const (
	toolTimeout      = 5 * time.Second // leaves the model time to speak within stallTimeout
	maxToolRounds    = 4               // per turn
	maxToolCalls     = 30              // per conversation
	maxParallelCalls = 4
	maxResultBytes   = 4000 // bytes passed to the model
)

// Tool is a function that an agent may call.
type Tool struct {
	Name, Description string
	Parameters        []Parameter
	// Run runs the tool. data is passed to the model as untrusted data; a Result ends the conversation. The text of
	// an error is passed to the model, so it must not contain internal details.
	Run func(ctx context.Context, arguments map[string]string) (data any, end *Result, err error)
}

// Parameter is a text parameter of a tool.
type Parameter struct {
	Name, Description string
	Required          bool
	MaxLength         int // characters; 0: 200
}

func (p Parameter) maxLength() int {
	if p.MaxLength == 0 {
		return 200
	}
	return p.MaxLength
}

// Names of the tools that every agent has.
const (
	HandOver = "hand_over"
	EndCall  = "end_call"
)

// AllTools returns the tools of a conversation: the configured ones, and those that every agent has.
func (s ConversationSettings) AllTools() []Tool {
	reason := []Parameter{{Name: "reason", Description: "Why, in a few words, for the people who read it"}}
	all := append([]Tool(nil), s.Tools...)
	if s.Handoff {
		all = append(all, Tool{Name: HandOver, Description: "Connect the caller with a person. Say so first.", Parameters: reason,
			Run: func(_ context.Context, a map[string]string) (any, *Result, error) {
				return "done", &Result{Outcome: Handoff, Reason: reasonOf(a, "the agent handed over")}, nil
			}})
	}
	return append(all, Tool{Name: EndCall, Description: "End the call, once the caller has what they want and you have said goodbye.",
		Parameters: reason, Run: func(_ context.Context, a map[string]string) (any, *Result, error) {
			return "done", &Result{Outcome: Completed, Reason: reasonOf(a, "the caller was helped")}, nil
		}})
}

func reasonOf(a map[string]string, usual string) string {
	if r := strings.TrimSpace(a["reason"]); r != "" {
		return r
	}
	return usual
}

// parseArguments validates the arguments of a tool call.
func (x Tool) parseArguments(arguments string) (map[string]string, error) {
	given := map[string]any{}
	if strings.TrimSpace(arguments) != "" {
		if err := json.Unmarshal([]byte(arguments), &given); err != nil {
			return nil, errors.New("the arguments are no JSON object")
		}
	}
	var wrong []string
	read := map[string]string{}
	for name, v := range given {
		i := slices.IndexFunc(x.Parameters, func(p Parameter) bool { return p.Name == name })
		text, isText := v.(string)
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("there is no parameter %.40q", name))
		case !isText:
			wrong = append(wrong, name+" must be a text")
		case utf8.RuneCountInString(text) > x.Parameters[i].maxLength():
			wrong = append(wrong, fmt.Sprintf("%s must have at most %d characters", name, x.Parameters[i].maxLength()))
		default:
			read[name] = strings.TrimSpace(text)
		}
	}
	for _, p := range x.Parameters {
		if _, is := given[p.Name]; p.Required && (!is || read[p.Name] == "" && len(wrong) == 0) {
			wrong = append(wrong, p.Name+" is required")
		}
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, errors.New(strings.Join(wrong, "; "))
	}
	return read, nil
}

// toolResult is the result of a tool call.
type toolResult struct {
	ToolCall
	answer string // for the model
	end    *Result
	err    error
	took   time.Duration
}

// callTool calls a tool.
func (s *Service) callTool(ctx context.Context, set ConversationSettings, call ToolCall) (d toolResult) {
	began := s.cfg.Clock.Now()
	d.ToolCall = call
	defer func() { d.took = s.cfg.Clock.Now().Sub(began) }()
	all := set.AllTools()
	i := slices.IndexFunc(all, func(x Tool) bool { return x.Name == call.Name })
	if i < 0 {
		d.err = errors.New("there is no such tool")
		d.answer = errorResult(d.err)
		return d
	}
	a, err := all[i].parseArguments(call.Arguments)
	if err != nil {
		d.err, d.answer = err, errorResult(err)
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	data, end, err := all[i].Run(ctx, a)
	if err != nil {
		d.err, d.answer = err, errorResult(err)
		return d
	}
	d.answer, d.end = untrustedData(data), end
	return d
}

func errorResult(err error) string {
	b, _ := json.Marshal(map[string]string{"error": err.Error()})
	return string(b)
}

// untrustedData returns the result of a tool, marked as data that contains no instructions.
func untrustedData(data any) string {
	b, err := json.Marshal(data)
	if err != nil {
		return errorResult(errors.New("the result cannot be read"))
	}
	if len(b) > maxResultBytes {
		b, _ = json.Marshal(strings.ToValidUTF8(string(b[:maxResultBytes]), "") + " (cut)")
	}
	return `{"untrusted_data":` + string(b) + `}`
}

// replyDone processes a complete reply.
func (t *conversation) replyDone(r *pendingReply) {
	if t.reply != r || t.ending != nil {
		return // not released yet, or discarded
	}
	switch {
	case r.err != nil && r.speech.text() != "" && !r.speech.isOver(): // the caller hears its beginning first
	case r.err != nil:
		t.fail(r.err)
	case len(r.calls) > 0:
		t.callTools(r)
	case r.speech.text() == "":
		t.resumeOrAsk(&callerUtterance{loud: windowFrames * 2})
	default:
		t.misheard = 0
	}
}

// callTools calls the tools requested by a reply. The caller's speech is ignored meanwhile.
func (t *conversation) callTools(r *pendingReply) {
	t.misheard = 0
	t.rounds++
	t.toolCalls += len(r.calls)
	if t.rounds > maxToolRounds || t.toolCalls > maxToolCalls || len(r.calls) > maxParallelCalls {
		t.handOver("too many tools were used", t.phrase(connecting))
		return
	}
	t.toolsRunning = true
	t.work.Go(func() {
		all := make([]toolResult, len(r.calls))
		for i, call := range r.calls {
			all[i] = t.s.callTool(t.ctx, t.settings, call)
		}
		t.post(func() { t.toolsDone(r, all) })
	})
}

// toolsDone continues after tools were called: the conversation ends, or the model gets the results.
func (t *conversation) toolsDone(r *pendingReply, all []toolResult) {
	t.toolsRunning = false
	if t.ending != nil || t.reply != r {
		return
	}
	t.history = append(t.history, Message{Role: "assistant", Text: r.speech.text(), ToolCalls: r.calls})
	r.inHistory = true
	var end *Result
	for _, d := range all {
		t.recordTool(d)
		t.history = append(t.history, Message{Role: "tool", Text: d.answer, ToolCallID: d.ID})
		if end == nil {
			end = d.end
		}
	}
	if end == nil {
		t.nextReply = t.startReply(t.history)
		return
	}
	t.dropUtterance()
	if r.speech.text() == "" { // a transfer is always announced
		t.say(end, 0, t.phrase(closingPhrase(*end)))
		return
	}
	t.ending = end
	r.speech.resume()
}

// closingPhrase returns the announcement before the end, if the model has not said anything.
func closingPhrase(r Result) phrase {
	switch {
	case r.LeaveMessage:
		return leaveMessage
	case r.Outcome == Completed:
		return goodbye
	}
	return connecting
}

func (t *conversation) recordTool(d toolResult) {
	addToolStep(t.caller, d)
	if t.turn != nil {
		t.turn.Tools = append(t.turn.Tools, d.Name)
	}
}

// addToolStep adds a tool call to the timeline.
func addToolStep(line Caller, d toolResult) {
	x := map[string]any{"tool": d.Name, "ok": d.err == nil, "ms": int(d.took.Milliseconds())}
	if d.err != nil {
		x["error"] = d.err.Error()
	}
	line.AddEntry("ai_agent.tool", x)
}
