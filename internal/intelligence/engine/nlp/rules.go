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
var rulesEngine = transcript.Engine{Name: "builtin-rules", Model: "rules-en", Version: "2"}

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
	clauses := clausesOf(c.Turns)
	reason := reasonOf(clauses)
	promises := promisesOf(clauses)
	n := transcript.Note{
		Reason:    sentence(reported(reason)),
		Outcome:   outcomeOf(clauses, promises),
		Topics:    r.topics(c.Turns),
		Sentiment: sentimentOf(clauses),
		Flags:     flagsOf(clauses),
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
	n.Summary = summary(n, clauses, promises)
	return n, nil
}

// maxSummary limits a summary, in bytes, to what can be read at a glance.
const maxSummary = 600

// summary writes the note as sentences: why the caller called, the past and promised actions of the agent, the
// actions of the caller, how it ended.
func summary(n transcript.Note, clauses []clause, promises []promise) string {
	var out []string
	if n.Reason != "" {
		out = append(out, n.Reason)
	}
	if did := agentActions(promises); did != "" {
		out = append(out, did)
	} else if answer := agentStatement(clauses); answer != "" {
		out = append(out, sentence("Agent said that "+answer))
	}
	var follow []string
	for _, p := range promises {
		if p.owner == transcript.Caller {
			follow = append(follow, "caller to "+p.text)
		}
	}
	if len(follow) > 0 {
		out = append(out, sentence("Follow-up: "+strings.Join(follow[:min(len(follow), 3)], "; ")))
	}
	switch n.Outcome {
	case transcript.Resolved:
		out = append(out, "The matter was resolved on the call.")
	case transcript.Unresolved:
		out = append(out, "The matter was left open.")
	case transcript.Transferred:
		out = append(out, "The call was handed over.")
	}
	for len(out) > 1 && len(strings.Join(out, " ")) > maxSummary {
		out = out[:len(out)-1]
	}
	return engine.TruncateText(strings.Join(out, " "), maxSummary)
}

// agentActions returns a sentence about the past and promised actions of the agent, at most three.
func agentActions(promises []promise) string {
	var parts []string
	for _, p := range promises {
		if p.owner == transcript.Agent {
			parts = append(parts, p.predicate())
		}
	}
	if len(parts) == 0 {
		return ""
	}
	parts = parts[:min(len(parts), 3)]
	for i := len(parts) - 1; i > 0; i-- {
		if strings.HasPrefix(parts[i-1], "will ") {
			parts[i] = strings.TrimPrefix(parts[i], "will ")
		}
	}
	return sentence("Agent " + joinPhrases(parts))
}

// agentStatement returns the longest statement of the agent: if nothing was promised, it probably has the answer.
func agentStatement(clauses []clause) string {
	best := ""
	for i, c := range clauses {
		if c.speaker != transcript.Caller && i > 0 && !c.question && !greetingOnly.MatchString(c.text) && len(c.text) > len(best) &&
			wordCount(c.text) > 3 {
			best = c.text
		}
	}
	return thirdPerson(best, transcript.Agent)
}

// joinPhrases joins phrases with commas and a last "and".
func joinPhrases(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// sentence returns a text with a capital first letter and a full stop.
func sentence(text string) string {
	text = strings.TrimRight(strings.TrimSpace(text), ".,;: ")
	if text == "" {
		return ""
	}
	text = strings.ToUpper(text[:1]) + text[1:]
	if strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, `?"`) {
		return text
	}
	return text + "."
}

func wordCount(text string) int { return len(strings.Fields(text)) }
