package engine

import (
	"io"
	"os"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// fliteRequest is a text to speak. The response has the samples as its body.
type utterance struct {
	Text  string `json:"text"`
	Voice string `json:"voice"`
}

// fliteResponse is the response to a fliteRequest.
type sayAnswer struct {
	Rate    int    `json:"rate"`
	Missing string `json:"missing,omitempty"`
	Help    string `json:"help,omitempty"`
	Error   string `json:"error,omitempty"`
}

// RunFliteWorker runs the speech synthesis process: it speaks texts read from in and writes the samples to out, until
// in ends. It returns the exit code. It is a separate process for the same reasons as RunSphinxWorker.
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

// readFliteRequests reads texts from the server. It exits the process when the input ends, because the main goroutine
// may be inside C code then.
func readUtterances(in io.Reader, texts chan<- utterance) {
	for {
		var u utterance
		if _, err := receive(in, &u); err != nil {
			os.Exit(0)
		}
		texts <- u
	}
}
