package engine

import (
	"io"
	"os"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// utterance is a text to speak; the answer has its samples as body.
type utterance struct {
	Text  string `json:"text"`
	Voice string `json:"voice"`
}

// sayAnswer is the answer to an utterance.
type sayAnswer struct {
	Rate    int    `json:"rate"`
	Missing string `json:"missing,omitempty"`
	Help    string `json:"help,omitempty"`
	Error   string `json:"error,omitempty"`
}

// RunVoice is the speaking process: it speaks texts read from in on out until in ends, and returns the exit code. It is a
// process of its own for the reasons RunWorker is.
func RunVoice(in io.Reader, out io.Writer) int {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, workerNice)
	}
	l, err := loadFlite()
	if sendErr := send(out, greetingOf(transcript.Engine{Name: "flite"}, err), nil); err != nil || sendErr != nil {
		return 1
	}
	texts := make(chan utterance)
	go readUtterances(in, texts)
	for u := range texts {
		var a sayAnswer
		pcm, rate, err := l.say(u.Text, u.Voice)
		if m, ok := transcript.IsMissing(err); ok {
			a.Missing, a.Help = m.What, m.Help
		} else if err != nil {
			a.Error = err.Error()
		}
		a.Rate = rate
		if err := send(out, a, pcm); err != nil {
			return 1
		}
	}
	return 0
}

// readUtterances ends the process when the server has gone: the voice may be deep in C code then.
func readUtterances(in io.Reader, texts chan<- utterance) {
	for {
		var u utterance
		if _, err := receive(in, &u); err != nil {
			os.Exit(0)
		}
		texts <- u
	}
}
