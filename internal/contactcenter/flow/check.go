package flow

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/limit"
)

// Fault is an error or a warning of a flow.
type Fault struct {
	NodeID  string `json:"node_id" doc:"Empty where it is the flow as a whole"`
	Code    string `json:"code" doc:"What is wrong, for programs"`
	Message string `json:"message" doc:"What is wrong, for people"`
}

// References checks the objects to which nodes refer.
type References interface {
	// CheckDestination returns the problem of a destination such as queue:que_… or a number; "" if it is valid.
	CheckDestination(ctx context.Context, org, to string) (wrong string, err error)
	// HasAudio reports whether the organisation has an audio file.
	HasAudio(ctx context.Context, org, id string) (bool, error)
	// OwnsNumber reports whether the organisation can send from a number.
	OwnsNumber(ctx context.Context, org, e164 string) (bool, error)
	// CheckSpoken returns why a text cannot be spoken; "" if it can.
	CheckSpoken(ctx context.Context, org string, s Spoken) (wrong string, err error)
	// CheckHeard returns why callers who speak a language are not understood by the recogniser, or by voice agents if
	// agent is set; "" if they are. An empty language is that of the organisation.
	CheckHeard(ctx context.Context, org, language string, agent bool) (wrong string, err error)
}

// checker collects the faults of nodes.
type checker struct {
	ctx    context.Context
	org    string
	refs   References
	node   string
	faults []Fault
	err    error // of a look-up

	language string  // of the flow; "": the organisation's
	warnings []Fault // about languages

	expressions int  // in conditions and templates
	tooMany     bool // the fault is reported
}

func (c *checker) fault(code, format string, args ...any) {
	c.faults = append(c.faults, Fault{c.node, code, fmt.Sprintf(format, args...)})
}

// setErr keeps the first error of a lookup.
func (c *checker) setErr(err error) {
	if c.err == nil {
		c.err = err
	}
}

func (c *checker) checkRange(field string, is, from, to int) {
	if is < from || is > to {
		c.fault("out_of_range", "%s must be %d to %d", field, from, to)
	}
}

func (c *checker) checkOneOf(field, is string, of ...string) {
	if !slices.Contains(of, is) {
		c.fault("invalid_value", "%s must be one of %s", field, strings.Join(of, ", "))
	}
}

func (c *checker) checkLength(field, text string, from, to int) {
	if n := len([]rune(text)); n < from || n > to {
		c.fault("invalid_length", "%s must have %d to %d characters", field, from, to)
	}
}

func (c *checker) checkAudio(field, id string) {
	if id == "" {
		return
	}
	has, err := c.refs.HasAudio(c.ctx, c.org, id)
	c.setErr(err)
	if err == nil && !has {
		c.fault("audio_not_found", "%s: there is no such audio: %s", field, id)
	}
}

// checkReference checks a destination. code is the code of the fault.
func (c *checker) checkReference(field, to, code string) {
	wrong, err := c.refs.CheckDestination(c.ctx, c.org, to)
	c.setErr(err)
	if err == nil && wrong != "" {
		c.fault(code, "%s: %s", field, wrong)
	}
}

// checkDestination checks a destination of any kind. The code of the fault names the kind of an internal destination.
func (c *checker) checkDestination(field, to string) {
	kind, _, _ := strings.Cut(to, ":")
	switch kind {
	case "queue", "user", "flow", "voicemail":
		c.checkReference(field, to, kind+"_not_found")
	default:
		c.checkReference(field, to, "invalid_destination")
	}
}

func (c *checker) checkTemplate(field, text string) *Template {
	if !c.mayCompile(strings.Count(text, "{{")) {
		return nil
	}
	t, err := ParseTemplate(text)
	if err != nil {
		c.fault("invalid_template", "%s: %v", field, err)
	}
	return t
}

// mayCompile counts expressions, and reports whether they may be compiled.
func (c *checker) mayCompile(n int) bool {
	if c.expressions += n; c.expressions <= limit.FlowExpressions.Int() {
		return true
	}
	if !c.tooMany {
		c.tooMany = true
		limit.FlowExpressions.Refuse()
		c.fault("too_many", "a flow has at most %s expressions", limit.FlowExpressions)
	}
	return false
}

func (c *checker) checkPrompt(field string, p Prompt) {
	if (p.AudioID == "") == (strings.TrimSpace(p.Text) == "") {
		c.fault("prompt_required", "%s needs either audio_id or text", field)
	}
	c.checkAudio(field, p.AudioID)
	c.checkTemplate(field, p.Text)
	c.checkLength(field+" voice", p.Voice, 0, 60)
	c.checkLanguage(field+" lang", p.Lang)
	c.warnUnspoken(field, Spoken{p.Text, p.Voice, p.Lang})
}

var variableForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,39}$`)

func (c *checker) checkVariable(field, name string) {
	if !variableForm.MatchString(name) {
		c.fault("invalid_variable", "%s must be a name of 1 to 40 letters, digits and _", field)
	}
}

func (p *Play) check(c *checker) { c.checkPrompt("play", p.Prompt) }

const keys = "0123456789*#ABCD"

func (m *Menu) check(c *checker) {
	c.checkPrompt("prompt", m.Prompt)
	if len(m.Digits) == 0 {
		c.fault("digits_required", "a menu needs at least one digit")
	}
	for d := range m.Digits {
		if len(d) != 1 || !strings.Contains(keys, d) {
			c.fault("invalid_digit", "%q is no key: 0 to 9, *, # and A to D are", d)
		}
	}
	c.checkRange("timeout_seconds", m.Timeout, 1, 60)
	c.checkRange("retries", m.Retries, 0, 10)
	if m.Speech {
		c.warnUnheard("speech", m.Prompt.Lang, false)
	}
}

func (x *Collect) check(c *checker) {
	c.checkPrompt("prompt", x.Prompt)
	c.checkRange("min", x.Min, 1, 64)
	c.checkRange("max", x.Max, max(x.Min, 1), 64)
	if x.Terminator != "" && (len(x.Terminator) != 1 || !strings.Contains(keys, x.Terminator)) {
		c.fault("invalid_digit", "%q is no key: 0 to 9, *, # and A to D are", x.Terminator)
	}
	c.checkVariable("variable", x.Variable)
	c.checkRange("timeout_seconds", x.Timeout, 1, 60)
}

func (h *Hours) check(c *checker) {
	for _, v := range h.Hours.Violations("hours") {
		c.fault("invalid_hours", "%s: %s", v.Field, v.Message)
	}
	for _, day := range h.Holidays {
		_, whole := time.Parse(time.DateOnly, day)
		_, yearly := time.Parse("01-02", day)
		if whole != nil && yearly != nil {
			c.fault("invalid_hours", "holidays: %q must be a date such as 2026-12-25, or 12-25 for every year", day)
		}
	}
	if len(h.Holidays) > 366 {
		c.fault("too_many", "at most 366 holidays")
	}
}

func (x *Condition) check(c *checker) {
	if !c.mayCompile(1) {
		return
	}
	var err error
	if x.program, err = ParseExpression(x.Expression, true); err != nil {
		c.fault("invalid_expression", "expression: %v", err)
	}
}

func (s *Set) check(c *checker) {
	if len(s.Variables) == 0 || len(s.Variables) > 50 {
		c.fault("out_of_range", "variables must be 1 to 50")
	}
	s.texts = map[string]*Template{}
	for name, v := range s.Variables {
		c.checkVariable("variables", name)
		switch v := v.(type) {
		case string:
			s.texts[name] = c.checkTemplate(name, v)
		case float64, bool, nil:
		default:
			c.fault("invalid_value", "%s must be a text, a number or a truth value", name)
		}
	}
}

func (g *HuntGroup) check(c *checker) {
	if len(g.Members) == 0 || len(g.Members) > 50 {
		c.fault("out_of_range", "members must be 1 to 50")
	}
	for i, m := range g.Members {
		field := fmt.Sprintf("members[%d]", i)
		switch {
		case (m.UserID == "") == (m.Number == ""):
			c.fault("invalid_member", "%s needs either user_id or number", field)
		case m.UserID != "":
			c.checkReference(field, "user:"+m.UserID, "user_not_found")
		default:
			c.checkDestination(field, m.Number)
		}
	}
	c.checkOneOf("strategy", g.Strategy, "simultaneous", "sequential", "round_robin", "longest_idle")
	c.checkRange("ring_timeout_seconds", g.RingTimeout, 5, 120)
}

func (k *Queue) check(c *checker) {
	c.checkReference("queue_id", "queue:"+k.QueueID, "queue_not_found")
	if k.Priority != nil {
		c.checkRange("priority", *k.Priority, -100, 100)
	}
	if k.MaxWait != nil {
		c.checkRange("max_wait_seconds", *k.MaxWait, 5, 86400)
	}
}

// tools are the tools that a voice agent can use.
var tools = []string{"lookup_contact", "caller_memory", "transfer", "send_sms", "take_message", "schedule_callback", "http"}

func (a *AIAgent) check(c *checker) {
	c.checkLength("instructions", a.Instructions, 1, 20_000)
	c.checkLength("voice", a.Voice, 0, 60)
	c.checkLanguage("language", a.Language)
	c.checkTemplate("greeting", a.Greeting)
	c.warnUnspoken("language", Spoken{"hello", a.Voice, a.Language})
	c.warnUnheard("language", a.Language, true)
	for _, t := range a.Tools {
		c.checkOneOf("tools", t, tools...)
	}
	if a.Handoff != "" {
		c.checkDestination("handoff", a.Handoff)
	}
	c.checkRange("max_minutes", a.MaxMinutes, 1, 120)
	a.checkTools(c)
}

// checkTools checks the settings that the tools need.
func (a *AIAgent) checkTools(c *checker) {
	if a.SMSFrom != "" {
		(&SMS{From: a.SMSFrom, Body: "-"}).check(c)
	}
	if a.Mailbox != "" && a.Mailbox != ThisFlow {
		c.checkReference("mailbox", "voicemail:"+a.Mailbox, "mailbox_not_found")
	}
	if a.CallbackQueue != "" {
		c.checkReference("callback_queue_id", "queue:"+a.CallbackQueue, "queue_not_found")
	}
	if slices.Contains(a.Tools, "schedule_callback") && a.CallbackTo() == "" {
		c.fault("queue_required", "schedule_callback needs callback_queue_id, or a handoff to a queue")
	}
	c.checkLength("http_about", a.HTTPAbout, 0, 500)
	if a.HTTP != nil {
		a.HTTP.setDefaults()
		a.HTTP.check(c)
	} else if slices.Contains(a.Tools, "http") {
		c.fault("http_required", "the tool http needs http with the url that is asked")
	}
}

// setDefaults sets the default of each empty field.
func (h *HTTP) setDefaults() {
	if h.Method == "" {
		h.Method = "POST"
	}
	if h.TimeoutMS == 0 {
		h.TimeoutMS = 3000
	}
}

func (l *ContactLookup) check(c *checker) {
	c.checkRange("timeout_ms", l.TimeoutMS, 50, 2000)
	c.checkVariable("variable", l.Variable)
}

func (h *HTTP) check(c *checker) {
	u, err := url.Parse(h.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || strings.Contains(u.Host, "{") ||
		len(h.URL) > 2000 {
		c.fault("invalid_url", "url must be an address such as https://example.com/path; only what follows the host may have {{expressions}}")
	}
	c.checkTemplate("url", h.URL)
	c.checkOneOf("method", h.Method, "GET", "POST", "PUT", "PATCH", "DELETE")
	c.checkTemplate("body", h.Body)
	if len(h.Headers) > 20 {
		c.fault("too_many", "at most 20 headers")
	}
	for name, v := range h.Headers {
		if !headerForm.MatchString(name) || strings.ContainsAny(v, "\r\n") {
			c.fault("invalid_header", "%q is no header", name)
		}
		c.checkTemplate("headers", v)
	}
	c.checkRange("timeout_ms", h.TimeoutMS, 100, 30_000)
	if h.Variable != "" {
		c.checkVariable("variable", h.Variable)
	}
}

var headerForm = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$")

func (t *Transfer) check(c *checker) {
	c.checkDestination("to", t.To)
	c.checkRange("timeout_seconds", t.Timeout, 5, 120)
}

// ThisFlow is the mailbox name for the mailbox of the flow itself.
const ThisFlow = "flow"

func (v *Voicemail) check(c *checker) {
	if v.Mailbox != ThisFlow {
		c.checkReference("mailbox", "voicemail:"+v.Mailbox, "mailbox_not_found")
	}
	c.checkAudio("greeting_audio_id", v.GreetingAudioID)
	c.checkRange("max_seconds", v.MaxSeconds, 5, 1800)
}

func (b *Callback) check(c *checker) {
	c.checkReference("queue_id", "queue:"+b.QueueID, "queue_not_found")
}

func (m *SMS) check(c *checker) {
	c.checkLength("body", m.Body, 1, 1600)
	c.checkTemplate("body", m.Body)
	owns, err := c.refs.OwnsNumber(c.ctx, c.org, m.From)
	c.setErr(err)
	if err == nil && !owns {
		c.fault("number_not_found", "from must be a number of the organisation")
	}
}

func (r *Record) check(c *checker) {
	c.checkOneOf("action", r.Action, "start", "stop", "pause", "resume")
}

func (t *Tag) check(c *checker) {
	if len(t.Tags) == 0 || len(t.Tags) > 20 {
		c.fault("out_of_range", "tags must be 1 to 20")
	}
	for _, name := range t.Tags {
		c.checkLength("tags", name, 1, 40)
	}
}

func (h *Hangup) check(c *checker) { c.checkLength("reason", h.Reason, 0, 120) }
