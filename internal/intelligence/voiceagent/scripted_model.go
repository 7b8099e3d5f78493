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
type ScriptedModel struct {
	set        ConversationSettings
	entries    []preparedAnswer
	similarity SimilarityFunc
	last       string // last answer
	misses     int    // consecutive misses
}

// SimilarityFunc returns the similarity of a text to others, from 0 to 1. It may be nil.
type SimilarityFunc func(text string, others []string) []float64

type preparedAnswer struct {
	questions   []string
	answer      string
	destination string // "": the conversation continues
}

// NewScriptedModel parses the prepared answers in the instructions.
func NewScriptedModel(set ConversationSettings, alike SimilarityFunc) *ScriptedModel {
	return &ScriptedModel{set: set, entries: parseAnswers(set.Instructions), similarity: alike}
}

// maxEntries limits the prepared answers.
const maxEntries = 200

// parseAnswers parses the questions and answers in instructions; it ignores other text.
func parseAnswers(instructions string) (all []preparedAnswer) {
	var open *preparedAnswer
	for line := range strings.Lines(instructions) {
		line = strings.TrimSpace(line)
		q, isQ := cutPrefixFold(line, "q:")
		a, isA := cutPrefixFold(line, "a:")
		switch {
		case isQ && len(all) < maxEntries:
			all = append(all, preparedAnswer{questions: splitPhrases(q)})
			open = &all[len(all)-1]
		case isA && open != nil:
			open.answer, open.destination = splitDestination(a)
		case line == "" || isQ:
			open = nil
		case open != nil && open.answer != "" && open.destination == "":
			more, to := splitDestination(line)
			open.answer, open.destination = strings.TrimSpace(open.answer+" "+more), to
		}
	}
	return slices.DeleteFunc(all, func(e preparedAnswer) bool { return len(e.questions) == 0 || e.answer == "" && e.destination == "" })
}

func cutPrefixFold(line, mark string) (rest string, ok bool) {
	if len(line) < len(mark) || !strings.EqualFold(line[:len(mark)], mark) {
		return "", false
	}
	return strings.TrimSpace(line[len(mark):]), true
}

func splitPhrases(text string) (all []string) {
	for part := range strings.SplitSeq(text, "|") {
		if part = strings.TrimSpace(part); len(wordsOf(part)) > 0 {
			all = append(all, part)
		}
	}
	return all
}

// splitDestination splits an answer into its text and its destination.
func splitDestination(text string) (answer, to string) {
	answer, to, _ = strings.Cut(text, "->")
	return strings.TrimSpace(answer), strings.TrimSpace(to)
}

// Engine returns the name of the engine.
func (s *ScriptedModel) Engine() string { return "builtin-script" }

// Phrases that every agent recognises.
var (
	personWords   = splitPhrases("a person | person | a human | human | an agent | agent | operator | the operator | somebody | someone | real person | representative | speak to a person | talk to a person | speak to someone")
	againWords    = splitPhrases("repeat that | say that again | once more | pardon | repeat")
	endWords      = splitPhrases("goodbye | bye | good bye | that is all | that's all | no thank you | no thanks | nothing else | no")
	leaveWords    = splitPhrases("leave a message | take a message | voicemail")
	callbackWords = splitPhrases("call me back | call back | callback")
)

// Phrases returns all phrases that the model recognises.
func (s *ScriptedModel) Phrases() []string {
	all := slices.Concat(personWords, againWords, endWords)
	if s.hasTool(TakeMessage) {
		all = append(all, leaveWords...)
	}
	if s.hasTool(ScheduleCallback) {
		all = append(all, callbackWords...)
	}
	for _, e := range s.entries {
		all = append(all, e.questions...)
	}
	return all
}

// Tools that a prepared answer may use.
const (
	TakeMessage      = "take_message"
	ScheduleCallback = "schedule_callback"
	Transfer         = "transfer"
)

func (s *ScriptedModel) hasTool(tool string) bool {
	return slices.ContainsFunc(s.set.AllTools(), func(x Tool) bool { return x.Name == tool })
}

// offer returns the default greeting.
func (s *ScriptedModel) offer() string {
	if s.set.Handoff {
		return "How can I help? For a person, say operator, or press zero."
	}
	return "How can I help?"
}

