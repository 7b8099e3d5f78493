package engine

import (
	"io"
	"os"
	"slices"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// Brisk is the argument of a worker that somebody waits for.
const Brisk = "brisk"

// workerNice keeps recognition out of the way of audio.
const workerNice = 10

// RunWorker is the recogniser process: it answers clips read from in on out until in ends, and returns the exit
// code. Speech runs in a process of its own so that a crash in C code never touches a call. When the server
// dies, however it dies, its end of the pipe closes and the worker leaves at once, even from within C code.
func RunWorker(in io.Reader, out io.Writer) int {
	// Callers in menus wait for their worker: it is started with Brisk and yields to nobody. Linux gives each thread its own niceness;
	// the process group reaches them all.
	if syscall.Getpgrp() == os.Getpid() && !slices.Contains(os.Args[1:], Brisk) {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, workerNice)
	}
	s, err := newSphinx()
	if sendErr := send(out, greetingOf(sphinxIdentity, err), nil); err != nil || sendErr != nil {
		return 1
	}
	questions := make(chan clip)
	go readQuestions(in, questions)
	half := upsampleFilter()
	for q := range questions {
		pcm := q.pcm
		if q.Rate == 8000 {
			pcm = upsample(pcm, half)
		}
		var a answer
		if a.Words, err = s.answer(q.question, pcm); err != nil {
			a.Error = err.Error()
		}
		if err := send(out, a, nil); err != nil {
			return 1
		}
	}
	return 0
}

// clip is a question with its samples.
type clip struct {
	question
	pcm []int16
}

// readQuestions ends the process when the server has gone: the decoder may be deep in C code then.
func readQuestions(in io.Reader, questions chan<- clip) {
	for {
		var q clip
		var err error
		if q.pcm, err = receive(in, &q.question); err != nil {
			os.Exit(0)
		}
		questions <- q
	}
}

// greetingOf tells the server what the worker is, or why it cannot be.
func greetingOf(e transcript.Engine, err error) hello {
	if err == nil {
		return hello{Engine: e}
	}
	if m, ok := transcript.IsMissing(err); ok {
		return hello{Missing: m.What, Help: m.Help}
	}
	return hello{Error: err.Error()}
}

// sphinxIdentity is how results of the builtin recogniser are signed.
var sphinxIdentity = transcript.Engine{Name: sphinxEngine, Model: sphinxModel + bandwidthModel, Version: sphinxVersion}
