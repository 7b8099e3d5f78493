package nlp

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"soniq/internal/intelligence/engine/enginetest"
	"soniq/internal/intelligence/transcript"
)

// noteOf returns the note of a call with one turn.
func noteOf(t *testing.T, speaker transcript.Speaker, text string) transcript.Note {
	t.Helper()
	c := transcript.Conversation{Turns: []transcript.Turn{{Speaker: speaker, Text: text, StartMS: 65000, EndMS: 69000}}}
	n, err := NewRuleSummarizer(NewWordEmbedding()).Summarise(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// https://github.com/gopaljilab/Clinical-Insight-Engine/issues/1662
func TestSummary_QuotesReserve(t *testing.T) {
	t.Parallel()
	for _, said := range []string{"No hot water since yesterday.", "no hot water since yesterday", "I do not have hot water.", "Nobody came on Monday.", "Not the kitchen, the bathroom.",
		"I never ordered this.", "If it rains the roof leaks.", "I think it might be broken.", "My neighbour said it was paid.", "It is two, no, three lamps.", "Is the water back?",
		"There is hardly any pressure.", "Neither lamp works.", "Without heating since Friday.", "I would pay if it worked."} {
		n := noteOf(t, transcript.Caller, said)
		if !strings.Contains(n.Summary, `"`+said+`" (1:05)`) {
			t.Errorf("%q is summarised as %q", said, n.Summary)
		}
	}
	if n := noteOf(t, transcript.Caller, "My internet connection is very slow."); n.Summary != "Caller reported that their internet connection is very slow (1:05)." {
		t.Errorf("a plain statement is summarised as %q", n.Summary)
	}
}

var quotation = regexp.MustCompile(`"([^"]+)"`)

// TestSummary_IsExtractive checks that each quotation of a note stands in a turn.
func TestSummary_IsExtractive(t *testing.T) {
	t.Parallel()
	r := NewRuleSummarizer(NewWordEmbedding())
	check := func(id string, c transcript.Conversation) {
		n, _ := r.Summarise(context.Background(), c)
		text := n.Summary
		for _, a := range n.ActionItems {
			text += " " + a.Text
		}
		for _, q := range quotation.FindAllStringSubmatch(text, -1) {
			found := strings.HasSuffix(q[1], "…")
			for _, turn := range c.Turns {
				found = found || strings.Contains(turn.Text, q[1])
			}
			if !found {
				t.Errorf("%s: nobody said %q", id, q[1])
			}
		}
	}
	for _, s := range enginetest.Scripts(t) {
		check(s.ID, enginetest.ConversationOf(s, false))
		check(s.ID, enginetest.ConversationOf(s, true))
	}
	for _, c := range labelledCalls(t) {
		check(c.ID, c.conversation())
	}
}

// https://github.com/melgarafael/DeskcommCRM/issues/435
// https://github.com/JKHeadley/instar/issues/733
func TestFlags_Scope(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"you never call me back": "", "There is no smell of gas.": "", "Do not call me again.": "do_not_contact", "Never call me again.": "do_not_contact",
		"Stop calling my house!": "do_not_contact", "Please don't stop calling me.": "", "Don't call me before nine.": "", "I don't want to be called again.": "do_not_contact",
		"Why don't you call me?": "", "He told me not to call you.": "", "Don't take me off your list.": "", "I smell gas.": "emergency", "He isn't breathing!": "emergency",
		"If I smell gas, what should I do?": "", "There is a smell of gas, what should I do?": "emergency", "Do you smell gas?": "", "Can you send an ambulance?": "emergency",
		"I don't need an ambulance.": "", "No, there is a gas leak.": "emergency", "no there is a gas leak": "emergency", "They said there is no gas leak but I smell gas.": "emergency",
		"We had a gas leak last year.": "", "This is not an emergency.": "", "I have a question about the ambulance bill.": "", "I think there is a gas leak.": "emergency",
		"I do not want to speak to a manager.": "", "Get me your supervisor.": "escalation_request", "May I speak to your manager?": "escalation_request",
		"My wife says I should talk to your manager.": "", "I won't cancel my subscription.": "", "If it fails again, I will cancel my contract.": "churn_risk",
		"If I cancel my contract, is there a fee?": "", "How do I cancel my subscription?": "churn_risk", "I am not switching to another provider.": "",
	} {
		var got []string
		for _, f := range noteOf(t, transcript.Caller, said).Flags {
			got = append(got, f.Kind)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q has flags %v, want %q", said, got, want)
		}
	}
}

// https://github.com/thinkroth/Sentimental/issues/8
func TestMood_Scope(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]transcript.Mood{
		"I am not happy.": transcript.Negative, "I am happy.": transcript.Positive, "I'm far from happy.": transcript.Negative, "I have no complaints.": transcript.Neutral,
		"I would be happy if you called.": transcript.Neutral, "I'm not angry.": transcript.Neutral, "It is not slow any more.": transcript.Neutral,
		"Why is it so slow?": transcript.Negative, "Nobody helped me.": transcript.Negative, "I have never been so disappointed.": transcript.Negative,
		"The book is not damaged, it is wonderful.": transcript.Positive, "That was not great.": transcript.Negative,
	} {
		if got := noteOf(t, transcript.Caller, said).Sentiment.Caller; got != want {
			t.Errorf("%q is %s, want %s", said, got, want)
		}
	}
}

// https://github.com/JKHeadley/instar/issues/733
func TestActionItems_Scope(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"Nobody will call today.": "", "If it rains, I will call you.": "", "I will call you if it rains.": "", "Unless he comes I will call you.": "",
		"I will not call you.": "", "I won't be able to call you today.": "", "Will I call you tomorrow?": "", "Shall I send it?": "", "I would send it.": "",
		"I might send it tomorrow.": "", "He said he will send it tomorrow.": "", "We will refund nothing.": "", "I refuse to refund you.": "",
		"The technician will not come tomorrow.": "", "The technician was supposed to come today.": "", "Maybe a technician comes tomorrow.": "",
		"I will send it tomorrow.": "Send it tomorrow.", "I will send it, but if it breaks I will not pay.": `"I will send it, but if it breaks I will not pay"`,
		"I'll call you, no, I'll email you on Friday.": "Email the caller on Friday.", "I'll make sure it does not happen again.": `"I'll make sure it does not happen again"`,
		"The technician won't come today, but I will send you a note.": `"The technician won't come today, but I will send you a note"`,
	} {
		got := ""
		for _, a := range noteOf(t, transcript.Agent, said).ActionItems {
			got += a.Text
		}
		if got != want {
			t.Errorf("%q has %q, want %q", said, got, want)
		}
	}
}

func TestActionItems_Refused(t *testing.T) {
	t.Parallel()
	r := NewRuleSummarizer(NewWordEmbedding())
	for answer, want := range map[string]int{"No, we cannot.": 0, "Unfortunately we have none.": 0, "Yes, of course.": 1, "No problem.": 1} {
		n, _ := r.Summarise(context.Background(), transcript.Conversation{Turns: []transcript.Turn{
			{ID: 0, Speaker: transcript.Caller, Text: "Can you send me the catalogue?"}, {ID: 1, Speaker: transcript.Agent, Text: answer}}})
		if len(n.ActionItems) != want {
			t.Errorf("after %q there are %d action items, want %d", answer, len(n.ActionItems), want)
		}
	}
}