// Reply answers the last message.
func (s *ScriptedModel) Reply(_ context.Context, told []Message, say func(string)) ([]ToolCall, error) {
	said, of := lastMessage(told)
	if of == "tool" {
		say("Is there anything else I can do for you? ")
		if strings.HasPrefix(said, `{"error"`) {
			s.last = "I am sorry, that did not work."
		}
		return nil, nil
	}
	if e, ok := s.match(said); ok {
		return s.sayAnswer(e, say), nil
	}
	switch {
	case containsAny(said, leaveWords) && s.hasTool(TakeMessage):
		return toolCall(TakeMessage, nil), nil
	case containsAny(said, callbackWords) && s.hasTool(ScheduleCallback):
		say("We will call you back. ")
		return toolCall(ScheduleCallback, nil), nil
	case containsAny(said, personWords) && s.set.Handoff:
		say("I will connect you with a person. One moment, please.")
		return toolCall(HandOver, map[string]string{"reason": "the caller asked for a person"}), nil
	case containsAny(said, againWords) && s.last != "":
		say(s.last)
		return nil, nil
	case equalsAny(said, endWords):
		return toolCall(EndCall, nil), nil
	}
	return s.noAnswer(say), nil
}

func lastMessage(told []Message) (text, role string) {
	if len(told) == 0 {
		return "", "user"
	}
	m := told[len(told)-1]
	return m.Text, m.Role
}

// sayAnswer says a prepared answer, and returns the tool call of its destination.
func (s *ScriptedModel) sayAnswer(e preparedAnswer, say func(string)) []ToolCall {
	s.last = e.answer
	say(e.answer)
	switch e.destination {
	case "":
		return nil
	case "person":
		return toolCall(HandOver, map[string]string{"reason": "a prepared answer leads to a person"})
	case "message":
		return toolCall(TakeMessage, nil)
	case "callback":
		return toolCall(ScheduleCallback, nil)
	case "end":
		return toolCall(EndCall, nil)
	}
	return toolCall(Transfer, map[string]string{"to": e.destination})
}

// noAnswer says that there is no answer. The second consecutive time it hands over, if possible.
func (s *ScriptedModel) noAnswer(say func(string)) []ToolCall {
	if s.misses++; s.misses > 1 && s.set.Handoff {
		say("I am sorry, I have no answer to that. I will connect you with a person.")
		return toolCall(HandOver, map[string]string{"reason": "there was no prepared answer"})
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
func (s *ScriptedModel) topics() string {
	var all []string
	for _, e := range s.entries[:min(len(s.entries), 3)] {
		all = append(all, strings.TrimRight(e.questions[0], "?!. "))
	}
	return strings.Join(all, ", or, ")
}

// Minimum similarity to a prepared question, and minimum distance to any other.
const (
	minSimilarity    = 0.62
	similarityMargin = 0.04
)

// match returns the prepared answer to a text: by its words, else by meaning.
func (s *ScriptedModel) match(said string) (e preparedAnswer, ok bool) {
	best := 0
	for _, x := range s.entries {
		for _, a := range x.questions {
			if n := len(wordsOf(a)); n > best && containsPhrase(said, a) {
				e, ok, best = x, true, n
			}
		}
	}
	if ok {
		s.misses = 0
		return e, true
	}
	if s.similarity == nil || containsAny(said, personWords) || equalsAny(said, endWords) {
		return e, false
	}
	if e, ok = s.nearestQuestion(said); ok {
		s.misses = 0
	}
	return e, ok
}

func (s *ScriptedModel) nearestQuestion(said string) (e preparedAnswer, ok bool) {
	first, second := 0.0, 0.0
	for _, x := range s.entries {
		near := 0.0
		for _, l := range s.similarity(said, x.questions) {
			near = max(near, l)
		}
		if near > first {
			e, first, second = x, near, first
		} else {
			second = max(second, near)
		}
	}
	return e, first >= minSimilarity && first-second >= similarityMargin
}

// containsPhrase reports whether the words of a phrase occur consecutively in a text.
func containsPhrase(text, phrase string) bool {
	all, p := wordsOf(text), wordsOf(phrase)
	for i := range all {
		if len(p) > 0 && i+len(p) <= len(all) && slices.Equal(all[i:i+len(p)], p) {
			return true
		}
	}
	return false
}

func containsAny(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return containsPhrase(text, p) })
}

func equalsAny(text string, phrases []string) bool {
	return slices.ContainsFunc(phrases, func(p string) bool { return slices.Equal(wordsOf(text), wordsOf(p)) })
}

func toolCall(name string, arguments map[string]string) []ToolCall {
	if arguments == nil {
		arguments = map[string]string{}
	}
	b, _ := json.Marshal(arguments) // texts can always be encoded
	return []ToolCall{{ID: name, Name: name, Arguments: string(b)}}
}
