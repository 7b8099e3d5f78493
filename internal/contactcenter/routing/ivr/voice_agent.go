package ivr

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/contactcenter/routing"
	"soniq/internal/intelligence/voiceagent"
	"soniq/internal/messaging/sms"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
)

// voiceAgent connects the caller with an AI voice agent, or hands the caller over if no agent is available.
func (w *flowRun) voiceAgent(ctx context.Context, node string, x *flow.AIAgent) (outcome string) {
	r := voiceagent.Result{Outcome: voiceagent.Handoff}
	if leave, err := w.reserveVoiceAgent(ctx, x); err != nil {
		w.problem = err.Error()
	} else {
		r = w.converse(ctx, node, x, leave)
	}
	if r.Outcome == voiceagent.CallerGone {
		return routing.CallerGone
	}
	if r.LeaveMessage {
		return w.recordMessage(ctx, x)
	}
	if r.Outcome != voiceagent.Handoff {
		w.problem = voiceAgentProblem(r)
		return r.Outcome
	}
	return w.handOver(ctx, x, r)
}

// reserveVoiceAgent reserves capacity for one conversation until leave is called. It returns an error if the engines
// do not know the language of the agent.
func (w *flowRun) reserveVoiceAgent(ctx context.Context, x *flow.AIAgent) (leave func(), err error) {
	if w.s.cfg.VoiceAgents == nil {
		return nil, errors.New("no voice agent is set up")
	}
	if err := w.s.cfg.VoiceAgents.CheckLanguage(cmp.Or(x.Language, w.language)); err != nil {
		return nil, err
	}
	return w.s.cfg.VoiceAgents.Reserve(ctx)
}

func voiceAgentProblem(r voiceagent.Result) string {
	if r.Outcome == voiceagent.Completed {
		return ""
	}
	return r.Reason
}

// converse runs the conversation and releases the voice agent.
func (w *flowRun) converse(ctx context.Context, node string, x *flow.AIAgent, leave func()) voiceagent.Result {
	defer leave()
	if err := w.v.StartVoiceAgent(ctx); err != nil {
		return voiceagent.Result{}
	}
	r := w.s.cfg.VoiceAgents.Converse(ctx, voiceAgentCall{w.v}, w.voiceAgentSetting(ctx, node, x))
	if w.v.EndVoiceAgent(ctx) != nil {
		return voiceagent.Result{}
	}
	if r.Outcome == voiceagent.Handoff || r.LeaveMessage {
		w.addHandoverNote(ctx, r)
	}
	if r.Outcome != voiceagent.CallerGone && w.enterIVR(ctx) != nil {
		return voiceagent.Result{}
	}
	return r
}

// voiceAgentCall adapts a scripted call to the interface that voice agents use.
type voiceAgentCall struct{ *pbx.ScriptedCall }

// Say plays a clip to the caller and returns the playback.
func (l voiceAgentCall) Say(ctx context.Context, clip *clip.Clip) (voiceagent.Playback, error) {
	return l.StartPlay(ctx, clip)
}

// PlayStream plays a stream of audio to the caller and returns the playback.
func (l voiceAgentCall) PlayStream(ctx context.Context, feed *media.InjectedAudio) (voiceagent.Playback, error) {
	return l.ScriptedCall.PlayStream(ctx, feed)
}

// voiceAgentSetting returns the settings of the voice agent for this conversation.
func (w *flowRun) voiceAgentSetting(ctx context.Context, node string, x *flow.AIAgent) voiceagent.ConversationSettings {
	return voiceagent.ConversationSettings{Org: w.org, CallID: w.v.Info().CallID, FlowID: w.program.FlowID, Instructions: x.Instructions,
		Voice: x.Voice, Language: cmp.Or(x.Language, w.language), Greeting: w.fillTemplate(ctx, x.Greeting), Tools: w.tools(node, x),
		Handoff: x.Handoff != "", MaxDuration: time.Duration(x.MaxMinutes) * time.Minute,
		Interruptible: x.Interruptible == nil || *x.Interruptible}
}

// recordMessage lets the caller leave a message after the voice agent chose to take one.
func (w *flowRun) recordMessage(ctx context.Context, x *flow.AIAgent) (outcome string) {
	mailbox := x.Mailbox
	if mailbox == "" {
		mailbox = flow.ThisFlow
	}
	if w.voicemail(ctx, &flow.Voicemail{Mailbox: mailbox, MaxSeconds: 180}) == routing.CallerGone {
		return routing.CallerGone
	}
	return voiceagent.Completed
}

// handOver transfers the caller to the destination that the agent chose. If that fails, it transfers to the handoff
// destination of the node.
func (w *flowRun) handOver(ctx context.Context, x *flow.AIAgent, r voiceagent.Result) (outcome string) {
	w.seekPerson()
	reason := w.problem
	for _, to := range []string{r.Destination, x.Handoff} {
		if to == "" {
			continue
		}
		outcome = w.transfer(ctx, &flow.Transfer{To: to, Timeout: 25})
		switch {
		case outcome == routing.CallerGone, outcome == routing.Answered:
			w.problem = reason
			return outcome
		case routing.IsFinal(outcome):
			return voiceagent.Handoff
		}
		reason = strings.TrimPrefix(reason+"; "+to+": "+w.problem, "; ")
	}
	w.problem = reason
	return "failed"
}

