package voiceagent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ScriptedModel is the language model of an agent with prepared answers. It recognises only those, and says so
// otherwise. The answers are in the instructions, each in two lines:
//
//	Q: What are your opening hours? | when are you open | opening hours
//	A: We are open from nine to five.
//
// An answer that ends with -> and a destination transfers there: -> queue:que_…, -> person, -> message, ->
// callback, -> end.
type Script struct {
	set     Setting
	entries []entry
	alike   Likeness
	last    string // last answer
	missed  int    // consecutive misses
}

// SimilarityFunc returns the similarity of a text to others, from 0 to 1. It may be nil.
type Likeness func(text string, others []string) []float64

type entry struct {
	asks   []string
	answer string
	to     string // "": the conversation continues
}

// NewScriptedModel parses the prepared answers in the instructions.
func NewScript(set Setting, alike Likeness) *Script {
	return &Script{set: set, entries: read(set.Instructions), alike: alike}
}

// maxEntries limits the prepared answers.
const mostEntries = 200

// parseAnswers parses the questions and answers in instructions; it ignores other text.
func read(instructions string) (all []entry) {
	var open *entry
	for line := range strings.Lines(instructions) {
		line = strings.TrimSpace(line)
		q, isQ := cutMark(line, "q:")
		a, isA := cutMark(line, "a:")
		switch {
		case isQ && len(all) < mostEntries:
			all = append(all, entry{asks: options(q)})
			open = &all[len(all)-1]
		case isA && open != nil:
			open.answer, open.to = led(a)
		case line == "" || isQ:
			open = nil
		case open != nil && open.answer != "" && open.to == "":
			more, to := led(line)
			open.answer, open.to = strings.TrimSpace(open.answer+" "+more), to
		}
	}
	return slices.DeleteFunc(all, func(e entry) bool { return len(e.asks) == 0 || e.answer == "" && e.to == "" })
}

func cutMark(line, mark string) (rest string, ok bool) {
	if len(line) < len(mark) || !strings.EqualFold(line[:len(mark)], mark) {
		return "", false
	}
	return strings.TrimSpace(line[len(mark):]), true
}

func options(text string) (all []string) {
	for part := range strings.SplitSeq(text, "|") {
		if part = strings.TrimSpace(part); len(words(part)) > 0 {
			all = append(all, part)
		}
	}
	return all
}

// splitDestination splits an answer into its text and its destination.
func led(text string) (answer, to string) {
	answer, to, _ = strings.Cut(text, "->")
	return strings.TrimSpace(answer), strings.TrimSpace(to)
}

// Engine returns the name of the engine.
func (s *Script) Engine() string { return "builtin-script" }

// Phrases that every agent recognises.
var (
	personWords = options("a person | person | a human | human | an agent | agent | operator | the operator | somebody | someone | real person | representative | speak to a person | talk to a person | speak to someone")
	againWords  = options("repeat that | say that again | once more | pardon | repeat")
	endWords    = options("goodbye | bye | good bye | that is all | that's all | no thank you | no thanks | nothing else | no")
	leaveWords  = options("leave a message | take a message | voicemail")
	backWords   = options("call me back | call back | callback")
)

// Phrases returns all phrases that the model recognises.
func (s *Script) Phrases() []string {
	all := slices.Concat(personWords, againWords, endWords)
	if s.may(TakeMessage) {
		all = append(all, leaveWords...)
	}
	if s.may(ScheduleCallback) {
		all = append(all, backWords...)
	}
	for _, e := range s.entries {
		all = append(all, e.asks...)
	}
	return all
}

// Tools that a prepared answer may use.
const (
	TakeMessage      = "take_message"
	ScheduleCallback = "schedule_callback"
	Transfer         = "transfer"
)

func (s *Script) may(tool string) bool {
	return slices.ContainsFunc(s.set.All(), func(x Tool) bool { return x.Name == tool })
}

// offer returns the default greeting.
func (s *Script) offer() string {
	if s.set.Handoff {
		return "How can I help? For a person, say operator, or press zero."
	}
	return "How can I help?"
}

