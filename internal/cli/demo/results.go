package demo

import (
	"context"
	"fmt"
	"strings"
)

// question is a search for the call that has none of its words.
const question = "broadband sluggish at night"

// results prints the records of the call from the API.
func (d *demo) results(ctx context.Context, callID string) error {
	if err := d.showRecord(ctx, callID); err != nil {
		return err
	}
	if err := d.showTranscript(ctx, callID); err != nil {
		return err
	}
	return d.showMemory(ctx, callID)
}

func (d *demo) showRecord(ctx context.Context, callID string) error {
	var record map[string]any
	if err := d.api.do(ctx, "GET", "/cdr/"+callID, nil, &record); err != nil {
		return err
	}
	d.title("Call detail record (GET /cdr/%s)", callID)
	for _, name := range []string{"id", "direction", "status", "from_number", "to_number", "talk_duration_seconds", "end_reason",
		"recording_url"} {
		fmt.Fprintf(d.out, "  %-22s %v\n", name, record[name])
	}
	if record["recording_url"] == nil {
		return fmt.Errorf("the call has no recording")
	}
	return nil
}

func (d *demo) showTranscript(ctx context.Context, callID string) error {
	var t struct {
		Status        string  `json:"status"`
		SkippedReason *string `json:"skipped_reason"`
		Error         any     `json:"error"`
		Engine        struct{ Name, Model string }
		Segments      []struct {
			Speaker string
			StartMS int `json:"start_ms"`
			Text    string
		}
	}
	if err := d.api.do(ctx, "GET", "/calls/"+callID+"/transcript", nil, &t); err != nil {
		return err
	}
	if t.Status != "completed" {
		d.title("Transcript: %s", t.Status)
		d.noTranscript(t.SkippedReason)
		return nil
	}
	d.title("Transcript (%s %s, recognised during the call)", t.Engine.Name, t.Engine.Model)
	for _, s := range t.Segments {
		fmt.Fprintf(d.out, "  %5.1fs  %-7s %s\n", float64(s.StartMS)/1000, s.Speaker, s.Text)
	}
	return d.showSummary(ctx, callID)
}

// noTranscript prints the reason for a missing transcript, and the remedy.
func (d *demo) noTranscript(reason *string) {
	switch text(reason) {
	case "disabled":
		fmt.Fprintln(d.out, "  transcription is switched off by --transcriber off")
	case "no_engine":
		fmt.Fprintln(d.out, "  no speech engine was found: soniq speech-model install fetches one")
	default:
		fmt.Fprintf(d.out, "  %s; soniq doctor tells more\n", text(reason))
	}
}

func (d *demo) showSummary(ctx context.Context, callID string) error {
	var s struct {
		Summary     string   `json:"ai_summary"`
		Topics      []string `json:"topics"`
		ActionItems []struct {
			Text  string
			Owner *string
			Due   *string
		} `json:"action_items"`
		Sentiment struct{ Overall, Caller, Agent string }
		Engine    struct{ Name string }
	}
	if err := d.api.do(ctx, "GET", "/calls/"+callID+"/summary", nil, &s); err != nil {
		return err
	}
	d.title("Summary (%s)", s.Engine.Name)
	fmt.Fprintf(d.out, "  %s\n  topics: %s; mood of the caller: %s\n", s.Summary, strings.Join(s.Topics, ", "), s.Sentiment.Caller)
	for _, a := range s.ActionItems {
		fmt.Fprintf(d.out, "  to do (%s%s): %s\n", text(a.Owner), prefixed(", ", a.Due), a.Text)
	}
	return nil
}

func (d *demo) showMemory(ctx context.Context, callID string) error {
	var m struct {
		Results []struct {
			CallID *string `json:"call_id"`
			Text   string
			Score  float64
		}
		TookMS float64 `json:"took_ms"`
	}
	if err := d.api.do(ctx, "POST", "/memory/search", map[string]any{"query": question}, &m); err != nil {
		return err
	}
	d.title("Memory (POST /memory/search %q, %v ms)", question, m.TookMS)
	found := false
	for _, r := range m.Results {
		found = found || r.CallID != nil && *r.CallID == callID
		fmt.Fprintf(d.out, "  %.2f  %s\n", r.Score, shorten(r.Text, 100))
	}
	if !found && d.transcribes() {
		return fmt.Errorf("the memory search did not find the call")
	}
	if !found {
		fmt.Fprintln(d.out, "  nothing: without a transcript there are no words to remember")
	}
	fmt.Fprintln(d.out)
	return nil
}

// transcribes reports whether there is a speech engine. Without one the call is not in the memory.
func (d *demo) transcribes() bool { return d.server.Platform.CanTranscribe() }

func (d *demo) title(format string, args ...any) {
	fmt.Fprintf(d.out, "\n%s%s%s\n", d.tint("1"), fmt.Sprintf(format, args...), d.tint("0"))
}

func text(s *string) string {
	if s == nil {
		return "nobody named"
	}
	return *s
}

func prefixed(prefix string, s *string) string {
	if s == nil {
		return ""
	}
	return prefix + *s
}

func shorten(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}

// printNextSteps prints commands to try while the demo runs.
func (d *demo) printNextSteps(key, callID, link string) {
	base := d.server.BaseURL()
	d.title("It stays up until you press Ctrl-C")
	fmt.Fprintf(d.out, `  Web console     %[5]s
                  choose a password there, then open %[1]s/console/calls
                  Press Enter here: Sam calls Dana again, and the console shows the call while it runs
  API reference   %[1]s/docs
  your key        %[2]s

  curl -H 'Authorization: Bearer %[2]s' %[1]s/api/v1/calls/%[3]s
  curl -H 'Authorization: Bearer %[2]s' '%[1]s/api/v1/calls/%[3]s/transcript?format=text'
  curl -H 'Authorization: Bearer %[2]s' -L '%[1]s/api/v1/calls/%[3]s/recording?format=audio' -o call.wav
  curl -H 'Authorization: Bearer %[2]s' -H 'Content-Type: application/json' \
       -d '{"query":"wants a call back"}' %[1]s/api/v1/memory/search

  Register a softphone of your own: POST /users gives its credentials; the registrar is %[4]s.
`, base, key, callID, d.server.SIPAddr(), link)
}
