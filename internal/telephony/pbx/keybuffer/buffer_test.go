package keybuffer_test

import (
	"testing"

	"soniq/internal/telephony/pbx/keybuffer"
)

// readable reports whether a receiver of the channel would be woken.
func readable(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// https://github.com/asterisk/asterisk/issues/543
func TestReadable_WakesEveryReceiver(t *testing.T) {
	t.Parallel()
	var k keybuffer.Buffer
	announcement, script := k.Readable(), k.Readable()
	k.Press('1')
	if !readable(announcement) || !readable(script) || !readable(k.Readable()) {
		t.Error("a receiver was not woken by the digit")
	}
	if d, ok := k.Take(); !ok || d != '1' {
		t.Errorf("took %q, %v", d, ok)
	}
	if readable(k.Readable()) {
		t.Error("a receiver is woken although the digit was taken")
	}
}

func TestReadable_WhileDigitsRemain(t *testing.T) {
	t.Parallel()
	var k keybuffer.Buffer
	k.Press('1')
	k.Press('2')
	k.Take()
	if !readable(k.Readable()) {
		t.Error("the second digit wakes nobody")
	}
	k.Discard()
	waiting := k.Readable()
	if readable(waiting) || k.Any() {
		t.Error("discarded digits are readable")
	}
	k.Press('3')
	if !readable(waiting) {
		t.Error("a digit after Discard wakes nobody")
	}
}
