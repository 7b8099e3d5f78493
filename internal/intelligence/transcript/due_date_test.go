package transcript

import (
	"testing"
	"time"
)

func TestDueAt(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("here", 2*3600)
	from := time.Date(2026, 3, 4, 10, 15, 0, 0, zone) // a Wednesday
	for words, want := range map[string]string{
		"today": "2026-03-04 23:59:59", "by Thursday": "2026-03-05 23:59:59", "on Wednesday": "2026-03-11 23:59:59",
		"tomorrow at five": "2026-03-05 17:00:00", "tomorrow at 9:30": "2026-03-05 09:30:00", "within the hour": "2026-03-04 11:15:00",
		"in ten minutes": "2026-03-04 10:25:00", "within two days": "2026-03-06 23:59:59", "in a week": "2026-03-11 23:59:59",
		"by Thursday at two": "2026-03-05 14:00:00", "before noon": "2026-03-04 12:00:00", "next week": "2026-03-15 23:59:59",
		"this week": "2026-03-08 23:59:59", "by the end of the month": "2026-03-31 23:59:59", "2026-04-01": "2026-04-01 23:59:59",
		"at nine in the morning": "2026-03-05 09:00:00", "by 3 p.m.": "2026-03-04 15:00:00", "in twenty five minutes": "2026-03-04 10:40:00",
		"this afternoon": "2026-03-04 23:59:59", "Tuesday next week": "2026-03-10 23:59:59", "within three business days": "2026-03-09 23:59:59",
		"in two working days": "2026-03-06 23:59:59", "in half an hour": "2026-03-04 10:45:00", "within half a day": "2026-03-04 22:15:00",
		"next month": "2026-04-30 23:59:59", "right away": "2026-03-04 23:59:59",
		"soon": "", "": "", "when it is fixed": "", "at the depot": "", "in the mail": "", "by courier": "",
	} {
		at, ok := dueAt(words, from)
		if got := at.Format(time.DateTime); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %s, %v; want %s", words, got, ok, want)
		}
	}
}

func FuzzDueAt(f *testing.F) {
	f.Add("tomorrow at 25:99")
	f.Fuzz(func(t *testing.T, words string) {
		from := time.Date(2026, 3, 4, 10, 15, 0, 0, time.UTC)
		if at, ok := dueAt(words, from); ok && at.Year() > 9999 {
			t.Errorf("%q is %v", words, at)
		}
	})
}

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
