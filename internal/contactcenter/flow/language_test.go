package flow_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/platform/db/dbtest"
	"soniq/internal/platform/op/optest"
)

// CheckSpoken implements flow.References: the voice speaks English only, and the organisation too.
func (h *fixture) CheckSpoken(_ context.Context, _ string, s flow.Spoken) (string, error) {
	return englishOnly(s.Language), nil
}

// CheckHeard implements flow.References: English is recognised only.
func (h *fixture) CheckHeard(_ context.Context, _, language string, _ bool) (string, error) {
	return englishOnly(language), nil
}

func englishOnly(language string) string {
	if language == "" || language == "en" {
		return ""
	}
	return "English only"
}

// If no engine speaks the language of a text or recognises that of the caller, each answer has a warning at the node. A prompt can have a
// language of its own.
func TestValidate_LanguageNotSpoken(t *testing.T) {
	t.Parallel()
	h := newFixture(t, dbtest.SQLite(t))
	const german = `{"name":"x","language":"de","entry":"say","nodes":[
		{"id":"say","type":"play","config":{"text":"Willkommen"},"next":{"done":"english"}},
		{"id":"english","type":"play","config":{"text":"Welcome","lang":"en"},"next":{"done":"sound"}},
		{"id":"sound","type":"play","config":{"audio_id":"aud_1"},"next":{"done":"menu"}},
		{"id":"menu","type":"menu","config":{"prompt":"Hallo","speech":true,"digits":{"1":"Vertrieb"}},"next":{"1":"digits","timeout":"digits","invalid":"digits"}},
		{"id":"digits","type":"collect","config":{"prompt":{"text":"Nummer"},"variable":"n"},"next":{"done":"agent","timeout":"agent"}},
		{"id":"agent","type":"ai_agent","config":{"instructions":"Hilf.","language":"de-CH"},"next":{"failed":"bye"}},
		{"id":"bye","type":"hangup"}]}`
	want := []string{"agent language_not_heard", "agent language_not_spoken", "digits language_not_spoken", "menu language_not_heard",
		"menu language_not_spoken", "say language_not_spoken"}
	v := h.do("POST", "/flows/validate", german).Want(200)
	if v.At("valid") != true || !slices.Equal(warningsOf(v), want) {
		t.Errorf("validate: %s", v.Bytes)
	}
	made := h.do("POST", "/flows", german).Want(201)
	if !slices.Equal(warningsOf(made), want) {
		t.Errorf("create: %s", made.Bytes)
	}
	if p := h.do("POST", "/flows/"+made.Text("id")+"/publish", `{}`).Want(200); !slices.Equal(warningsOf(p), want) {
		t.Errorf("publish: %s", p.Bytes)
	}
	wrong := `{"name":"x","entry":"say","nodes":[{"id":"say","type":"play","config":{"text":"Hi","lang":"not a tag"},"next":{"done":"agent"}},
		{"id":"agent","type":"ai_agent","config":{"instructions":"Help.","language":"?"},"next":{"failed":"bye"}},{"id":"bye","type":"hangup"}]}`
	if e := h.do("POST", "/flows/validate", wrong).Want(200); e.At("errors.0.code") != "invalid_language" || e.At("errors.1.code") != "invalid_language" {
		t.Errorf("no language tags: %s", e.Bytes)
	}
}

// warningsOf returns node and code of the warnings of an answer, sorted.
func warningsOf(a *optest.Answer) (all []string) {
	for i := 0; a.At(fmt.Sprintf("warnings.%d.code", i)) != nil; i++ {
		all = append(all, a.Text(fmt.Sprintf("warnings.%d.node_id", i))+" "+a.Text(fmt.Sprintf("warnings.%d.code", i)))
	}
	slices.Sort(all)
	return all
}
