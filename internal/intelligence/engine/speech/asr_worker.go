package speech

import (
	"io"
	"os"
	"slices"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// LowLatency is the argument of a worker at normal priority, used for callers in a menu or with a voice agent.
const LowLatency = "brisk"

// workerNice is the niceness of recognition, so that it does not delay audio.
const workerNice = 10

// RunSphinxWorker runs the recogniser process: it answers clips read from in on out until in ends, and returns the
// exit code. Speech engines run in separate processes so that a crash in C code never affects a call. When the server
// ends, however it ends, its end of the pipe closes and the worker exits at once, even from within C code.
func RunSphinxWorker(in io.Reader, out io.Writer) int {
	// Callers in menus wait for their worker: it is started with LowLatency and keeps its priority. Linux has a
	// niceness per thread; setting that of the process group covers all threads.
	if syscall.Getpgrp() == os.Getpid() && !slices.Contains(os.Args[1:], LowLatency) {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, workerNice)
	}
	s, err := newSphinxDecoder()
	if sendErr := writeMessage(out, helloOf(sphinxIdentity, err), nil); err != nil || sendErr != nil {
		return 1
	}
	questions := make(chan sphinxJob)
	go readSphinxRequests(in, questions)
	half := upsampleFilter()
	for q := range questions {
		pcm := q.pcm
		if q.Rate == 8000 {
			pcm = upsample(pcm, half)
		}
		var a sphinxResponse
		if a.Words, err = s.answer(q.sphinxRequest, pcm); err != nil {
			a.Error = err.Error()
		}
		if err := writeMessage(out, a, nil); err != nil {
			return 1
		}
	}
	return 0
}

// sphinxJob is a request with its samples.
type sphinxJob struct {
	sphinxRequest
	pcm []int16
}

// readSphinxRequests reads clips from the server. It exits the process when the input ends, because the main
// goroutine may be inside C code then.
func readSphinxRequests(in io.Reader, questions chan<- sphinxJob) {
	for {
		var q sphinxJob
		var err error
		if q.pcm, err = readMessage(in, &q.sphinxRequest); err != nil {
			os.Exit(0)
		}
		questions <- q
	}
}

// helloOf returns the first message of a worker: its engine, or the error that prevents it from working.
func helloOf(e transcript.Engine, err error) workerHello {
	if err == nil {
		return workerHello{Engine: e}
	}
	if m, ok := transcript.AsMissingDependency(err); ok {
		return workerHello{Missing: m.Problem, Help: m.Remedy}
	}
	return workerHello{Error: err.Error()}
}

// sphinxIdentity identifies results of PocketSphinx.
var sphinxIdentity = transcript.Engine{Name: sphinxEngine, Model: sphinxModel + bandwidthModel, Version: sphinxVersion}
