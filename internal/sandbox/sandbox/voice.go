package sandbox

// VoiceTestNumber returns the last two digits of a test number for calls. ok is false for other numbers.
func Voice(e164 string) (which string, ok bool) {
	which = test(e164)
	return which, which >= "01" && which <= "10"
}

// VoiceNumber returns the test number with these last two digits.
func VoiceNumber(which string) string { return prefix + which }

// DigitsKey is the key in a call's metadata for the digits that +12025550108 sends.
const DigitsKey = "digits"
