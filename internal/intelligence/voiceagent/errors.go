package voiceagent

import "errors"

var (
	errOff  = errors.New("no voice agent is set up")
	errDeaf = errors.New("speech recognition is switched off")
)
