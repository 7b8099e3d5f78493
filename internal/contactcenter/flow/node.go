package flow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/strictjson"
)

// Node is a step of a flow in the stored form: the config of its type, and the node that follows each outcome.
type Node struct {
	ID     string            `json:"id" example:"menu" doc:"1 to 60 letters, digits, _ or -"`
	Type   string            `json:"type" doc:"Decides about config and the outcomes in next"`
	Config map[string]any    `json:"config,omitempty" doc:"By type"`
	Next   map[string]string `json:"next,omitempty" doc:"The node that follows each outcome"`
}

// Step is a node in executable form. Config is a pointer to the struct of its type, such as *Menu.
type Step struct {
	ID     string
	Config Action
	Next   map[string]string
}

// Action is the config of a node of one type.
type Action interface {
	// Type returns the name of the type.
	Type() string
	// Outcomes returns the possible outcomes.
	Outcomes() []Outcome
	check(c *checker)
}

// Outcome is one possible result of a node.
type Outcome struct {
	Name string
	// Required means that the call continues after this outcome, so that a node must follow it. If no node follows
	// another outcome, Fallback is taken instead. If Fallback is "", the flow ends.
	Required bool
	Fallback string
}

func requiredOutcomes(names ...string) (all []Outcome) {
	for _, n := range names {
		all = append(all, Outcome{Name: n, Required: true})
	}
	return all
}

func finalOutcomes(names ...string) (all []Outcome) {
	for _, n := range names {
		all = append(all, Outcome{Name: n})
	}
	return all
}

// Prompt is an audio file, or a text for speech synthesis. {{expressions}} in the text are filled in.
type Prompt struct {
	AudioID string `json:"audio_id,omitempty" doc:"An audio file"`
	Text    string `json:"text,omitempty" doc:"A text that is spoken; {{expressions}} are filled in"`
	Voice   string `json:"voice,omitempty" doc:"Voice of the text"`
	Lang    string `json:"lang,omitempty" doc:"Language of the text, BCP 47; that of the flow unless given"`
}

// UnmarshalJSON accepts an object, a text to speak, or the id of an audio file.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*p = promptOf(text)
		return nil
	}
	type plain Prompt
	return decodeStrict(b, (*plain)(p))
}

// UnmarshalJSON accepts the members of a prompt and those of Play. Without it, the decoder of Prompt would be used.
func (p *Play) UnmarshalJSON(b []byte) error {
	type prompt Prompt // has no decoder
	x := struct {
		prompt
		Interrupt bool `json:"interrupt"`
	}{prompt(p.Prompt), p.Interrupt}
	if err := decodeStrict(b, &x); err != nil {
		return err
	}
	p.Prompt, p.Interrupt = Prompt(x.prompt), x.Interrupt
	return nil
}

var audioForm = regexp.MustCompile(`^aud_[0-9A-Z]{26}$`)

func promptOf(text string) Prompt {
	if audioForm.MatchString(text) {
		return Prompt{AudioID: text}
	}
	return Prompt{Text: text}
}

