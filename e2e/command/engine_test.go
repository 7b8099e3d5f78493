package command_test

import (
	"strings"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// notDelayed is half of the time that call.ended waits for a summary that does not come.
const notDelayed = 15 * time.Second

// TestRecognition_MissingEngine runs a server that cannot recognise speech. Calls, records and recordings work as
// usual, and call.ended is not delayed. The transcript names the missing program and the command that installs it.
func TestRecognition_MissingEngine(t *testing.T) {
	t.Parallel()
	name, folder, _ := strings.Cut(withoutEngine(t), "=")
	rig.Each(t, rig.Options{Env: map[string]string{name: folder}, Flags: []string{"--transcriber",
		"pocketsphinx"}}, func(t *testing.T, s *rig.Server) {
		o := newOffice(t, s)
		o.voice = speech(t)
		caller, callee := o.call(3 * time.Second)
		caller.Wait()
		callee.Wait()
		hungUp := time.Now()
		ended := o.hooks.Wait("call.ended", 20*time.Second, nil)
		if took := time.Since(hungUp); took > notDelayed {
			t.Errorf("call.ended came %s after the end", took)
		}
		call := ended.Data["call_id"].(string)
		if ended.Data["enriched"] != true || ended.Data["recording_url"] == nil || ended.Data["ai_summary"] != nil {
			t.Errorf("call.ended: %s", ended.Body)
		}
		told := o.hooks.Wait("call.transcription", 20*time.Second, nil)
		if told.Data["status"] != "skipped" || told.Data["summary_status"] != "skipped" {
			t.Errorf("call.transcription: %s", told.Body)
		}
		var transcript struct {
			Status string `json:"status"`
			Reason string `json:"skipped_reason"`
			Error  struct{ Code, Message string }
		}
		o.Want(200, "GET", "/calls/"+call+"/transcript", nil, &transcript)
		if transcript.Status != "skipped" || transcript.Reason != "no_engine" {
			t.Errorf("transcript: %+v", transcript)
		}
		says(t, transcript.Error.Message, "libpocketsphinx", "soniq speech-model install, or apt-get install libpocketsphinx3 pocketsphinx-en-us")
		rig.Until(t, "memory knows the call", 20*time.Second, func() bool {
			var memory struct {
				Total int `json:"calls_total"`
			}
			o.Want(200, "GET", "/memory/callers/"+o.ada.Extension, nil, &memory)
			return memory.Total == 1
		})
	})
}