// Reply answers the last message.
func (s *Script) Reply(_ context.Context, told []Message, say func(string)) ([]Invocation, error) {
	said, of := lastOf(told)
	if of == "tool" {
		say("Is there anything else I can do for you? ")
		if strings.HasPrefix(said, `{"error"`) {
			s.last = "I am sorry, that did not work."
		}
		return nil, nil
	}
	if e, ok := s.match(said); ok {
		return s.follow(e, say), nil
	}
	switch {
	case hasAny(said, leaveWords) && s.may(TakeMessage):
		return calls(TakeMessage, nil), nil
	case hasAny(said, backWords) && s.may(ScheduleCallback):
		say("We will call you back. ")
		return calls(ScheduleCallback, nil), nil
	case hasAny(said, personWords) && s.set.Handoff:
		say("I will connect you with a person. One moment, please.")
		return calls(HandOver, map[string]string{"reason": "the caller asked for a person"}), nil
	case hasAny(said, againWords) && s.last != "":
		say(s.last)
		return nil, nil
	case isOneOf(said, endWords):
		return calls(EndCall, nil), nil
	}
	return s.atALoss(say), nil
}

func lastOf(told []Message) (text, role string) {
	if len(told) == 0 {
		return "", "user"
	}
	m := told[len(told)-1]
	return m.Text, m.Role
}

// sayAnswer says a prepared answer, and returns the tool call of its destination.
func (s *Script) follow(e entry, say func(string)) []Invocation {
	s.last = e.answer
	say(e.answer)
	switch e.to {
	case "":
		return nil
	case "person":
		return calls(HandOver, map[string]string{"reason": "a prepared answer leads to a person"})
	case "message":
		return calls(TakeMessage, nil)
	case "callback":
		return calls(ScheduleCallback, nil)
	case "end":
		return calls(EndCall, nil)
	}
	return calls(Transfer, map[string]string{"to": e.to})
}

// noAnswer says that there is no answer. The second consecutive time it hands over, if possible.
func (s *Script) atALoss(say func(string)) []Invocation {
	if s.missed++; s.missed > 1 && s.set.Handoff {
		say("I am sorry, I have no answer to that. I will connect you with a person.")
		return calls(HandOver, map[string]string{"reason": "there was no prepared answer"})
	}
	say("Sorry, I have no answer to that. ")
	if t := s.topics(); t != "" {
		say(fmt.Sprintf("You can ask: %s. ", t))
	}
	if s.set.Handoff {
		say("Or say operator for a person.")
	}
	return nil
}

// topics returns the first three questions, as suggestions.
func (s *Script) topics() string {
	var all []string
	for _, e := range s.entries[:min(len(s.entries), 3)] {
		all = append(all, strings.TrimRight(e.asks[0], "?!. "))
	}
	return strings.Join(all, ", or, ")
}

// Minimum similarity to a prepared question, and minimum distance to any other.
const (
	likeEnough = 0.62
	clearly    = 0.04
)

// match returns the prepared answer to a text: by its words, else by meaning.
func (s *Script) match(said string) (e entry, ok bool) {
	best := 0
	for _, x := range s.entries {
		for _, a := range x.asks {
			if n := len(words(a)); n > best && has(said, a) {
				e, ok, best = x, true, n
			}
		}
	}
	if ok {
		s.missed = 0
		return e, true
	}
	if s.alike == nil || hasAny(said, personWords) || isOneOf(said, endWords) {
		return e, false
	}
	if e, ok = s.nearest(said); ok {
		s.missed = 0
	}
	return e, ok
}

func (s *Script) nearest(said string) (e entry, ok bool) {
	first, second := 0.0, 0.0
	for _, x := range s.entries {
		near := 0.0
		for _, l := range s.alike(said, x.asks) {
			near = max(near, l)
		}
		if near > first {
			e, first, second = x, near, first
		} else {
			second = max(second, near)
		}
	}
	return e, first >= likeEnough && first-second >= clearly
}

// containsPhrase reports whether the words of a phrase occur consecutively in a text.
func has(text, phrase string) bool {
	all, p := words(text), words(phrase)
	for i := range all {
		if len(p) > 0 && i+len(p) <= len(all) && slices.Equal(all[i:i+len(p)], p) {
			return true
		}
	}
	return false
}

func hasAny(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return has(text, p) })
}

func isOneOf(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return slices.Equal(words(text), words(p)) })
}

func calls(name string, arguments map[string]string) []Invocation {
	if arguments == nil {
		arguments = map[string]string{}
	}
	b, _ := json.Marshal(arguments) // texts can always be encoded
	return []Invocation{{ID: name, Name: name, Arguments: string(b)}}
}
