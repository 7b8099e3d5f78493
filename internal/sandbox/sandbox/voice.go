package sandbox

// Voice is the last two digits of a test number that is called; ok is false for other numbers.
func Voice(e164 string) (which string, ok bool) {
	which = test(e164)
	return which, which >= "01" && which <= "10"
}

// VoiceNumber is the test number with the last two digits.
func VoiceNumber(which string) string { return prefix + which }

// DigitsKey is the member of a call's metadata that names the digits +12025550108 presses.
const DigitsKey = "digits"
