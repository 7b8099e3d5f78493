package timephrase

import (
	"testing"
	"time"
)

// said is a Wednesday.
var said = time.Date(2026, 3, 4, 10, 15, 0, 0, time.FixedZone("here", 2*3600))

// https://github.com/abritinthebay/datejs/issues/47
func TestResolve(t *testing.T) {
	t.Parallel()
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

		"the day after tomorrow": "2026-03-06 23:59:59", "the day after tomorrow at noon": "2026-03-06 12:00:00", "two days after tomorrow": "2026-03-07 23:59:59",
		"tomorrow at ten fifteen": "2026-03-05 10:15:00", "tomorrow at ten oh five": "2026-03-05 10:05:00", "at 3:30 p.m.": "2026-03-04 15:30:00",
		"at 3:30pm": "2026-03-04 15:30:00", "at 3.30 pm": "2026-03-04 15:30:00", "on Monday at nine": "2026-03-09 09:00:00", "at nine on Monday": "2026-03-09 09:00:00",
		"at half past four": "2026-03-04 16:30:00", "half past four tomorrow": "2026-03-05 16:30:00", "at half four": "2026-03-04 16:30:00",
		"at quarter to five": "2026-03-04 16:45:00", "at a quarter past one": "2026-03-04 13:15:00", "at ten to one": "2026-03-04 12:50:00",
		"at twenty past three": "2026-03-04 15:20:00", "in an hour": "2026-03-04 11:15:00", "in an hour and a half": "2026-03-04 11:45:00",
		"in two and a half hours": "2026-03-04 12:45:00", "in a quarter of an hour": "2026-03-04 10:30:00", "in forty-five minutes": "2026-03-04 11:00:00",
		"in an hour or two": "2026-03-04 12:15:00", "in ten to fifteen minutes": "2026-03-04 10:30:00", "in two hours' time": "2026-03-04 12:15:00",
		"by end of next week": "2026-03-15 23:59:59", "by the end of next week": "2026-03-15 23:59:59", "by the end of the week": "2026-03-08 23:59:59",
		"by close of business": "2026-03-04 23:59:59", "by the end of Thursday": "2026-03-05 23:59:59", "the week after next": "2026-03-22 23:59:59",
		"by the end of next month": "2026-04-30 23:59:59", "by the end of April": "2026-04-30 23:59:59", "next Tuesday at 11": "2026-03-10 11:00:00",
		"tonight at nine": "2026-03-04 21:00:00", "tonight": "2026-03-04 23:59:59", "tomorrow morning at seven": "2026-03-05 07:00:00",
		"tomorrow evening at eight": "2026-03-05 20:00:00", "at eight tomorrow evening": "2026-03-05 20:00:00", "today at nine": "2026-03-04 21:00:00",
		"at eight this evening": "2026-03-04 20:00:00", "at 17:45": "2026-03-04 17:45:00", "at 09:00 on Friday": "2026-03-06 09:00:00",
		"on the third of April": "2026-04-03 23:59:59", "on April 3rd at noon": "2026-04-03 12:00:00", "by March 1": "2027-03-01 23:59:59",
		"Monday the sixteenth of March": "2026-03-16 23:59:59", "by the fifteenth": "2026-03-15 23:59:59", "on the 2nd": "2026-04-02 23:59:59",
		"a week from Monday": "2026-03-16 23:59:59", "two weeks from Friday": "2026-03-20 23:59:59", "Friday week": "2026-03-13 23:59:59",
		"in two days at noon": "2026-03-06 12:00:00", "in a fortnight": "2026-03-18 23:59:59", "three days from now": "2026-03-07 23:59:59", "in the next few days": "2026-03-07 23:59:59",
		"no later than five tomorrow": "2026-03-05 17:00:00", "by Friday at the latest": "2026-03-06 23:59:59", "first thing tomorrow": "2026-03-05 23:59:59",
		"at midnight": "2026-03-05 00:00:00", "tomorrow after three": "2026-03-05 23:59:59", "by four o'clock": "2026-03-04 16:00:00",
		"tomorrow between two and four": "2026-03-05 16:00:00", "twelve noon tomorrow": "2026-03-05 12:00:00", "at one a.m. tomorrow": "2026-03-05 01:00:00",

		"at three, no, four": "2026-03-04 16:00:00", "tomorrow at three, sorry, at four": "2026-03-05 16:00:00", "on Monday, I mean Tuesday": "2026-03-10 23:59:59",
		"on Tuesday at ten, no wait, Thursday": "2026-03-05 10:00:00", "not on Monday but on Tuesday": "2026-03-10 23:59:59",
		"tomorrow at two, actually make that half past two": "2026-03-05 14:30:00", "at three no four": "2026-03-04 16:00:00",
		"at ten thirty, or rather eleven": "2026-03-04 11:00:00", "in two hours, no, in three hours": "2026-03-04 13:15:00",

		"soon": "", "": "", "when it is fixed": "", "at the depot": "", "in the mail": "", "by courier": "", "the Friday after next": "", "next Friday": "",
		"tomorrow or Thursday": "", "at five Elm Street": "", "at ten dollars": "", "by five percent": "", "every Monday": "", "last Tuesday": "", "after Thursday": "",
		"at nine Pacific": "", "at ten sixty": "", "yesterday at three": "", "not before Friday": "", "your Monday appointment": "", "at 25:99": "",
		"on the second floor": "", "on February 30": "", "the day after": "", "two years ago": "", "at three your time": "", "from Tuesday to Thursday": "",
		"for two hours": "", "at midnight tomorrow": "", "within reason": "", "one of three": "", "by two men": "", "at the weekend": "2026-03-08 23:59:59",
	} {
		at, ok := Resolve(words, said)
		if got := at.Format(time.DateTime); ok != (want != "") || ok && got != want {
			t.Errorf("%q is %s, %v; want %s", words, got, ok, want)
		}
	}
}

