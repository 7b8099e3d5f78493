package routing

import (
	"slices"
	"time"

	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// What several destinations need for a caller.

// SpeechTimeout limits the synthesis, or the reading from disk, of a prompt.
const SpeechTimeout = 15 * time.Second

// WriteTimeout limits a write on behalf of a caller, such as that of a flow step.
const WriteTimeout = 10 * time.Second

// OwnNumber returns the number of the organisation that a caller dialled. It is the caller ID of a callback. It
// returns "" if the caller dialled none.
func OwnNumber(i pbx.Info) string {
	if i.NumberID == "" {
		return ""
	}
	return i.To
}

// CallbackNumber returns the number at which a caller can be called back; "" if there is none.
func CallbackNumber(i pbx.Info) string {
	if i.From == call.Anonymous || slices.Contains([]string{"", "anonymous"}, i.From) {
		return ""
	}
	return i.From
}