// addHandoverNote writes the agent's summary as a note of the call, for the person who takes the call over.
func (w *flowRun) addHandoverNote(ctx context.Context, r voiceagent.Result) {
	no, in := false, &call.NoteIn{ID: w.v.Info().CallID}
	in.Body.Body, in.Body.CRMSync = truncateRunes("Voice agent: "+r.Reason+"."+quoted(r.Transcript), 10_000), &no
	ctx, cancel := w.writeContext(ctx)
	defer cancel()
	if _, err := w.s.cfg.Calls.AddNote(ctx, in); err != nil {
		w.s.cfg.Log.Warn("note of voice agent not stored", "call", in.ID, "err", err)
	}
}

func quoted(words string) string {
	if words == "" {
		return ""
	}
	return "\n" + words
}

func truncateRunes(text string, runes int) string {
	if r := []rune(text); len(r) > runes {
		return string(r[:runes])
	}
	return text
}

// tools returns the tools that the agent may use.
func (w *flowRun) tools(node string, x *flow.AIAgent) (all []voiceagent.Tool) {
	for _, name := range x.Tools {
		if slices.ContainsFunc(all, func(t voiceagent.Tool) bool { return t.Name == name }) {
			continue
		}
		switch name {
		case "lookup_contact":
			all = append(all, w.lookupTool())
		case "caller_memory":
			all = append(all, w.memoryTool())
		case voiceagent.Transfer:
			all = append(all, w.transferTool(x))
		case "send_sms":
			all = append(all, w.smsTool(x))
		case voiceagent.TakeMessage:
			all = append(all, messageTool())
		case voiceagent.ScheduleCallback:
			all = append(all, w.callbackTool(x))
		case "http":
			all = append(all, w.httpTool(node, x))
		}
	}
	return all
}

// agentContactFields are the fields of a contact that voice agents receive.
var agentContactFields = []string{"name", "display_name", "first_name", "last_name", "company", "company_name", "title", "email", "tags",
	"language", "custom"}

func (w *flowRun) lookupTool() voiceagent.Tool {
	return voiceagent.Tool{Name: "lookup_contact", Description: "Find out who calls, by their number.",
		Run: func(ctx context.Context, _ map[string]string) (any, *voiceagent.Result, error) {
			if w.flowContext.Contact == nil {
				w.lookUpCaller(ctx, 2*time.Second)
			}
			told := map[string]any{}
			for _, name := range agentContactFields {
				if v, ok := w.flowContext.Contact[name]; ok && v != nil {
					told[name] = v
				}
			}
			if len(told) == 0 {
				return nil, nil, errors.New("nobody is known under this number")
			}
			return told, nil, nil
		}}
}

func (w *flowRun) memoryTool() voiceagent.Tool {
	return voiceagent.Tool{Name: "caller_memory", Description: "Find out what earlier calls with this caller were about.",
		Run: func(ctx context.Context, _ map[string]string) (any, *voiceagent.Result, error) {
			if w.flowContext.Memory == nil {
				w.loadMemory(ctx)
			}
			if len(w.flowContext.Memory) == 0 {
				return nil, nil, errors.New("nothing is remembered of this caller")
			}
			return w.flowContext.Memory, nil, nil
		}}
}

var errEmergency = errors.New("emergency numbers are never dialled for anybody: tell the caller to hang up and dial it themselves")

func (w *flowRun) transferTool(x *flow.AIAgent) voiceagent.Tool {
	return voiceagent.Tool{Name: voiceagent.Transfer,
		Description: "Connect the caller with a colleague, a queue or a number that your instructions name. Say so first.",
		Parameters: []voiceagent.Parameter{{Name: "to", Required: true,
			Description: "An extension, ext:, queue:, user:, voicemail:, flow: or a number, as it stands in your instructions"},
			{Name: "reason", Description: "What the caller wants, in a few words"}},
		Run: func(ctx context.Context, a map[string]string) (any, *voiceagent.Result, error) {
			to, err := w.destination(ctx, x, a["to"])
			if err != nil {
				return nil, nil, err
			}
			return "done", &voiceagent.Result{Outcome: voiceagent.Handoff, Destination: to,
				Reason: strings.TrimSpace("transferred. " + a["reason"])}, nil
		}}
}

