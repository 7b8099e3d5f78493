package speech

import (
	"slices"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// TestOutbound_SidesOfTranscript lets a user call a customer outside. The words of the user are the agent's, those of the customer the
// caller's: in the transcript, in the audio of one side, and in the summary, whose tasks and flags depend on it.
//
// https://github.com/Vexa-ai/vexa/issues/1223
// https://github.com/aws-samples/amazon-transcribe-post-call-analytics/issues/339
// https://github.com/aws-samples/amazon-transcribe-post-call-analytics/issues/284
func TestOutbound_SidesOfTranscript(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 75*time.Second, "a whole call is spoken")
	o := fixture.NewOrg(rig.Start(t, rig.Options{}))
	const number = "+12025550123"
	talk := dialogue{Turns: []struct{ Speaker, Text string }{
		{"agent", "Good morning, this is Ada from the garden company."},
		{"caller", "Good morning. Our mower is broken and the engine is very loud."},
		{"agent", "I will send you a new engine tomorrow."},
		{"caller", "Thank you. Please do not call me again."},
	}}
	customer, agent := talk.audio(t)
	rest := make([]int16, 60*8000)
	saysCustomer, _ := fixture.WriteAudio(t, "customer", append(customer, rest...))
	saysAgent, _ := fixture.WriteAudio(t, "agent", append(agent, rest...))
	outside := o.Server.Phone(rig.Login{Username: number, Domain: "carrier.example"},
		rig.PhoneOptions{Say: saysCustomer, Auto: true, Unregister: true})
	ada := o.AddUser("Ada")
	o.AddCarrier(ada.ID, map[string]any{"host": "127.0.0.1", "port": outside.Port})
	phone := o.Server.Phone(ada.SIP, rig.PhoneOptions{Say: saysAgent})
	phone.Dial(number)
	outside.Listen(fixture.SampleDuration(len(agent)))
	phone.Do("hangup", "")
	outside.Wait("CALL_CLOSED", "")
	id := o.CDR(number).CallID
	o.Webhook.Wait("call.transcription", 6*time.Minute, func(e rig.Event) bool { return e.Data["call_id"] == id })
	r := o.CDR(number)

	heard := o.TranscriptBy("sherpa-onnx", r)
	for side, word := range map[string]string{"agent": "garden", "caller": "mower"} {
		if !strings.Contains(strings.ToLower(heard[side]), word) {
			t.Errorf("the %s says %q; the transcript is %q", side, word, heard)
		}
	}
	var note struct {
		ActionItems []struct{ Text, Owner string } `json:"action_items"`
		Flags       []struct{ Kind string }
		Summary     string `json:"ai_summary"`
	}
	o.Want(200, "GET", "/calls/"+r.CallID+"/summary", nil, &note)
	t.Logf("note %+v", note)
	if len(note.ActionItems) == 0 || note.ActionItems[0].Owner != "agent" {
		t.Errorf("tasks %+v, want one of the agent", note.ActionItems)
	}
	if !slices.ContainsFunc(note.Flags, func(f struct{ Kind string }) bool { return f.Kind == "do_not_contact" }) {
		t.Errorf("flags %+v, want do_not_contact", note.Flags)
	}
	for side, said := range map[string][]int16{"agent": agent, "caller": customer} {
		audio := o.RecordingAudio(o.Recording(r.CallID).ID, "?channel="+side)
		if alike, at := fixture.Similarity(audio.PCM[0], said[:10*8000]); alike < 0.7 {
			t.Errorf("the audio of the %s is like theirs by %.2f, at %s", side, alike, at)
		}
	}
}
