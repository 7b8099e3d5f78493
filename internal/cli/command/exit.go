package command

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Exit codes of the commands that use a running soniq. All other commands end with 0 or 1.
const (
	ExitFailed    = 1 // the request was refused, or failed for another reason
	ExitUsage     = 2 // the command line is wrong
	ExitAccess    = 3 // no key, a wrong key, or a key without the permission
	ExitNotFound  = 4
	ExitUnreached = 5 // the server does not answer, or answers with 5xx
)

// failure is an error with an exit code.
type failure struct {
	code int
	err  error
}

// Fail returns err with an exit code.
func Fail(code int, err error) error { return &failure{code, err} }

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// ExitCode returns the exit code for an error: 1 refused, 2 wrong usage, 3 no access, 4 not found, 5 not reached.
func ExitCode(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	return ExitFailed
}

// Problem is an error response of the API (RFC 9457).
type Problem struct {
	Status   int
	Code     string
	Title    string
	Detail   string
	Required []string `json:"required_scopes"`
	Errors   []struct{ Field, Code, Message string }
	Retry    string `json:"-"` // Retry-After
}

// hints are remedies for errors of the API, by error code.
var hints = map[string]string{
	"unauthenticated":   "the key is wrong or was revoked; soniq admin keys create makes another",
	"key_expired":       "soniq admin keys create makes another",
	"key_revoked":       "soniq admin keys create makes another",
	"wrong_environment": "keys of the sandbox begin with …_test_, others are live",
	"rate_limited":      "try again in a moment",
	"draining":          "the server is shutting down; try again in a moment",
	"not_enabled":       "this version of soniq cannot do it yet",
}

func (p *Problem) Error() string {
	text := cmp.Or(p.Detail, p.Title, http.StatusText(p.Status))
	if len(p.Errors) > 0 {
		var all []string
		for _, e := range p.Errors {
			all = append(all, e.Field+": "+e.Message)
		}
		text = strings.Join(all, "; ")
	}
	if len(p.Required) > 0 {
		text += "; the key lacks " + strings.Join(p.Required, ", ")
	}
	if h := hints[p.Code]; h != "" {
		text += "; " + h
	}
	if p.Code != "" {
		text += " (" + p.Code + ")"
	}
	return text
}

// ReadProblem returns the error for a response that is not a success.
func ReadProblem(answer *http.Response, body []byte) error {
	p := &Problem{}
	if json.Unmarshal(body, p) != nil || p.Code == "" {
		p = &Problem{Detail: fmt.Sprintf("the answer is %s, and no problem of the API: is this the address of soniq?", answer.Status)}
	}
	p.Status, p.Retry = answer.StatusCode, answer.Header.Get("Retry-After")
	return &failure{ExitCodeOf(p.Status), p}
}

func ExitCodeOf(status int) int {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return ExitAccess
	case status == http.StatusNotFound, status == http.StatusGone:
		return ExitNotFound
	case status >= 500 && status != http.StatusNotImplemented:
		return ExitUnreached
	}
	return ExitFailed
}
