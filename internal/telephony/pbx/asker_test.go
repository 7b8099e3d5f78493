package pbx

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/platform/op"
)

func TestWhatIsAnsweredIsWhatTheCallDoes(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	late := newAsker(ended)
	var e *op.Error
	if _, err := late.await(); !errors.As(err, &e) || e.Code != "action_timeout" {
		t.Errorf("who has waited long enough is told %v", err)
	}
	if late.reply().wanted() || late.reply().settle() {
		t.Error("a command takes effect of which was told that it has none")
	}
	soon := newAsker(ended)
	if !soon.reply().settle() {
		t.Fatal("a command does not take effect")
	}
	go soon.reply().ok() // the effect is written meanwhile
	if _, err := soon.await(); err != nil {
		t.Errorf("who gave a command that has taken effect is told %v", err)
	}
	if r := (reply{}); !r.wanted() || !r.settle() {
		t.Error("what nobody waits for is not done")
	}
}
