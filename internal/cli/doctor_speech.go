package cli

import (
	"fmt"

	"soniq/internal/contactcenter/flow"
	"soniq/internal/intelligence/engine/speech"
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
