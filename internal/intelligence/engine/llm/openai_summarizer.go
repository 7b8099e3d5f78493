package llm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"soniq/internal/intelligence/engine"
	"soniq/internal/intelligence/engine/nlp"
	"soniq/internal/intelligence/transcript"
)

// maxTranscriptBytes limits the transcript in one request; longer ones are summarised in parts first.
const maxTranscriptBytes = 24000

// openAISummarizer writes notes with a language model on an OpenAI-compatible server. It validates the model's answer
// and sends an invalid one back once for repair. If that fails too, the builtin rules write the note.
type openAISummarizer struct {
	endpoint *engine.Endpoint
	model    string
	fallback *nlp.RuleSummarizer
	form     atomic.Int32 // index of the first response format that may work
}

type promptMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Summarise writes the note of a conversation. It returns an error only for transient errors of the server and if the
// context ends, so that the job is retried.
func (r *openAISummarizer) Summarise(ctx context.Context, c transcript.Conversation) (transcript.Note, error) {
	d, err := r.draft(ctx, c.Turns, placedBy(c))
	if ctx.Err() != nil {
		return transcript.Note{}, ctx.Err()
	}
	if err != nil {
		var refusal *engine.StatusError
		if errors.As(err, &refusal) && refusal.IsTransient() {
			return transcript.Note{}, fmt.Errorf("write note: %w", err) // the job is retried later
		}
		return r.fallback.Summarise(ctx, c)
	}
	n := d.note()
	n.Engine = transcript.Engine{Name: "openai-compatible", Model: r.model, Version: r.endpoint.Host}
	return n, nil
}

// placedBy returns the sentence of the prompt for a call that the agent placed; "" for others.
func placedBy(c transcript.Conversation) string {
	if c.Direction == "outbound" {
		return "The agent placed this call.\n"
	}
	return ""
}

// draft summarises the turns in one request. If they are too long, it summarises parts and then the summaries of the
// parts.
func (r *openAISummarizer) draft(ctx context.Context, turns []transcript.Turn, placed string) (noteDraft, error) {
	parts := splitTurns(turns, maxTranscriptBytes)
	if len(parts) == 1 {
		return r.ask(ctx, turns, placed+quoteTurns(turns))
	}
	var digest []transcript.Turn
	var all noteDraft
	for _, part := range parts {
		d, err := r.ask(ctx, part, placed+quoteTurns(part))
		if err != nil {
			return d, err
		}
		all.ActionItems = append(all.ActionItems, d.ActionItems...)
		all.Flags, all.Entities = append(all.Flags, d.Flags...), append(all.Entities, d.Entities...)
		digest = append(digest, transcript.Turn{ID: part[0].ID, Speaker: transcript.Other, Text: d.Summary})
	}
	d, err := r.ask(ctx, turns, placed+"These are summaries of consecutive parts of one call.\n"+quoteTurns(digest))
	d.ActionItems, d.Flags, d.Entities = all.ActionItems, all.Flags, all.Entities[:min(len(all.Entities), nlp.MaxEntities)]
	return d, err
}

// splitTurns splits turns into parts of at most limit bytes; a turn longer than a part is cut.
func splitTurns(turns []transcript.Turn, limit int) [][]transcript.Turn {
	parts := [][]transcript.Turn{nil}
	size := 0
	for _, t := range turns {
		t.Text = engine.TruncateText(t.Text, limit)
		if n := len(t.Text) + 20; size+n > limit && size > 0 {
			parts, size = append(parts, nil), 0
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], t)
		size += len(t.Text) + 20
	}
	return parts
}

// ask sends one conversation and requests one repair of an invalid answer.
func (r *openAISummarizer) ask(ctx context.Context, turns []transcript.Turn, quoted string) (noteDraft, error) {
	messages := []promptMessage{{"system", instructions}, {"user", quoted}}
	text, err := r.complete(ctx, messages)
	if err != nil {
		return noteDraft{}, err
	}
	d, wrong := readDraft(text, turns)
	if wrong == nil {
		return d, nil
	}
	messages = append(messages, promptMessage{"assistant", engine.TruncateText(text, 4000)},
		promptMessage{"user", "That is not valid: " + wrong.Error() + ". Answer again with the JSON object only."})
	if text, err = r.complete(ctx, messages); err != nil {
		return noteDraft{}, err
	}
	return readDraft(text, turns)
}

// complete requests a completion in the strictest response format that the server supports.
func (r *openAISummarizer) complete(ctx context.Context, messages []promptMessage) (string, error) {
	var err error
	for form := int(r.form.Load()); form < len(responseFormats); form++ {
		var text string
		if text, err = r.requestCompletion(ctx, messages, responseFormats[form]); err == nil {
			r.form.Store(int32(form))
			return text, nil
		}
		if !engine.IsUnsupported(err) {
			break
		}
	}
	return "", err
}

func (r *openAISummarizer) requestCompletion(ctx context.Context, messages []promptMessage, form json.RawMessage) (string, error) {
	request := struct {
		Model       string          `json:"model"`
		Messages    []promptMessage `json:"messages"`
		Temperature float64         `json:"temperature"`
		Format      json.RawMessage `json:"response_format,omitempty"`
	}{r.model, messages, 0, form}
	var answer struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := r.endpoint.PostJSON(ctx, request, &answer); err != nil {
		return "", err
	}
	if len(answer.Choices) == 0 || answer.Choices[0].Message.Content == "" {
		return "", errors.New("the model answered nothing")
	}
	return answer.Choices[0].Message.Content, nil
}

// quoteTurns puts turns between marks with a random text, which the speakers cannot guess.
func quoteTurns(turns []transcript.Turn) string {
	mark := rand.Text()
	text := "<transcript " + mark + ">\n"
	for _, t := range turns {
		text += fmt.Sprintf("[%d] %s: %s\n", t.ID, t.Speaker, oneLine(t.Text))
	}
	return text + "</transcript " + mark + ">"
}
