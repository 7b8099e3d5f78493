package transcript_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"soniq/internal/intelligence/memory"
	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/db"
	"soniq/internal/platform/db/dbtest"
)

// oneLanguage is a recogniser that records the languages it is asked for, and knows one. It turns all speech into
// English text, as an English engine does.
type oneLanguage struct {
	*scriptedRecognizer
	knows string
	early bool // it knows its languages before it is used

	mu    sync.Mutex // guards asked
	asked []string
}

func (o *oneLanguage) Transcribe(ctx context.Context, c transcript.Clip) (transcript.Recognition, error) {
	o.mu.Lock()
	o.asked = append(o.asked, c.Language)
	o.mu.Unlock()
	if c.Language != o.knows {
		return transcript.Recognition{}, o.unsupported(c.Language)
	}
	return o.scriptedRecognizer.Transcribe(ctx, c)
}

func (o *oneLanguage) unsupported(language string) error {
	return &transcript.UnsupportedLanguage{Language: language,
		MissingDependency: transcript.MissingDependency{Problem: "unknown language " + language}}
}

func (o *oneLanguage) CheckLanguage(language string) error {
	if !o.early || language == o.knows {
		return nil
	}
	return o.unsupported(language)
}

func newOneLanguage(knows string, early bool) *oneLanguage {
	return &oneLanguage{scriptedRecognizer: &scriptedRecognizer{lines: slices.Clone(scriptLines)}, knows: knows, early: early}
}

// A call in a language that the engine does not know has no words, no note, no mood and no to-dos. Nothing is remembered of it. That holds
// whether the engine says so before or when it is used, live or from the recording.
//
// https://github.com/OpenWhispr/openwhispr/issues/260
func TestProcess_LanguageNotSupported(t *testing.T) {
	for name, c := range map[string]struct{ early, live bool }{"live": {false, true}, "recording": {false, false}, "known before": {true, true}} {
		t.Run(name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, d *db.DB) {
				h := newFixture(t, d, newOneLanguage("en", c.early), func(c *transcript.Config) { c.Languages = noAgents{"de-AT"} })
				h.playCall(t, "call_1", c.live)
				tr, sum := h.waitProcessed(t, "call_1")
				if tr.Status != transcript.Skipped || tr.SkippedReason == nil || *tr.SkippedReason != "language_not_supported" ||
					tr.Language != "de-AT" ||
					tr.Text != "" || len(tr.Segments) != 0 || tr.Error == nil {
					t.Errorf("transcript is %+v", tr)
				}
				if sum.Status != transcript.Skipped || sum.AISummary != "" || len(sum.ActionItems) != 0 || sum.Sentiment != nil {
					t.Errorf("summary is %+v", sum)
				}
				found, err := h.memory.Search(context.Background(), "org_a", memory.Query{Text: scriptLines[0]})
				if err != nil || len(found.Results) != 0 {
					t.Errorf("memory finds %+v, %v", found, err)
				}
			})
		})
	}
}

// The language of a call reaches the engine. A summariser that does not know it writes no note.
//
// https://github.com/OpenWhispr/openwhispr/issues/260
func TestProcess_LanguageReachesEngine(t *testing.T) {
	for name, live := range map[string]bool{"live": true, "recording": false} {
		t.Run(name, func(t *testing.T) {
			engine := newOneLanguage("de", true)
			h := newFixture(t, dbtest.SQLite(t), engine, func(c *transcript.Config) { c.Languages = noAgents{"de"} })
			h.playCall(t, "call_1", live)
			tr, sum := h.waitProcessed(t, "call_1")
			if tr.Status != transcript.Completed || tr.Language != "de" || len(tr.Segments) != 3 || slices.Contains(engine.asked, "en") {
				t.Errorf("transcript is %+v; the engine was asked for %v", tr, engine.asked)
			}
			if sum.Status != transcript.Skipped || sum.AISummary != "" {
				t.Errorf("English rules wrote %+v", sum)
			}
		})
	}
}
