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
	toolLimit  = 10 * time.Second
	mostRounds = 4  // per turn
	mostUsed   = 30 // per conversation
	mostAtOnce = 4
	mostResult = 4000 // bytes passed to the model
)

// Tool is a function that an agent may call.
type Tool struct {
	Name, Description string
	Parameters        []Parameter
	// Run runs the tool. data is passed to the model as untrusted data; a Result ends the conversation. The text of
	// an error is passed to the model, so it must not contain internal details.
	Do func(ctx context.Context, arguments map[string]string) (data any, end *Result, err error)
}

// Parameter is a text parameter of a tool.
type Parameter struct {
	Name, Description string
	Required          bool
	Most              int // characters; 0: 200
}

func (p Parameter) most() int {
	if p.Most == 0 {
		return 200
	}
	return p.Most
}

// Names of the tools that every agent has.
const (
	HandOver = "hand_over"
	EndCall  = "end_call"
)

// AllTools returns the tools of a conversation: the configured ones, and those that every agent has.
func (s Setting) All() []Tool {
	reason := []Parameter{{Name: "reason", Description: "Why, in a few words, for the people who read it"}}
	all := append([]Tool(nil), s.Tools...)
	if s.Handoff {
		all = append(all, Tool{Name: HandOver, Description: "Connect the caller with a person. Say so first.", Parameters: reason,
			Do: func(_ context.Context, a map[string]string) (any, *Result, error) {
				return "done", &Result{Outcome: Handoff, Reason: reasonOf(a, "the agent handed over")}, nil
			}})
	}
	return append(all, Tool{Name: EndCall, Description: "End the call, once the caller has what they want and you have said goodbye.", Parameters: reason,
		Do: func(_ context.Context, a map[string]string) (any, *Result, error) {
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
func (x Tool) read(arguments string) (map[string]string, error) {
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
		case utf8.RuneCountInString(text) > x.Parameters[i].most():
			wrong = append(wrong, fmt.Sprintf("%s must have at most %d characters", name, x.Parameters[i].most()))
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
type done struct {
	Invocation
	answer string // for the model
	end    *Result
	err    error
	took   time.Duration
}

// callTool calls a tool.
func (s *Service) invoke(ctx context.Context, set Setting, call Invocation) (d done) {
	began := s.Now()
	d.Invocation = call
	defer func() { d.took = s.Now().Sub(began) }()
	all := set.All()
	i := slices.IndexFunc(all, func(x Tool) bool { return x.Name == call.Name })
	if i < 0 {
		d.err = errors.New("there is no such tool")
		d.answer = failure(d.err)
		return d
	}
	a, err := all[i].read(call.Arguments)
	if err != nil {
		d.err, d.answer = err, failure(err)
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, toolLimit)
	defer cancel()
	data, end, err := all[i].Do(ctx, a)
	if err != nil {
		d.err, d.answer = err, failure(err)
		return d
	}
	d.answer, d.end = told(data), end
	return d
}

func failure(err error) string {
	b, _ := json.Marshal(map[string]string{"error": err.Error()})
	return string(b)
}

// untrustedData returns the result of a tool, marked as data that contains no instructions.
func told(data any) string {
	b, err := json.Marshal(data)
	if err != nil {
		return failure(errors.New("the result cannot be read"))
	}
	if len(b) > mostResult {
		b, _ = json.Marshal(strings.ToValidUTF8(string(b[:mostResult]), "") + " (cut)")
	}
	return `{"untrusted_data":` + string(b) + `}`
}

// replyDone processes a complete reply.
func (t *talk) thought(r *reply) {
	if t.reply != r || t.ending != nil {
		return // not released yet, or discarded
	}
	switch {
	case r.err != nil:
		t.broken(r.err)
	case len(r.calls) > 0:
		t.use(r)
	case r.speech.text() == "":
		t.noWords(&utterance{loud: window * 2})
	default:
		t.misheard = 0
	}
}

// callTools calls the tools requested by a reply. The caller's speech is ignored meanwhile.
func (t *talk) use(r *reply) {
	t.misheard = 0
	t.rounds++
	t.used += len(r.calls)
	if t.rounds > mostRounds || t.used > mostUsed || len(r.calls) > mostAtOnce {
		t.handOver("too many tools were used", t.phrase(handing))
		return
	}
	t.acting = true
	t.work.Go(func() {
		all := make([]done, len(r.calls))
		for i, call := range r.calls {
			all[i] = t.s.invoke(t.ctx, t.set, call)
		}
		t.post(func() { t.acted(r, all) })
	})
}

// toolsDone continues after tools were called: the conversation ends, or the model gets the results.
func (t *talk) acted(r *reply, all []done) {
	t.acting = false
	if t.ending != nil || t.reply != r {
		return
	}
	t.told = append(t.told, Message{Role: "assistant", Text: r.speech.text(), Calls: r.calls})
	r.told = true
	var end *Result
	for _, d := range all {
		t.toolStep(d)
		t.told = append(t.told, Message{Role: "tool", Text: d.answer, Of: d.ID})
		if end == nil {
			end = d.end
		}
	}
	if end == nil {
		t.next = t.think(t.told)
		return
	}
	t.forgetUtterance()
	if r.speech.text() == "" { // a transfer is always announced
		t.say(end, 0, t.phrase(lastWords(*end)))
		return
	}
	t.ending = end
	r.speech.resume()
}

// closingPhrase returns the announcement before the end, if the model has not said anything.
func lastWords(r Result) phrase {
	switch {
	case r.Message:
		return leaving
	case r.Outcome == Completed:
		return goodbye
	}
	return handing
}

func (t *talk) toolStep(d done) {
	step(t.line, d)
	if t.turn != nil {
		t.turn.Tools = append(t.turn.Tools, d.Name)
	}
}

// addToolStep adds a tool call to the timeline.
func step(line Caller, d done) {
	x := map[string]any{"tool": d.Name, "ok": d.err == nil, "ms": int(d.took.Milliseconds())}
	if d.err != nil {
		x["error"] = d.err.Error()
	}
	line.Step("ai_agent.tool", x)
}
