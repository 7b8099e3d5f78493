package engine

import (
	"io"
	"os"
	"slices"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// LowLatency is the argument of a worker at normal priority, used for callers in a menu or with a voice agent.
const Brisk = "brisk"

// workerNice is the niceness of recognition, so that it does not delay audio.
const workerNice = 10

// RunSphinxWorker runs the recogniser process: it answers clips read from in on out until in ends, and returns the
// exit code. Speech engines run in separate processes so that a crash in C code never affects a call. When the server
// ends, however it ends, its end of the pipe closes and the worker exits at once, even from within C code.
func RunWorker(in io.Reader, out io.Writer) int {
	// Callers in menus wait for their worker: it is started with LowLatency and keeps its priority. Linux has a
	// niceness per thread; setting that of the process group covers all threads.
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

// sphinxJob is a request with its samples.
type clip struct {
	question
	pcm []int16
}

// readSphinxRequests reads clips from the server. It exits the process when the input ends, because the main
// goroutine may be inside C code then.
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

// helloOf returns the first message of a worker: its engine, or the error that prevents it from working.
func greetingOf(e transcript.Engine, err error) hello {
	if err == nil {
		return hello{Engine: e}
	}
	if m, ok := transcript.IsMissing(err); ok {
		return hello{Missing: m.What, Help: m.Help}
	}
	return hello{Error: err.Error()}
}

// sphinxIdentity identifies results of PocketSphinx.
var sphinxIdentity = transcript.Engine{Name: sphinxEngine, Model: sphinxModel + bandwidthModel, Version: sphinxVersion}
