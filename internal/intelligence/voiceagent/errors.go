package voiceagent

import "errors"

var (
	errNoAgent       = errors.New("no voice agent is set up")
	errNoRecognition = errors.New("speech recognition is switched off")
)
