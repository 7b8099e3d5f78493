package transcript

import "testing"

func TestTalkStatsOf(t *testing.T) {
	t.Parallel()
	s := func(who Speaker, from, to int, text string) Segment {
		return Segment{Speaker: who, StartMS: from, EndMS: to, Text: text}
	}
	got := talkStatsOf([]Segment{
		s(Agent, 1000, 3000, "How can I help you?"),
		s(Caller, 5000, 15000, "my line is down since this morning and nobody knows why it is so"),
		s(Agent, 14000, 18000, "I see it now. Is the lamp red?"), // the caller stops a second later
		s(Agent, 19000, 20000, "Hello?"),
		s(Caller, 26000, 27000, "is it all right"),
	})
	want := TalkStats{SilenceSeconds: 9, LongestSilenceSeconds: 6, OverlapSeconds: 1,
		Caller: SideStats{TalkSeconds: 11, Share: 0.611, LongestTurnSeconds: 10, WordsPerMinute: 98, Questions: 1, LongestAnswerSeconds: 6},
		Agent:  SideStats{TalkSeconds: 7, Share: 0.389, LongestTurnSeconds: 5, WordsPerMinute: 120, Questions: 3, Interruptions: 1}}
	if got == nil || *got != want {
		t.Errorf("counted %+v, want %+v", got, want)
	}
	if x := talkStatsOf([]Segment{s(Other, 0, 1000, "both sides in one channel")}); x != nil {
		t.Errorf("sides that are not known apart have %+v", x)
	}
}
