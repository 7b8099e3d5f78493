package keybuffer_test

import (
	"testing"
	"time"

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
	k.Press('1', time.Time{})
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
	k.Press('1', time.Time{})
	k.Press('2', time.Time{})
	k.Take()
	if !readable(k.Readable()) {
		t.Error("the second digit wakes nobody")
	}
	k.Discard()
	waiting := k.Readable()
	if readable(waiting) || k.Any() {
		t.Error("discarded digits are readable")
	}
	k.Press('3', time.Time{})
	if !readable(waiting) {
		t.Error("a digit after Discard wakes nobody")
	}
}

// https://github.com/rapidpro/rapidpro/issues/134
func TestDropNext_KeyThatEndsCompleteInput(t *testing.T) {
	t.Parallel()
	at := time.Unix(1e9, 0)
	for name, c := range map[string]struct {
		ahead, later string // pressed before and after the input was complete
		after        time.Duration
		want         string
	}{
		"pressed at once":      {"", "#", time.Second, ""},
		"pressed ahead":        {"#7", "", 0, "7"},
		"once":                 {"", "##", time.Second, "#"},
		"pressed ahead twice":  {"##", "", 0, "#"},
		"pressed later":        {"", "#", 3 * time.Second, "#"},
		"another key first":    {"", "1#", time.Second, "1#"},
		"another key is ahead": {"1", "#", time.Second, "1#"},
	} {
		var k keybuffer.Buffer
		for _, d := range c.ahead {
			k.Press(d, at)
		}
		k.DropNext('#', at.Add(2*time.Second))
		waiting := k.Readable()
		for _, d := range c.later {
			k.Press(d, at.Add(c.after))
		}
		if readable(waiting) != (c.want != "") {
			t.Errorf("%s: a receiver was woken: %v", name, readable(waiting))
		}
		got := ""
		for d, ok := k.Take(); ok; d, ok = k.Take() {
			got += string(d)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