func TestFind_Quotes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"I will call you the day after tomorrow at ten fifteen and send it": "the day after tomorrow at ten fifteen",
		"We can do it on Monday at nine if you like":                        "on Monday at nine",
		"I'll ring at three, no, four. Goodbye":                             "at three, no, four",
		"Since last Monday it is broken, call me by Thursday at 3:30 p.m.!": "by Thursday at 3:30 p.m.",
		"be there in five minutes and tonight is free":                      "in five minutes",
		"I move your Tuesday visit":                                         "",
		"The bill of the third month":                                       "",
		"We’ll call at four o’clock":                                        "at four o’clock",
	} {
		if p, _ := Find(text); p.Text != want {
			t.Errorf("%q has %q, want %q", text, p.Text, want)
		} else if text[p.From:p.To] != want {
			t.Errorf("%q: %+v is at another place", text, p)
		}
	}
}

func TestOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{"at four": true, "four": true, "Thursday at ten.": true, "four people": false, "call me at four": false, "": false} {
		if Only(text) != want {
			t.Errorf("%q: want %v", text, want)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("tomorrow at 25:99")
	f.Add("not on Monday but at half past, no, the 31st of June")
	f.Fuzz(func(t *testing.T, words string) {
		if at, ok := Resolve(words, said); ok && at.Year() > 9999 {
			t.Errorf("%q is %v", words, at)
		}
	})
}

// Clocks in Chile go forward at midnight: 00:30 of the day after does not exist, and the day begins at one.
//
// https://github.com/Restcomm/Restcomm-Connect/issues/1703
func TestResolve_ClocksForwardAtMidnight(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	said := time.Date(2026, 9, 5, 0, 30, 0, 0, zone) // a Saturday
	for words, want := range map[string]string{"tomorrow": "2026-09-06 23:59:59", "in one day": "2026-09-06 23:59:59",
		"on Sunday": "2026-09-06 23:59:59", "today": "2026-09-05 23:59:59", "tomorrow at nine in the morning": "2026-09-06 09:00:00",
		"on the sixth of September": "2026-09-06 23:59:59", "in two hours": "2026-09-05 02:30:00"} {
		if got, ok := Resolve(words, said); !ok || got.Format(time.DateTime) != want {
			t.Errorf("%s: %s %v, want %s", words, got, ok, want)
		}
	}
}
