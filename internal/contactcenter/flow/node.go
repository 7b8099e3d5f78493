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
	Type   string            `json:"type" doc:"play, menu, collect, hours, condition, set, hunt_group, queue, ai_agent, contact_lookup, http, transfer, voicemail, callback, sms, record, tag or hangup"`
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
	AudioID string `json:"audio_id,omitempty"`
	Text    string `json:"text,omitempty"`
	Voice   string `json:"voice,omitempty"`
	Lang    string `json:"lang,omitempty"` // of the text, BCP 47; "": that of the flow
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
		Interrupt bool `json:"interrupt,omitempty"` // a key ends it
	}
	// Menu plays a prompt and waits for a key, or until the caller says one of the labels.
	Menu struct {
		Prompt  Prompt            `json:"prompt"`
		Digits  map[string]string `json:"digits"` // label by digit; each digit is an outcome
		Speech  bool              `json:"speech,omitempty"`
		Timeout int               `json:"timeout_seconds,omitempty"`
		Retries int               `json:"retries,omitempty"`
	}
	// Collect waits for several digits and stores them in a variable.
	Collect struct {
		Prompt     Prompt `json:"prompt"`
		Min        int    `json:"min,omitempty"`
		Max        int    `json:"max,omitempty"`
		Terminator string `json:"terminator,omitempty"`
		Variable   string `json:"variable"`
		Mask       bool   `json:"mask,omitempty"` // keep the digits out of logs and recordings
		Timeout    int    `json:"timeout_seconds,omitempty"`
	}
	// Hours branches by the time of the call.
	Hours struct {
		Hours    org.Hours `json:"hours"`
		Holidays []string  `json:"holidays,omitempty"` // dates, or month and day of every year
	}
	// Condition branches by an expression.
	Condition struct {
		Expression string `json:"expression"`
		program    *Expression
	}
	// Set sets variables.
	Set struct {
		Variables map[string]any `json:"variables"`
		texts     map[string]*Template
	}
	// HuntGroup rings a group.
	HuntGroup struct {
		Members     []HuntMember `json:"members"`
		Strategy    string       `json:"strategy,omitempty"`
		RingTimeout int          `json:"ring_timeout_seconds,omitempty"`
	}
	// Queue lets the caller wait for an agent.
	Queue struct {
		QueueID  string `json:"queue_id"`
		Priority *int   `json:"priority,omitempty"`
		MaxWait  *int   `json:"max_wait_seconds,omitempty"`
	}
	// AIAgent connects the caller with a voice agent.
	AIAgent struct {
		Instructions  string   `json:"instructions"`
		Voice         string   `json:"voice,omitempty"`
		Language      string   `json:"language,omitempty"`
		Greeting      string   `json:"greeting,omitempty"`
		Tools         []string `json:"tools,omitempty"`
		Handoff       string   `json:"handoff,omitempty"`
		MaxMinutes    int      `json:"max_minutes,omitempty"`
		Interruptible *bool    `json:"interruptible,omitempty"`
		SMSFrom       string   `json:"sms_from,omitempty"`          // for send_sms; "": the number that was called
		Mailbox       string   `json:"mailbox,omitempty"`           // for take_message; "": the flow's
		CallbackQueue string   `json:"callback_queue_id,omitempty"` // for schedule_callback; "": the queue of handoff
		HTTP          *HTTP    `json:"http,omitempty"`              // for http
		HTTPAbout     string   `json:"http_about,omitempty"`        // description for the voice agent
	}
	// ContactLookup looks up the caller and stores the contact in a variable.
	ContactLookup struct {
		TimeoutMS int    `json:"timeout_ms,omitempty"`
		Variable  string `json:"variable,omitempty"`
	}
	// HTTP sends a request to a server of the organisation.
	HTTP struct {
		URL       string            `json:"url"`
		Method    string            `json:"method,omitempty"`
		Body      string            `json:"body,omitempty"`
		Headers   map[string]string `json:"headers,omitempty"`
		TimeoutMS int               `json:"timeout_ms,omitempty"`
		Signed    bool              `json:"signed,omitempty"`
		Variable  string            `json:"variable,omitempty"`
	}
	// Transfer connects the caller with a destination.
	Transfer struct {
		To      string `json:"to"`
		Timeout int    `json:"timeout_seconds,omitempty"`
	}
	// Voicemail records a message.
	Voicemail struct {
		Mailbox         string `json:"mailbox"`
		GreetingAudioID string `json:"greeting_audio_id,omitempty"`
		MaxSeconds      int    `json:"max_seconds,omitempty"`
	}
	// Callback offers to call back.
	Callback struct {
		QueueID       string `json:"queue_id"`
		ConfirmNumber bool   `json:"confirm_number,omitempty"`
	}
	// SMS sends a text message to the caller.
	SMS struct {
		From string `json:"from"`
		Body string `json:"body"`
	}
	// Record starts, stops, pauses or resumes recording.
	Record struct {
		Action   string `json:"action"`
		Announce bool   `json:"announce,omitempty"`
	}
	// Tag adds tags to the call.
	Tag struct {
		Tags []string `json:"tags"`
	}
	// Hangup ends the call.
	Hangup struct {
		Reason string `json:"reason,omitempty"`
	}
)

// HuntMember is a user or a number to ring.
type HuntMember struct {
	UserID string `json:"user_id,omitempty"`
	Number string `json:"number,omitempty"`
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
		return errors.New(faults[0].Field + ": " + faults[0].Message)
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
