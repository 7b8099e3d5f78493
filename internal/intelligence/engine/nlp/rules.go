// Package nlp implements the builtin understanding of text: notes by rules and the word embedding. English only.
package nlp

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/transcript"
)

// rulesEngine identifies notes written by rules: it does not claim a language model.
var rulesEngine = transcript.Engine{Name: "builtin-rules", Model: "rules-en", Version: "3"}

// RuleSummarizer writes notes by rules: requests, promises and the end of the call. English only. It reads recognised
// text without punctuation as well as written text, takes well under a millisecond and never fails. It is safe for
// concurrent use.
type RuleSummarizer struct {
	lexicon *WordEmbedding
}

// NewRuleSummarizer returns the builtin summariser.
func NewRuleSummarizer(lexicon *WordEmbedding) *RuleSummarizer { return &RuleSummarizer{lexicon} }

// Summarise writes the note of a conversation. The error is always nil.
func (r *RuleSummarizer) Summarise(_ context.Context, c transcript.Conversation) (transcript.Note, error) {
	return r.summarise(c, allowed), nil
}

// summarise writes the note with the rules that a function permits.
func (r *RuleSummarizer) summarise(c transcript.Conversation, permits func(rule string) bool) transcript.Note {
	lines := linesOf(c.Turns)
	reason := reasonOf(lines)
	promises := promisesOf(lines, permits)
	n := transcript.Note{
		Reason:    reasonText(reason, permits),
		Outcome:   outcomeOf(lines, promises),
		Topics:    r.topics(lines),
		Sentiment: sentimentOf(lines, permits),
		Flags:     flagsOf(lines, permits),
		Entities:  entitiesOf(c.Turns),
		Engine:    rulesEngine,
	}
	for _, p := range promises {
		n.ActionItems = append(n.ActionItems, p.item())
		n.Evidence = append(n.Evidence, p.turn)
	}
	for _, c := range reason {
		n.Evidence = append(n.Evidence, c.turn)
	}
	slices.Sort(n.Evidence)
	n.Evidence = slices.Compact(n.Evidence)
	n.Summary = summary(reason, lines, promises, permits)
	return n
}

// maxSummary limits a summary, in bytes, to what can be read at a glance.
const maxSummary = 600

// summary returns the lines of a note: why the caller called, the past and promised actions of the agent, the actions of the caller. Each
// has its speaker and its time.
func summary(reason, lines []line, promises []promise, permits func(rule string) bool) string {
	var out []string
	if text := reasonText(reason, permits); text != "" {
		out = append(out, text)
	}
	told := func(p promise) bool {
		return slices.ContainsFunc(reason, func(c line) bool { return c.turn == p.turn && c.Text == p.line.Text && !c.Question })
	}
	promises = slices.DeleteFunc(slices.Clone(promises), told)
	said := actionLines(promises, transcript.Agent, permits)
	if answer, ok := agentStatement(lines); ok && len(said) == 0 {
		said = []string{answer.told(permits)}
	}
	out = append(out, said...)
	out = append(out, actionLines(promises, transcript.Caller, permits)...)
	for len(out) > 1 && len(strings.Join(out, " ")) > maxSummary {
		out = out[:len(out)-1]
	}
	return engine.TruncateText(strings.Join(out, " "), maxSummary)
}

// actionLines returns lines about the actions of a side, at most three.
func actionLines(promises []promise, owner transcript.Speaker, permits func(rule string) bool) []string {
	var out []string
	for _, p := range promises {
		if p.owner == owner && len(out) < 3 {
			out = append(out, p.told(permits))
		}
	}
	return out
}

// agentStatement returns the longest statement of the agent: if nothing was promised, it probably has the answer.
func agentStatement(lines []line) (best line, ok bool) {
	for i, c := range lines {
		if c.speaker != transcript.Caller && i > 0 && !c.Question && !c.At(0).Corrected && !greetingOnly.MatchString(c.Text) &&
			len(c.Text) > len(best.Text) &&
			wordCount(c.Text) > 3 {
			best, ok = c, true
		}
	}
	return best, ok
}

// sentence returns a text with a capital first letter and a full stop.
func sentence(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".,;: ")
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, `"`) {
		return text
	}
	return text + "."
}

func wordCount(text string) int { return len(strings.Fields(text)) }
