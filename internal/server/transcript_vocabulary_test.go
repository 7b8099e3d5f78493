package server

import (
	"strings"
	"testing"

	"soniq/internal/intelligence/transcript"
	"soniq/internal/platform/event"
	"soniq/internal/telephony/call"
)

func TestTheVocabularyOfACallHasEachNameOnceAndNoNumbers(t *testing.T) {
	t.Parallel()
	shown := "+44 20 7946 0000"
	var all terms
	all.add(transcript.Term{Text: "Zyntrix", UserDefined: true})
	all.names(true, parties(call.Call{FromName: &shown, Contact: &event.Contact{Name: "Ilse Vandermeer"}})...)
	all.names(false, "ZYNTRIX", "", "ada@example.com", "ilse vandermeer", "Support 24", strings.Repeat("x", 200))
	var got []string
	for _, x := range all.list {
		got = append(got, x.Text)
	}
	if want := "Zyntrix, Ilse Vandermeer, Support 24"; strings.Join(got, ", ") != want || !all.list[0].UserDefined || !all.list[1].Person || all.list[2].Person {
		t.Errorf("the terms are %v, want %s", all.list, want)
	}
}
