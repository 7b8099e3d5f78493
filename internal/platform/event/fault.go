package event

import (
	"errors"
	"io/fs"
	"strings"
)

// Fault is the reason of a failure.
type Fault struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// NewFault returns an error as a fault. The paths of files concern the operator alone and are left out.
func NewFault(code string, err error) *Fault {
	text := err.Error()
	if failed, ok := errors.AsType[*fs.PathError](err); ok && failed.Path != "" {
		text = strings.ReplaceAll(text, failed.Path, "the file")
	}
	return &Fault{Code: code, Message: text}
}
