package pbx

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/pbx/commandwait"
)

func TestCommandWaiter_AnswerAgreesWithEffect(t *testing.T) {
	t.Parallel()
	ended, end := context.WithCancel(context.Background())
	end()
	late := commandwait.New(ended)
	var e *op.Error
	if _, err := late.Await(); !errors.As(err, &e) || e.Code != "action_timeout" {
		t.Errorf("who has waited long enough is told %v", err)
	}
	if replyTo(late).isAwaited() || replyTo(late).decide() {
		t.Error("a command takes effect of which was told that it has none")
	}
	soon := commandwait.New(ended)
	if !replyTo(soon).decide() {
		t.Fatal("a command does not take effect")
	}
	go replyTo(soon).ok() // the effect is written meanwhile
	if _, err := soon.Await(); err != nil {
		t.Errorf("who gave a command that has taken effect is told %v", err)
	}
	if r := (commandReply{}); !r.isAwaited() || !r.decide() {
		t.Error("what nobody waits for is not done")
	}
}