// Configs of nodes, by type.
type (
	// Play plays a prompt.
	Play struct {
		Prompt
		Interrupt bool `json:"interrupt,omitempty" doc:"A key ends it"`
	}
	// Menu plays a prompt and waits for a key, or until the caller says one of the labels.
	Menu struct {
		Prompt  Prompt            `json:"prompt" doc:"What the caller hears"`
		Digits  map[string]string `json:"digits" doc:"A label by digit; each digit is an outcome"`
		Speech  bool              `json:"speech,omitempty" doc:"The caller may also say a label"`
		Timeout int               `json:"timeout_seconds,omitempty" minimum:"1" maximum:"60" default:"5" doc:"Wait for a key"`
		Retries int               `json:"retries,omitempty" minimum:"0" maximum:"10" default:"2" doc:"Repetitions after no key or an unknown one"`
	}
	// Collect waits for several digits and stores them in a variable.
	Collect struct {
		Prompt     Prompt `json:"prompt" doc:"What the caller hears"`
		Min        int    `json:"min,omitempty" minimum:"1" maximum:"64" default:"1" doc:"Digits at least"`
		Max        int    `json:"max,omitempty" minimum:"1" maximum:"64" default:"32" doc:"Digits at most"`
		Terminator string `json:"terminator,omitempty" default:"#" doc:"Key that ends the input"`
		Variable   string `json:"variable" doc:"Variable for the digits"`
		Mask       bool   `json:"mask,omitempty" doc:"Keep the digits out of logs, events and recordings"`
		Timeout    int    `json:"timeout_seconds,omitempty" minimum:"1" maximum:"60" default:"5" doc:"Wait for the next digit"`
	}
	// Hours branches by the time of the call.
	Hours struct {
		Hours    org.Hours `json:"hours" doc:"Business hours"`
		Holidays []string  `json:"holidays,omitempty" maxItems:"366" doc:"Closed days: dates, or month and day of every year"`
	}
	// Condition branches by an expression.
	Condition struct {
		Expression string `json:"expression" doc:"An expression of variables, caller, contact, memory and time"`
		program    *Expression
	}
	// Set sets variables.
	Set struct {
		Variables map[string]any `json:"variables" doc:"Texts, numbers and truth values by name; {{expressions}} in texts are filled in"`
		texts     map[string]*Template
	}
	// HuntGroup rings a group.
	HuntGroup struct {
		Members     []HuntMember `json:"members" minItems:"1" maxItems:"50" doc:"Who rings"`
		Strategy    string       `json:"strategy,omitempty" enum:"simultaneous,sequential,round_robin,longest_idle" default:"simultaneous" doc:"Order in which they ring"`
		RingTimeout int          `json:"ring_timeout_seconds,omitempty" minimum:"5" maximum:"120" default:"20" doc:"Time to ring, of each member in turn"`
	}
	// Queue lets the caller wait for an agent.
	Queue struct {
		QueueID  string `json:"queue_id" doc:"The queue"`
		Priority *int   `json:"priority,omitempty" minimum:"-100" maximum:"100" doc:"Instead of that of the queue"`
		MaxWait  *int   `json:"max_wait_seconds,omitempty" minimum:"5" maximum:"86400" doc:"Longest wait; at most that of the queue"`
	}
	// AIAgent connects the caller with a voice agent.
	AIAgent struct {
		Instructions  string   `json:"instructions" minLength:"1" maxLength:"20000" doc:"What the voice agent is to do"`
		Voice         string   `json:"voice,omitempty" doc:"Its voice"`
		Language      string   `json:"language,omitempty" doc:"That of the flow unless given"`
		Greeting      string   `json:"greeting,omitempty" doc:"Its first words"`
		Tools         []string `json:"tools,omitempty" enum:"lookup_contact,caller_memory,transfer,send_sms,take_message,schedule_callback,http" doc:"What it can use"`
		Handoff       string   `json:"handoff,omitempty" doc:"Where it hands callers over"`
		MaxMinutes    int      `json:"max_minutes,omitempty" minimum:"1" maximum:"120" default:"10" doc:"Longest conversation"`
		Interruptible *bool    `json:"interruptible,omitempty" doc:"The caller can interrupt it"`
		SMSFrom       string   `json:"sms_from,omitempty" doc:"Number for send_sms; the one that was called unless given"`
		Mailbox       string   `json:"mailbox,omitempty" doc:"For take_message; the flow's unless given"`
		CallbackQueue string   `json:"callback_queue_id,omitempty" doc:"For schedule_callback; the queue of handoff unless given"`
		HTTP          *HTTP    `json:"http,omitempty" doc:"The request of the tool http"`
		HTTPAbout     string   `json:"http_about,omitempty" maxLength:"500" doc:"What the tool http answers, for the voice agent"`
	}
	// ContactLookup looks up the caller and stores the contact in a variable.
	ContactLookup struct {
		TimeoutMS int    `json:"timeout_ms,omitempty" minimum:"50" maximum:"2000" default:"200" doc:"Longest wait"`
		Variable  string `json:"variable,omitempty" default:"contact" doc:"Variable for the contact"`
	}
	// HTTP sends a request to a server of the organisation.
	HTTP struct {
		URL       string            `json:"url" doc:"Address; {{expressions}} may follow the host"`
		Method    string            `json:"method,omitempty" enum:"GET,POST,PUT,PATCH,DELETE" default:"POST" doc:"Method"`
		Body      string            `json:"body,omitempty" doc:"Body; the call and the variables as JSON unless given"`
		Headers   map[string]string `json:"headers,omitempty" doc:"Headers by name"`
		TimeoutMS int               `json:"timeout_ms,omitempty" minimum:"100" maximum:"30000" default:"3000" doc:"Longest wait for the answer"`
		Signed    bool              `json:"signed,omitempty" doc:"Add the signature of the organisation's webhook at that server"`
		Variable  string            `json:"variable,omitempty" doc:"Variable for the answer"`
	}
	// Transfer connects the caller with a destination.
	Transfer struct {
		To      string `json:"to" doc:"The destination"`
		Timeout int    `json:"timeout_seconds,omitempty" minimum:"5" maximum:"120" default:"25" doc:"Time to ring"`
	}
	// Voicemail records a message.
	Voicemail struct {
		Mailbox         string `json:"mailbox" doc:"Id of a user, a queue or a flow; flow is this one"`
		GreetingAudioID string `json:"greeting_audio_id,omitempty" doc:"Greeting instead of that of the mailbox"`
		MaxSeconds      int    `json:"max_seconds,omitempty" minimum:"5" maximum:"1800" default:"180" doc:"Longest message"`
	}
	// Callback offers to call back.
	Callback struct {
		QueueID       string `json:"queue_id" doc:"Queue in which the caller keeps a place"`
		ConfirmNumber bool   `json:"confirm_number,omitempty" doc:"Read out the number, and let the caller enter another"`
	}
	// SMS sends a text message to the caller.
	SMS struct {
		From string `json:"from" doc:"A number of the organisation"`
		Body string `json:"body" minLength:"1" maxLength:"1600" doc:"The text; {{expressions}} are filled in"`
	}
	// Record starts, stops, pauses or resumes recording.
	Record struct {
		Action   string `json:"action" enum:"start,stop,pause,resume" doc:"What happens to the recording"`
		Announce bool   `json:"announce,omitempty" doc:"Tell the caller"`
	}
	// Tag adds tags to the call.
	Tag struct {
		Tags []string `json:"tags" minItems:"1" maxItems:"20" doc:"Names of tags"`
	}
	// Hangup ends the call.
	Hangup struct {
		Reason string `json:"reason,omitempty" maxLength:"120" doc:"busy, rejected, no_answer, timeout, no_route, blocked or canceled is the call's end_reason; others are in the timeline only"`
	}
)

