package cli

import (
	"context"
	"os"

	"soniq/internal/intelligence/engine/speech"
)

// voiceCommand is the builtin voice's own process; the platform starts it.
func voiceCommand(context.Context, []string) error {
	if code := speech.RunFliteWorker(os.Stdin, os.Stdout); code != 0 {
		return ErrFailed
	}
	return nil
}

// workerCommand is the speech recogniser's own process; the platform starts it.
func workerCommand(context.Context, []string) error {
	if code := speech.RunSphinxWorker(os.Stdin, os.Stdout); code != 0 {
		return ErrFailed
	}
	return nil
}

// sherpaCommand is the process of the recogniser sherpa-onnx; the platform starts it.
func sherpaCommand(_ context.Context, args []string) error {
	if code := speech.RunSherpaWorker(args, os.Stdin, os.Stdout); code != 0 {
		return ErrFailed
	}
	return nil
}
