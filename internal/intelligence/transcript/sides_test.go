package transcript

import (
	"testing"
	"time"
)

// TestSides_FollowDirection proves that the left channel has who called: the agent in outbound calls, the caller in others.
//
// https://github.com/Vexa-ai/vexa/issues/1223
// https://github.com/aws-samples/amazon-transcribe-post-call-analytics/issues/339
// https://github.com/aws-samples/amazon-transcribe-post-call-analytics/issues/284
func TestSides_FollowDirection(t *testing.T) {
	t.Parallel()
	for outbound, left := range map[bool]Speaker{false: Caller, true: Agent} {
		f := Format{Channels: 2, Outbound: outbound}
		if got := f.speakerOf(0); got != left || f.speakerOf(1) == left {
			t.Errorf("outbound %v: left %s, right %s", outbound, got, f.speakerOf(1))
		}
		now := time.Now()
		caller := KnownUtterance{Text: "Hello.", Began: now, Ended: now}.segment(now, outbound)
		agent := KnownUtterance{Text: "Hello.", Began: now, Ended: now, ByAgent: true}.segment(now, outbound)
		if f.speakerOf(caller.Channel) != Caller || f.speakerOf(agent.Channel) != Agent || caller.Speaker != Caller || agent.Speaker != AI {
			t.Errorf("outbound %v: caller %+v, voice agent %+v", outbound, caller, agent)
		}
	}
	if one := (Format{Channels: 1, Outbound: true}); one.speakerOf(0) != Other {
		t.Errorf("the only channel is %s", one.speakerOf(0))
	}
}
