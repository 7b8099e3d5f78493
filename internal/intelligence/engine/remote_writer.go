package engine

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"soniq/internal/intelligence/transcript"
)

// maxTranscriptBytes limits the transcript in one request; longer ones are summarised in parts first.
const maxPrompt = 24000

// openAISummarizer writes notes with a language model on an OpenAI-compatible server. It validates the model's answer
// and sends an invalid one back once for repair. If that fails too, the builtin rules write the note.
type remoteWriter struct {
	server  *server
	model   string
	builtin *Rules
	form    atomic.Int32 // index of the first response format that may work
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// Summarise writes the note of a conversation. It returns an error only for transient errors of the server and if the
// context ends, so that the job is retried.
func (r *remoteWriter) Summarise(ctx context.Context, c transcript.Conversation) (transcript.Note, error) {
	d, err := r.draft(ctx, c.Turns)
	if ctx.Err() != nil {
		return transcript.Note{}, ctx.Err()
	}
	if err != nil {
		var refusal *refused
		if errors.As(err, &refusal) && refusal.passing() {
			return transcript.Note{}, fmt.Errorf("write note: %w", err) // the job is retried later
		}
		return r.builtin.Summarise(ctx, c)
	}
	n := d.note()
	n.Engine = transcript.Engine{Name: "openai-compatible", Model: r.model, Version: r.server.host}
	return n, nil
}

// draft summarises the turns in one request. If they are too long, it summarises parts and then the summaries of the
// parts.
func (r *remoteWriter) draft(ctx context.Context, turns []transcript.Turn) (draft, error) {
	parts := inParts(turns, maxPrompt)
	if len(parts) == 1 {
		return r.ask(ctx, turns, quote(turns))
	}
	var digest []transcript.Turn
	var all draft
	for _, part := range parts {
		d, err := r.ask(ctx, part, quote(part))
		if err != nil {
			return d, err
		}
		all.ActionItems = append(all.ActionItems, d.ActionItems...)
		all.Flags, all.Entities = append(all.Flags, d.Flags...), append(all.Entities, d.Entities...)
		digest = append(digest, transcript.Turn{ID: part[0].ID, Speaker: transcript.Other, Text: d.Summary})
	}
	d, err := r.ask(ctx, turns, "These are summaries of consecutive parts of one call.\n"+quote(digest))
	d.ActionItems, d.Flags, d.Entities = all.ActionItems, all.Flags, all.Entities[:min(len(all.Entities), maxEntities)]
	return d, err
}

// splitTurns splits turns into parts of at most limit bytes; a turn longer than a part is cut.
func inParts(turns []transcript.Turn, limit int) [][]transcript.Turn {
	parts := [][]transcript.Turn{nil}
	size := 0
	for _, t := range turns {
		t.Text = cut(t.Text, limit)
		if n := len(t.Text) + 20; size+n > limit && size > 0 {
			parts, size = append(parts, nil), 0
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], t)
		size += len(t.Text) + 20
	}
	return parts
}

// ask sends one conversation and requests one repair of an invalid answer.
func (r *remoteWriter) ask(ctx context.Context, turns []transcript.Turn, quoted string) (draft, error) {
	messages := []message{{"system", instructions}, {"user", quoted}}
	text, err := r.complete(ctx, messages)
	if err != nil {
		return draft{}, err
	}
	d, wrong := readDraft(text, turns)
	if wrong == nil {
		return d, nil
	}
	messages = append(messages, message{"assistant", cut(text, 4000)},
		message{"user", "That is not valid: " + wrong.Error() + ". Answer again with the JSON object only."})
	if text, err = r.complete(ctx, messages); err != nil {
		return draft{}, err
	}
	return readDraft(text, turns)
}

// complete requests a completion in the strictest response format that the server supports.
func (r *remoteWriter) complete(ctx context.Context, messages []message) (string, error) {
	var err error
	for form := int(r.form.Load()); form < len(answerForms); form++ {
		var text string
		if text, err = r.completion(ctx, messages, answerForms[form]); err == nil {
			r.form.Store(int32(form))
			return text, nil
		}
		if !dialect(err) {
			break
		}
	}
	return "", err
}

func (r *remoteWriter) completion(ctx context.Context, messages []message, form json.RawMessage) (string, error) {
	request := struct {
		Model       string          `json:"model"`
		Messages    []message       `json:"messages"`
		Temperature float64         `json:"temperature"`
		Format      json.RawMessage `json:"response_format,omitempty"`
	}{r.model, messages, 0, form}
	var answer struct {
		Choices []struct {
			Message      struct{ Content string }
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := r.server.postJSON(ctx, request, &answer); err != nil {
		return "", err
	}
	if len(answer.Choices) == 0 || answer.Choices[0].Message.Content == "" {
		return "", errors.New("the model answered nothing")
	}
	return answer.Choices[0].Message.Content, nil
}

// quoteTurns puts turns between marks with a random text, which the speakers cannot guess.
func quote(turns []transcript.Turn) string {
	mark := rand.Text()
	text := "<transcript " + mark + ">\n"
	for _, t := range turns {
		text += fmt.Sprintf("[%d] %s: %s\n", t.ID, t.Speaker, oneLine(t.Text))
	}
	return text + "</transcript " + mark + ">"
}
