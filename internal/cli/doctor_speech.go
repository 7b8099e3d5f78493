package cli

import (
	"fmt"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/identity/org"
	"soniq/internal/intelligence/engine/speech"
	"soniq/internal/intelligence/transcript"
)

// canSpeak returns the reason if the configured engine cannot speak a text, else "". It returns "" too if the engine does not tell.
func (d *doctor) canSpeak(s flow.Spoken) string {
	switch d.config.Voice {
	case "off":
		return speech.ErrNoVoice.Error()
	case "builtin":
		if err := speech.NewFlite(nil).CheckText(s.Text, s.Voice, s.Language); err != nil {
			return err.Error()
		}
	}
	return ""
}

// unspoken prints texts of flows that cannot be spoken: callers hear silence instead.
func (d *doctor) unspoken(all []flow.Unspoken) {
	for i, x := range all {
		if i == maxNamed {
			d.hint(fmt.Sprintf("and %d more texts of flows", len(all)-i), "POST /flows/validate lists those of a flow")
			return
		}
		d.hint(fmt.Sprintf("language_not_spoken: callers do not hear a text at node %s of flow %s (%s): %s", x.Fault.NodeID, x.FlowID, x.Org,
			x.Fault.Message), "give the prompt an audio_id or another lang, or set --voice to an engine that speaks the language")
	}
}

// notRecognised returns the reason if the configured engine recognises no speech, else "". It returns "" too if the engine does not tell.
func (d *doctor) notRecognised(string) string {
	if d.config.Transcriber == "off" {
		return transcript.ErrDisabled.Error()
	}
	return ""
}

// unredactable prints organisations whose recordings all fail, because numbers are to be removed from them and no words are recognised.
func (d *doctor) unredactable(all []org.UnredactableAudio) {
	for i, x := range all {
		if i == maxNamed {
			d.hint(fmt.Sprintf("and %d more organisations whose recordings fail", len(all)-i), "read redaction of GET /organization")
			return
		}
		d.hint(fmt.Sprintf("redaction_failed: recordings of %s (%s) fail, because numbers are to be removed from them: %s", x.Name, x.Org,
			x.Reason),
			"set --transcriber to an engine that knows the language, or redaction.audio of the organisation to false")
	}
}
