package pbx

import (
	"errors"
	"testing"
	"time"

	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// consultedCall returns a call after a warm transfer to the third leg with the given status.
func consultedCall(status, mode string) (c *liveCall, target *leg) {
	c, legs := connectedCall("caller", "agent", "agent")
	c.answered = time.Now()
	c.transfer = &transfer{c: c, transferee: legs[0], transferor: legs[1], target: legs[2],
		state: call.TransferState{Mode: mode, Status: status}}
	return c, legs[2]
}

func TestTransfer_CommandsIdempotent(t *testing.T) {
	t.Parallel()
	for _, x := range []struct {
		name, status, mode string
		all                bool // all three are in the call
		command            call.Command
		ok                 bool
	}{
		{"complete again", "completed", "warm", false, call.CompleteTransfer{}, true},
		{"a conference again", "completed", "warm", true, call.CompleteTransfer{Conference: true}, true},
		{"a conference, of who has left", "completed", "warm", false, call.CompleteTransfer{Conference: true}, false},
		{"complete, of a conference", "completed", "warm", true, call.CompleteTransfer{}, false},
		{"complete, though nobody was asked", "completed", "blind", false, call.CompleteTransfer{}, false},
		{"complete, though it was canceled", "canceled", "warm", false, call.CompleteTransfer{}, false},
		{"cancel again", "canceled", "warm", false, call.CancelTransfer{}, true},
		{"cancel, though it is complete", "completed", "warm", false, call.CancelTransfer{}, false},
		{"cancel, though it has failed", "failed", "warm", false, call.CancelTransfer{}, false},
	} {
		c, target := consultedCall(x.status, x.mode)
		if x.all {
			c.extra = []*leg{target}
		}
		err, answered := error(nil), 0
		c.dispatch(t.Context(), x.command, commandReply{to: func(_ call.Result, e error) { err, answered = e, answered+1 }})
		var e *op.Error
		refused := errors.As(err, &e) && e.Code == "invalid_state"
		if answered != 1 || x.ok && err != nil || !x.ok && !refused {
			t.Errorf("%s: answered %d times, %v", x.name, answered, err)
		}
		if c.transfer.state.Status != x.status {
			t.Errorf("%s: the transfer is %s now", x.name, c.transfer.state.Status)
		}
	}
}
