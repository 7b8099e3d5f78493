package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wordColumns are the columns for words of people, with "file: text" of what removes numbers before they are written (docs/redaction.md),
// or with the reason why they are kept.
var wordColumns = map[string]string{
	"transcripts.text":               "intelligence/transcript/known_utterances.go: redactSegments(policy, heard)",
	"transcripts.segments":           "intelligence/transcript/known_utterances.go: redactSegments(policy, withUtterances(",
	"transcripts.redactions":         "kept: kinds and times only",
	"recordings.redactions":          "kept: kinds and times only",
	"summaries.note":                 "intelligence/transcript/process.go: Turns: turnsOf(t.Segments)",
	"calls.ai_summary":               "intelligence/transcript/process.go: s.cfg.Calls.SetSummary(ctx, tx, org, t.CallID, t.ID, n.Summary",
	"memory_calls.summary":           "intelligence/transcript/process.go: Summary: n.Summary",
	"memory_items.text":              "intelligence/transcript/process.go: range t.Segments",
	"memory_facts.text":              "intelligence/memory/text_entry.go: policy.Text(r.Text)",
	"assistant_words.said":           "intelligence/voiceagent/utterance_log.go: d.stream.Push(",
	"assistant_turns.said":           "intelligence/voiceagent/turn.go: policy.Isolated(x.Said)",
	"assistant_turns.heard":          "intelligence/voiceagent/turn.go: policy.Isolated(x.Heard)",
	"voicemails.text":                "intelligence/transcript/voicemail.go: redactSegments(policy, segments)",
	"voicemails.ai_summary":          "intelligence/transcript/voicemail.go: redactSegments(policy, segments)",
	"notes.body":                     "telephony/call/note.go: policy.Text(n.body)",
	"contact_notes.body":             "customer/contact/notes.go: policy.Text(",
	"events.body":                    "intelligence/transcript/redaction.go: s.streamOf(org, e.CallID, policy).push(e)",
	"webhook_deliveries.body":        "kept: a copy of events.body",
	"webhook_attempts.response_body": "kept: what the customer's server answered",
	"messages.body":                  "messaging/sms/receive.go: m.Contact, m.Body = who, policy.Text(in.Body)",
	"conversations.last_message":     "messaging/sms/redaction.go: db.AsJSON(m.asLast())",
	"sms_incoming_parts.body":        "kept: until the other parts of the message are received",
	"audio.text":                     "kept: a prompt that the organisation wrote",
	"idempotency.body_hash":          "kept: a digest",
}

var (
	createTable = regexp.MustCompile(`^CREATE TABLE (\w+)`)
	wordColumn  = regexp.MustCompile(`(?:^\t|, )(\w*(?:text|body|said|heard|note|summary|last_message|segments|words|redactions)\w*) TEXT`)
	spaces      = regexp.MustCompile(` +`)
)

// TestRedaction_EveryWriter fails for a column for words that is not declared, and for one whose writer no longer removes numbers. That
// nothing of a call reaches any table is tested with a database in package transcript.
func TestRedaction_EveryWriter(t *testing.T) {
	schema, err := os.ReadFile(filepath.Join("platform", "db", "schema", "sqlite.sql"))
	if err != nil {
		t.Fatal(err)
	}
	found, table := map[string]bool{}, ""
	for line := range strings.SplitSeq(string(schema), "\n") {
		if m := createTable.FindStringSubmatch(line); m != nil {
			table = m[1]
		}
		for _, m := range wordColumn.FindAllStringSubmatch(spaces.ReplaceAllString(line, " "), -1) {
			found[table+"."+m[1]] = true
		}
	}
	for column := range found {
		if wordColumns[column] == "" {
			t.Errorf("%s may have words of people: declare what removes numbers from it in wordColumns", column)
		}
	}
	for column, by := range wordColumns {
		if !found[column] {
			t.Errorf("the schema has no column %s", column)
		}
		file, text, _ := strings.Cut(by, ": ")
		if file == "kept" {
			continue
		}
		if source, err := os.ReadFile(filepath.FromSlash(file)); err != nil || !strings.Contains(string(source), text) {
			t.Errorf("%s: %s has no %q (%v)", column, file, text, err)
		}
	}
}
