package engine

import (
	"context"
	"slices"
	"strings"

	"soniq/internal/intelligence/transcript"
)

// rulesEngine is how notes made by rules are signed: no language model is claimed where rules work.
var rulesEngine = transcript.Engine{Name: "builtin-rules", Model: "rules-en", Version: "2"}

// Rules writes notes by rules: who asked for what, who promised what, how it ended. It knows English only, reads
// recognised text without punctuation as well as written text, takes well under a millisecond and never fails.
type Rules struct {
	lexicon *Lexsem
}

// NewRules makes the builtin writer.
func NewRules(lexicon *Lexsem) *Rules { return &Rules{lexicon} }

// Summarise writes the note.
func (r *Rules) Summarise(_ context.Context, c transcript.Conversation) (transcript.Note, error) {
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

// maxSummary keeps summaries to what can be read at a glance.
const maxSummary = 600

// summary puts the note into sentences: why the caller called, what the agent did and will do, what the caller
// is to do, how it ended.
func summary(n transcript.Note, clauses []clause, promises []promise) string {
	var out []string
	if n.Reason != "" {
		out = append(out, n.Reason)
	}
	if did := agentDid(promises); did != "" {
		out = append(out, did)
	} else if answer := agentSaid(clauses); answer != "" {
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
	return cut(strings.Join(out, " "), maxSummary)
}

// agentDid tells what the agent has done and promised, three things at most.
func agentDid(promises []promise) string {
	var parts []string
	for _, p := range promises {
		if p.owner == transcript.Agent {
			parts = append(parts, p.told())
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
	return sentence("Agent " + list(parts))
}

// agentSaid is the longest thing the agent stated: where nothing was promised, the answer is in it.
func agentSaid(clauses []clause) string {
	best := ""
	for i, c := range clauses {
		if c.speaker != transcript.Caller && i > 0 && !c.question && !greeting1.MatchString(c.text) && len(c.text) > len(best) && words(c.text) > 3 {
			best = c.text
		}
	}
	return thirdPerson(best, transcript.Agent)
}

// list joins phrases with commas and a last "and".
func list(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

// sentence gives a text its capital letter and its full stop.
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

// cut shortens a text at a word.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	short := strings.ToValidUTF8(text[:limit-1], "")
	if at := strings.LastIndexByte(short, ' '); at > limit/2 {
		short = short[:at]
	}
	return short + "…"
}

func words(text string) int { return len(strings.Fields(text)) }
