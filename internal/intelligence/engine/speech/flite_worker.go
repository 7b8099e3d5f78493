package speech

import (
	"io"
	"os"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// fliteRequest is a text to speak. The response has the samples as its body.
type fliteRequest struct {
	Text  string `json:"text"`
	Voice string `json:"voice"`
}

// fliteResponse is the response to a fliteRequest.
type fliteResponse struct {
	Rate    int    `json:"rate"`
	Missing string `json:"missing,omitempty"`
	Help    string `json:"help,omitempty"`
	Error   string `json:"error,omitempty"`
}

// RunFliteWorker runs the speech synthesis process: it speaks texts read from in and writes the samples to out, until
// in ends. It returns the exit code. It is a separate process for the same reasons as RunSphinxWorker.
func RunFliteWorker(in io.Reader, out io.Writer) int {
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, workerNice)
	}
	l, err := loadFlite()
	if sendErr := writeMessage(out, helloOf(transcript.Engine{Name: "flite"}, err), nil); err != nil || sendErr != nil {
		return 1
	}
	texts := make(chan fliteRequest)
	go readFliteRequests(in, texts)
	for u := range texts {
		var a fliteResponse
		pcm, rate, err := l.synthesize(u.Text, u.Voice)
		if m, ok := transcript.AsMissingDependency(err); ok {
			a.Missing, a.Help = m.Problem, m.Remedy
		} else if err != nil {
			a.Error = err.Error()
		}
		a.Rate = rate
		if err := writeMessage(out, a, pcm); err != nil {
			return 1
		}
	}
	return 0
}

// readFliteRequests reads texts from the server. It exits the process when the input ends, because the main goroutine
// may be inside C code then.
func readFliteRequests(in io.Reader, texts chan<- fliteRequest) {
	for {
		var u fliteRequest
		if _, err := readMessage(in, &u); err != nil {
			os.Exit(0)
		}
		texts <- u
	}
}
