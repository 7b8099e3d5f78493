package speech

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"soniq/internal/intelligence/transcript"
)

// sherpaRequest is a clip to recognise; its samples are the body.
type sherpaRequest struct {
	Rate     int    `json:"rate"`
	Language string `json:"language"`
}

// sherpaResponse is the response to a sherpaRequest.
type sherpaResponse struct {
	Result sherpaResult `json:"result"`
	Error  string       `json:"error,omitempty"`
}

// RunSherpaWorker runs the recogniser process of sherpa-onnx: it answers clips read from in on out until in ends, and
// returns the exit code. Its arguments are the folder of the model, the folder of the library or "", the number of
// threads, and LowLatency or "". It is a separate process for the same reasons as RunSphinxWorker; the library also
// exits its process if it cannot use a model.
func RunSherpaWorker(args []string, in io.Reader, out io.Writer) int {
	d, err := openSherpaDecoder(args)
	h := helloOf(transcript.Engine{}, err)
	if err == nil {
		h.Engine = transcript.Engine{Name: sherpaEngine, Model: d.model.name(), Version: d.lib.version()}
		h.Memory = residentBytes()
	}
	if sendErr := writeMessage(out, h, nil); err != nil || sendErr != nil {
		return 1
	}
	questions := make(chan sherpaJob)
	go readSherpaRequests(in, questions)
	half := upsampleFilter()
	for q := range questions {
		pcm := q.pcm
		if q.Rate == 8000 {
			pcm = upsample(pcm, half)
		}
		var a sherpaResponse
		if a.Result, err = d.decodeClip(pcm, q.Language); err != nil {
			a.Error = err.Error()
		}
		if err := writeMessage(out, a, nil); err != nil {
			return 1
		}
	}
	return 0
}

func openSherpaDecoder(args []string) (*sherpaDecoder, error) {
	if len(args) != 4 {
		return nil, errors.New("this process is started by soniq itself")
	}
	threads, err := strconv.Atoi(args[2])
	if err != nil {
		return nil, err
	}
	if syscall.Getpgrp() == os.Getpid() && args[3] != LowLatency {
		_ = syscall.Setpriority(syscall.PRIO_PGRP, 0, workerNice)
	}
	return newSherpaDecoder(args[0], args[1], threads)
}

// sherpaJob is a request with its samples.
type sherpaJob struct {
	sherpaRequest
	pcm []int16
}

// readSherpaRequests reads clips from the server. It exits the process when the input ends, because the main
// goroutine may be inside C code then.
func readSherpaRequests(in io.Reader, questions chan<- sherpaJob) {
	for {
		var q sherpaJob
		var err error
		if q.pcm, err = readMessage(in, &q.sherpaRequest); err != nil {
			os.Exit(0)
		}
		questions <- q
	}
}

// residentBytes returns the resident memory of this process in bytes; 0 if the system does not report it.
func residentBytes() int64 {
	b, err := os.ReadFile("/proc/self/statm")
	fields := bytes.Fields(b)
	if err != nil || len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	return pages * int64(os.Getpagesize())
}
