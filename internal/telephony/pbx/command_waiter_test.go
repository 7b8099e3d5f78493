package pbx

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/platform/op"
)

func TestCommandWaiter_AnswerAgreesWithEffect(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	late := newCommandWaiter(ended)
	var e *op.Error
	if _, err := late.await(); !errors.As(err, &e) || e.Code != "action_timeout" {
		t.Errorf("who has waited long enough is told %v", err)
	}
	if late.reply().isAwaited() || late.reply().decide() {
		t.Error("a command takes effect of which was told that it has none")
	}
	soon := newCommandWaiter(ended)
	if !soon.reply().decide() {
		t.Fatal("a command does not take effect")
	}
	go soon.reply().ok() // the effect is written meanwhile
	if _, err := soon.await(); err != nil {
		t.Errorf("who gave a command that has taken effect is told %v", err)
	}
	if r := (commandReply{}); !r.isAwaited() || !r.decide() {
		t.Error("what nobody waits for is not done")
	}
}