// destination returns the destination for a transfer by an agent. It allows users, queues, mailboxes and flows of the
// organisation, and external numbers that the agent's instructions contain. Emergency numbers are refused.
func (w *flowRun) destination(ctx context.Context, x *flow.AIAgent, to string) (string, error) {
	country := w.v.Info().Country
	bare := strings.TrimPrefix(strings.TrimPrefix(to, "ext:"), "tel:")
	if w.s.cfg.Emergency.IsEmergency(country, bare) {
		return "", errEmergency
	}
	kind, _, isKind := strings.Cut(to, ":")
	if e164, ok := number.Parse(to, country); ok && !isKind && len(bare) > 6 {
		if !numberInText(x.Instructions+" "+x.Handoff, e164, country) {
			return "", errors.New("this number does not stand in your instructions: you may not call it")
		}
		to = e164
	} else if !isKind {
		to = "ext:" + to
	} else if !slices.Contains([]string{"ext", "queue", "user", "voicemail", "flow"}, kind) {
		return "", errors.New("there is no such destination")
	}
	wrong, err := w.s.cfg.Flows.CheckDestination(ctx, w.org, to)
	if err != nil {
		w.s.cfg.Log.Error("destination of a voice agent not looked up", "call", w.v.Info().CallID, "err", err)
		return "", errors.New("the destination could not be looked up")
	}
	if wrong != "" {
		return "", errors.New(wrong)
	}
	return to, nil
}

// numberInText reports whether a text contains a number, in any notation.
func numberInText(text, e164, country string) bool {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return !strings.ContainsRune("+0123456789 -()./", r) }) {
		if n, ok := number.Parse(strings.TrimSpace(part), country); ok && n == e164 {
			return true
		}
	}
	return false
}

// maxAgentSMS limits the text messages that agents may send in a call, however often the caller comes back to one.
const maxAgentSMS = 3

func (w *flowRun) smsTool(x *flow.AIAgent) voiceagent.Tool {
	return voiceagent.Tool{Name: "send_sms", Description: "Send the caller a text message, to the number they call from. Ask them first.",
		Parameters: []voiceagent.Parameter{{Name: "text", Required: true, MaxLength: 640, Description: "The message"}},
		Run: func(ctx context.Context, a map[string]string) (any, *voiceagent.Result, error) {
			i, from := w.v.Info(), x.SMSFrom
			if from == "" {
				from = routing.OwnNumber(i)
			}
			switch {
			case i.From == call.Anonymous || i.From == "":
				return nil, nil, errors.New("the caller's number is not known")
			case from == "":
				return nil, nil, errors.New("there is no number to send from")
			case w.flowContext.AgentMessages == maxAgentSMS:
				return nil, nil, fmt.Errorf("at most %d messages", maxAgentSMS)
			}
			w.flowContext.AgentMessages++
			ctx, cancel := w.writeContext(ctx)
			defer cancel()
			if _, err := w.s.cfg.Messages.Create(ctx, &sms.CreateIn{Body: sms.Create{To: i.From, From: from,
				Body: a["text"]}}); err != nil {
				return nil, nil, fmt.Errorf("the message was not sent: %w", err)
			}
			return "sent", nil, nil
		}}
}

func messageTool() voiceagent.Tool {
	return voiceagent.Tool{Name: voiceagent.TakeMessage,
		Description: "Let the caller leave a spoken message after a tone. It ends your conversation; say so first.",
		Parameters:  []voiceagent.Parameter{{Name: "reason", Description: "What it is about, in a few words"}},
		Run: func(_ context.Context, a map[string]string) (any, *voiceagent.Result, error) {
			return "done", &voiceagent.Result{Outcome: voiceagent.Completed, LeaveMessage: true,
				Reason: strings.TrimSpace("the caller leaves a message. " + a["reason"])}, nil
		}}
}

func (w *flowRun) callbackTool(x *flow.AIAgent) voiceagent.Tool {
	return voiceagent.Tool{Name: voiceagent.ScheduleCallback,
		Description: "Have the caller called back by the team, at the number they call from, when it is their turn.",
		Run: func(ctx context.Context, _ map[string]string) (any, *voiceagent.Result, error) {
			to := routing.CallbackNumber(w.v.Info())
			switch {
			case to == "":
				return nil, nil, errors.New("the caller's number is not known")
			case w.flowContext.AgentCallback:
				return nil, nil, errors.New("they are called back already")
			}
			if err := w.enqueueCallback(ctx, x.CallbackTo(), to); err != nil {
				return nil, nil, fmt.Errorf("no callback: %w", err)
			}
			w.flowContext.AgentCallback = true
			return "they are called back", nil, nil
		}}
}

// httpTool returns the tool that sends a request to the server configured in the node.
func (w *flowRun) httpTool(node string, x *flow.AIAgent) voiceagent.Tool {
	return voiceagent.Tool{Name: "http", Description: "Ask the organisation's own system. " + x.HTTPAbout,
		Parameters: []voiceagent.Parameter{{Name: "request", Required: true, MaxLength: 2000,
			Description: "What is asked, in words or JSON"}},
		Run: func(ctx context.Context, a map[string]string) (any, *voiceagent.Result, error) {
			if x.HTTP == nil {
				return nil, nil, errors.New("no server is set up")
			}
			kept := w.problem
			defer func() { w.problem = kept }()
			ask := *x.HTTP
			ask.Variable = agentAnswer
			w.flowContext.Variables[agentRequest] = a["request"]
			if w.httpRequest(ctx, node, &ask) != "success" {
				return nil, nil, errors.New(w.problem)
			}
			return w.flowContext.Variables[agentAnswer], nil, nil
		}}
}

// Variables for the request of a voice agent to the configured server, and for its response.
const (
	agentRequest = "agent_request"
	agentAnswer  = "agent_answer"
)
