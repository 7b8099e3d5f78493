package sandbox

// VoiceTestNumber returns the last two digits of a test number for calls. ok is false for other numbers.
func VoiceTestNumber(e164 string) (which string, ok bool) {
	which = testDigits(e164)
	return which, which >= "01" && which <= "10"
}

// VoiceNumber returns the test number with the last two digits.
func VoiceNumber(which string) string { return prefix + which }

// DigitsKey is the key of a call's metadata with the digits that +12025550108 sends.
const DigitsKey = "digits"