// HuntMember is a user or a number to ring.
type HuntMember struct {
	UserID string `json:"user_id,omitempty" doc:"A user"`
	Number string `json:"number,omitempty" doc:"A number, extension or other destination"`
}

func (*Play) Type() string          { return "play" }
func (*Menu) Type() string          { return "menu" }
func (*Collect) Type() string       { return "collect" }
func (*Hours) Type() string         { return "hours" }
func (*Condition) Type() string     { return "condition" }
func (*Set) Type() string           { return "set" }
func (*HuntGroup) Type() string     { return "hunt_group" }
func (*Queue) Type() string         { return "queue" }
func (*AIAgent) Type() string       { return "ai_agent" }
func (*ContactLookup) Type() string { return "contact_lookup" }
func (*HTTP) Type() string          { return "http" }
func (*Transfer) Type() string      { return "transfer" }
func (*Voicemail) Type() string     { return "voicemail" }
func (*Callback) Type() string      { return "callback" }
func (*SMS) Type() string           { return "sms" }
func (*Record) Type() string        { return "record" }
func (*Tag) Type() string           { return "tag" }
func (*Hangup) Type() string        { return "hangup" }

func (*Play) Outcomes() []Outcome    { return requiredOutcomes("done") }
func (*Collect) Outcomes() []Outcome { return requiredOutcomes("done", "timeout") }
func (*Hours) Outcomes() []Outcome {
	return append(requiredOutcomes("open", "closed"), Outcome{Name: "holiday", Fallback: "closed"})
}
func (*Condition) Outcomes() []Outcome { return requiredOutcomes("true", "false") }
func (*Set) Outcomes() []Outcome       { return requiredOutcomes("done") }
func (*HuntGroup) Outcomes() []Outcome {
	return append(append(finalOutcomes("answered"), requiredOutcomes("no_answer")...), Outcome{Name: "busy", Fallback: "no_answer"})
}
func (*Queue) Outcomes() []Outcome {
	return append(append(finalOutcomes("answered", "callback"), requiredOutcomes("timeout", "overflow")...),
		Outcome{Name: "empty", Fallback: "overflow"})
}
func (*AIAgent) Outcomes() []Outcome {
	return append(append(finalOutcomes("completed", "handoff"), requiredOutcomes("failed")...),
		Outcome{Name: "silence", Fallback: "failed"})
}
func (*ContactLookup) Outcomes() []Outcome { return requiredOutcomes("hit", "miss") }
func (*HTTP) Outcomes() []Outcome          { return requiredOutcomes("success", "error") }
func (*Transfer) Outcomes() []Outcome {
	return append(finalOutcomes("answered"), requiredOutcomes("failed")...)
}
func (*Voicemail) Outcomes() []Outcome { return finalOutcomes("left", "empty") }
func (*Callback) Outcomes() []Outcome {
	return append(finalOutcomes("accepted"), requiredOutcomes("declined")...)
}
func (*SMS) Outcomes() []Outcome    { return requiredOutcomes("sent", "failed") }
func (*Record) Outcomes() []Outcome { return requiredOutcomes("done") }
func (*Tag) Outcomes() []Outcome    { return requiredOutcomes("done") }
func (*Hangup) Outcomes() []Outcome { return nil }

// CallbackTo returns the queue for callbacks; "" if there is none.
func (a *AIAgent) CallbackTo() string {
	if a.CallbackQueue != "" {
		return a.CallbackQueue
	}
	id, _ := strings.CutPrefix(a.Handoff, "queue:")
	if id == a.Handoff {
		return ""
	}
	return id
}

// Outcomes returns the digits, then timeout and invalid.
func (m *Menu) Outcomes() []Outcome {
	var digits []string
	for d := range m.Digits {
		digits = append(digits, d)
	}
	slices.Sort(digits)
	return append(requiredOutcomes(digits...), requiredOutcomes("timeout", "invalid")...)
}

// types are the types of nodes, in the order of the documentation.
var types = []string{"play", "menu", "collect", "hours", "condition", "set", "hunt_group", "queue", "ai_agent", "contact_lookup", "http",
	"transfer", "voicemail", "callback", "sms", "record", "tag", "hangup"}

// newConfig returns the config of a type with its defaults; nil for an unknown type.
func newConfig(kind string) Action {
	switch kind {
	case "play":
		return &Play{}
	case "menu":
		return &Menu{Timeout: 5, Retries: 2}
	case "collect":
		return &Collect{Min: 1, Max: 32, Terminator: "#", Timeout: 5}
	case "hours":
		return &Hours{}
	case "condition":
		return &Condition{}
	case "set":
		return &Set{}
	case "hunt_group":
		return &HuntGroup{Strategy: "simultaneous", RingTimeout: 20}
	case "queue":
		return &Queue{}
	case "ai_agent":
		return &AIAgent{MaxMinutes: 10}
	case "contact_lookup":
		return &ContactLookup{TimeoutMS: 200, Variable: "contact"}
	case "http":
		return &HTTP{Method: "POST", TimeoutMS: 3000}
	case "transfer":
		return &Transfer{Timeout: 25}
	case "voicemail":
		return &Voicemail{MaxSeconds: 180}
	case "callback":
		return &Callback{}
	case "sms":
		return &SMS{}
	case "record":
		return &Record{}
	case "tag":
		return &Tag{}
	case "hangup":
		return &Hangup{}
	}
	return nil
}

// isInstant reports whether a step takes no time. A loop of such steps only would never end.
func isInstant(c Action) bool {
	switch c.(type) {
	case *Hours, *Condition, *Set, *ContactLookup, *HTTP, *SMS, *Record, *Tag:
		return true
	}
	return false
}

// decodeStrict decodes JSON and rejects unknown members. Names compare exactly.
func decodeStrict(b []byte, to any) error {
	if faults := strictjson.Members(b, to); len(faults) > 0 {
		all := make([]string, len(faults))
		for i, f := range faults {
			all[i] = f.Field + ": " + f.Message
		}
		return errors.New(strings.Join(all, "; "))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// parse decodes the config of a node.
func (n Node) parse() (Action, error) {
	c := newConfig(n.Type)
	if c == nil {
		return nil, nil
	}
	given := n.Config
	if given == nil {
		given = map[string]any{}
	}
	b, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	if err := decodeStrict(b, c); err != nil {
		return nil, fmt.Errorf("the config cannot be read: %w", err)
	}
	return c, nil
}
